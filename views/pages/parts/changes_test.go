package parts

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/review"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

func inEveryLanguage(t *testing.T, check func(tag string, ctx context.Context)) {
	t.Helper()
	languages, err := i18n.Load()
	musttest.OK(t, err)
	for _, l := range languages.All() {
		check(l.Tag, ui.With(t.Context(), &ui.Frame{Locale: l, Zone: time.UTC}))
	}
}

// names are the fields of a struct as the audit log names them.
func names(v any) (list []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		list = append(list, name)
	}
	return list
}

func prefixed(prefix string, list []string) []string {
	for i := range list {
		list[i] = prefix + list[i]
	}
	return list
}

// Every action that can be in the audit log has a name, in every language.
func TestEveryAuditedFieldHasALabel(t *testing.T) {
	all := map[string][]string{
		"template.create": append(names(template.Spec{}), ""), "template.announce": {"kind", "opens_at"},
		"campaign.edit": {"", "name", "channel", "content.variants", "content.hold_out", "audience", "audience_id", "audience_users",
			"grant_template_id", "starts_at", "ends_at", "rate_per_second"},
		"campaign.test": {"user_id", "variant"}, "campaign.refuse": {"asked_by"}, "campaign.hold": {"state", "allowed", "reach"}, "campaign.limits": names(campaign.Limits{}),
		"codes.generate": {"count", "key"}, "codes.revoke": {"batch_id", "state", "count", "used"}, "codes.export": {"codes", "batches"},
		"coupon.revoke": names(coupon.Shown{}), "staff.change": names(staff.Shown{}), "staff.single_sign_on": {"subject"},
		"key.create": {"name", "prefix", "scopes", "expires_at"}, "channel.pause": {"paused", "paused_reason", "rate_per_second"}, "channel.test": {"to"},
		"dead_letters.replay": append(names(delivery.DeadLetterJob{}), prefixed("Filter.", names(delivery.DeadLetterFilter{}))...),
		"shop.save":           {"name", "timezone"}, "segment.save": {"name", "kind", "rule", "copy_of"},
		"user.import": {"users", "first", "last"}, "user.edit": {"fields"}, "user.export": {"search"}, "suppression.export": {"reason", "address"},
		"job.start": {"kind", "title", "batch_id"}, "job.cancel": {"done", "failed", "total", "state"},
	}
	inEveryLanguage(t, func(tag string, ctx context.Context) {
		for action, list := range all {
			seen := map[string]string{}
			for _, name := range list {
				l := changeLine{scope: auditScope(staff.Record{Action: action}), name: name}
				label := l.label(ctx)
				parts := strings.Split(label, " · ")
				for i, part := range strings.Split(name, ".") {
					if parts[i] == snake(part) || strings.ContainsAny(parts[i], "_{") {
						t.Errorf("%s: %q of %s is called %q", tag, name, action, label)
					}
				}
				if other, twice := seen[label]; twice {
					t.Errorf("%s: %q and %q of %s are both called %q", tag, name, other, action, label)
				}
				seen[label] = name
			}
		}
	})
}

func texts[S ~string](list ...S) (out []string) {
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

// The values of a field that can hold only a few are put into words.
func TestEveryAuditedValueHasWords(t *testing.T) {
	all := map[string]map[string][]string{
		"template.edit": {"": append(texts(template.States()...), texts(template.Published)...), "Kind": texts(template.AmountOff, template.ThresholdOff, template.PercentOff),
			"Target": texts(template.WholeShop, template.Product), "Obtain": texts(template.ByClaim, template.ByCode), "ClaimMode": texts(template.Durable, template.Gate)},
		"template.announce":   {"kind": texts(delivery.KindCorrection, delivery.KindCancelled)},
		"campaign.edit":       {"": texts(campaign.States()...), "audience": texts(campaign.AudienceKinds()...)},
		"campaign.test":       {"variant": {"0", "1"}},
		"codes.revoke":        {"state": texts(redeemcode.Generating, redeemcode.Ready, redeemcode.Revoked)},
		"coupon.revoke":       {"state": texts(coupon.Unused, coupon.Locked, coupon.Used, coupon.Expired, coupon.Refunded, coupon.Revoked, coupon.Suspended)},
		"review.suspend":      {"state": texts(review.States()...), "proposed": texts(review.Suspend, review.Return)},
		"staff.change":        {"role": texts(staff.Roles()...)},
		"channel.test":        {"to": {"address", "user"}},
		"dead_letters.replay": {"Action": texts(delivery.Replay, delivery.Discard), "State": texts(job.Running)},
		"segment.save":        {"kind": texts(segment.ByRules, segment.ByList)},
		"job.start":           {"kind": {user.ImportJob, segment.CountJob, segment.ListJob, redeemcode.JobKind}},
		"job.cancel":          {"state": texts(job.Waiting, job.Running, job.Done, job.Failed, job.Cancelled)},
		"suppression.export":  {"reason": feedback.Reasons()},
		"user.edit":           {"fields": {"name", "email", "phone", "locale", "timezone", "push", "opt_outs", "quiet_hours", "attributes"}},
		"key.create":          {"scopes": texts(staff.Scopes()...)},
	}
	for _, c := range delivery.AllChannels() {
		all["campaign.edit"]["channel"] = append(all["campaign.edit"]["channel"], c.String())
	}
	inEveryLanguage(t, func(tag string, ctx context.Context) {
		for action, fields := range all {
			for name, values := range fields {
				l := changeLine{scope: auditScope(staff.Record{Action: action}), name: name}
				for _, v := range values {
					found := false
					for _, family := range auditFamilies(l.scope, snake(name)) {
						found = found || ui.From(ctx).Locale.Has(family+v)
					}
					if !found {
						t.Errorf("%s: %s of %s has no words for %q", tag, name, action, v)
					}
				}
			}
		}
	})
}

func TestAuditedValuesAreForPeople(t *testing.T) {
	opens := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	spec := template.Spec{Name: "Moon", Kind: template.ThresholdOff, AmountOff: 1000, Threshold: 5000, Currency: "CNY", Target: template.WholeShop, Stock: 12000,
		OpensAt: opens, ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable, NotifyDays: template.NoticeDaysOf(3, 1), NotifyOver: delivery.ChannelSetOf(delivery.App)}
	after, err := json.Marshal(spec)
	musttest.OK(t, err)
	shanghai := time.FixedZone("CST", 8*60*60)
	inEveryLanguage(t, func(tag string, ctx context.Context) {
		if tag != "en" {
			return
		}
		got := map[string]string{}
		for _, l := range Changes(staff.Record{Action: "template.create", After: after}) {
			got[l.label(ctx)] = l.value(ctx, l.after, l.isIn, shanghai)
		}
		for label, want := range map[string]string{"Amount off": "¥10", "Minimum order": "¥50", "Notification channels": "App", "Notify owners before expiry": "3 days, 1 day",
			"Kind of discount": "Amount off above a minimum", "Valid for": "The whole shop", "How long it is valid": "48 h", "Claim gate": "Durable",
			"How customers get it": "By claiming", "Stock": "12,000", "Opening": "Fri 20 Nov 2026, 20:00 UTC+8"} {
			if got[label] != want {
				t.Errorf("%s: %q, want %q", label, got[label], want)
			}
		}
		step := Changes(staff.Record{Action: "template.publish", Before: []byte(`"draft"`), After: []byte(`"published"`)})
		if len(step) != 1 || step[0].label(ctx) != "State" || step[0].value(ctx, step[0].before, "", time.UTC) != "Draft" || step[0].value(ctx, step[0].after, "", time.UTC) != "Published" {
			t.Errorf("a step: %+v", step)
		}
	})
}
