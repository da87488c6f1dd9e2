package stories

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"dropbell/domain/budget"
	"dropbell/domain/campaign"
	owned "dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	life "dropbell/domain/timeline"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
	"dropbell/musttest"
	droppages "dropbell/views/pages/drops"
)

// sources are all files that may use messages: the views and the console.
func sources(t *testing.T) string {
	t.Helper()
	code, err := readSources()
	musttest.OK(t, err)
	return code
}

var readSources = sync.OnceValues(func() (string, error) {
	var all strings.Builder
	for _, root := range []string{"../ui", "../pages", "../i18n", "../../web/console"} {
		files, err := filesBelow(root)
		if err != nil {
			return "", err
		}
		found := 0
		for _, f := range files {
			if !strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, ".templ") || strings.HasSuffix(f, "_test.go") || strings.HasSuffix(f, "_templ.go") {
				continue
			}
			raw, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			all.Write(raw)
			found++
		}
		if found == 0 {
			return "", fmt.Errorf("no sources below %s", root)
		}
	}
	return all.String(), nil
})

// literals are the texts in the sources that look like keys.
var literals = sync.OnceValues(func() (list []string, err error) {
	code, err := readSources()
	for _, m := range literal.FindAllStringSubmatch(code, -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list), err
})

// filesBelow lists the files in root and in all folders below it.
func filesBelow(root string) (list []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasSuffix(path, "test") {
			return filepath.SkipDir // fixtures of tests, such as consoletest
		}
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return err
	})
	return list, err
}

// composed returns the keys that the sources compose, with every possible value.
func composed() map[string]bool {
	keys := map[string]bool{}
	add := func(format string, values ...any) {
		for _, v := range values {
			keys[fmt.Sprintf(format, v)] = true
		}
	}
	for _, s := range append(template.States(), template.EntriesOpen, template.Sealed, template.Drawn) {
		add("state.%s", s)
	}
	for _, s := range []feedback.Status{feedback.Delivered, feedback.Bounced, feedback.SoftBounced, feedback.Complained} {
		add("feedback.status.%s", s)
	}
	for _, r := range staff.Roles() {
		add("role.%s", r)
		add("role.%s.help", r)
	}
	for _, s := range staff.Scopes() {
		add("scope.%s", s)
		add("scope.%s.help", s)
	}
	for _, c := range delivery.AllChannels() {
		add("channel.%s", c)
		add("channel.%s.help", c)
	}
	add("chart.mark.%s", reminder.StepPublished, reminder.StepMoved, reminder.StepPaused, reminder.StepResumed, reminder.StepClosed, reminder.StepCancelled)
	add("budgets.level.%s", string(budget.Fine), string(budget.Near), string(budget.UsedUp))
	add("budgets.scope.%s", budget.Drop, budget.Shop, budget.Campaign)
	add("budgets.%s", "subject", "currency", "amount", "reason")
	add("report.stage.%s", "booked", "reminded", "opened", "claimed", "used", "entries", "stock", "given", "won", "coupons_given", "coupons_used")
	add("slot.%s", reminder.Waiting, reminder.Firing, reminder.Sending, reminder.Passed, reminder.Moved, reminder.SlotEnded,
		reminder.Overdue, reminder.Unbooked, reminder.FellAway, reminder.Unreached, reminder.Incomplete, reminder.Reminded)
	add("outcome.%s", reminder.Waiting, "due", delivery.InFlight, delivery.Sent, delivery.Failed, delivery.Recovered, delivery.Skipped, delivery.Expired, delivery.Dead, delivery.Discarded, reminder.SlotEnded)
	add("reason.%s", delivery.ReasonOptedOut, delivery.ReasonNoContact, delivery.ReasonMoved, delivery.ReasonCancelled, delivery.ReasonDeadline, delivery.ReasonTooManyTries,
		delivery.ReasonRefused, delivery.ReasonProvider, delivery.ReasonThrottled, delivery.ReasonNoSender, delivery.ReasonOperator, delivery.ReasonChannelPaused,
		delivery.ReasonQuietHours, delivery.ReasonFrequencyCap, delivery.ReasonUserDeleted, delivery.ReasonCampaignEnded, delivery.ReasonCampaignCancel, delivery.ReasonCouponGone)
	for _, f := range []string{"kind.amount_off", "kind.threshold_off", "kind.percent_off", "target.shop", "target.product", "validity.hours", "validity.until",
		"obtain.claim", "obtain.code", "refund_rule.keep", "refund_rule.recompute", "claim_mode.durable", "claim_mode.gate", "refund_to.holder", "refund_to.stock",
		"opening_mode.first_come", "opening_mode.shuffled", "opening_mode.draw", "draw_source.best", "draw_source.drand", "draw_source.public", "draw_source.commit", "draw_source.local"} {
		add("%s", f)
		add("%s.help", f)
	}
	for _, step := range []string{"publish", "pause", "resume", "close", "cancel"} {
		add("confirm.%s.title", step)
		add("do.%s", step)
		add("done.%s", step)
	}
	add("confirm.%s.title", "requeue", "discard", "channel_pause", "channel_resume")
	add("confirm.%s.1", "requeue", "discard", "channel_pause", "channel_resume")
	add("deliveries.state.%s", delivery.BatchReady, delivery.BatchRunning, delivery.BatchDone)
	for _, step := range template.Transitions() {
		add("bulk.%s.1", step)
		add("bulk.%s.all", step)
		add("bulk.%s.title.one", step)
		add("bulk.%s.title.other", step)
	}
	add("bulk.undo.%s.one", "pause", "resume")
	add("bulk.undo.%s.other", "pause", "resume")
	for _, what := range []string{"revenue", "orders"} {
		add("increment."+what+".%s", "more", "less", "chance", "none")
	}
	add("increment.%s", "reached", "held")
	add("revenue.%s", "hours", "days")
	add("revenue.left.%s", "hours", "days")
	add("nav.group.%s", "operations")
	add("model.%s", "lunch", "weekend", "evening", "premiere")
	add("model.%s.text", "lunch", "weekend", "evening", "premiere")
	add("model.%s.product", "premiere")
	for _, tab := range droppages.Tabs() {
		add("drop.tab.%s", tab)
	}
	add("drop.tab.%s", "message")
	add("done.%s", "create", "edit")
	add("journey.%s", "booked", "reminded", "opened", "claimed", "used")
	add("journey.of_%s", "booked", "stock", "claimed")
	add("nav.%s", "overview", "templates", "calendar", "results", "users", "channels", "queues", "housekeeping", "dead_messages", "shops", "staff", "keys", "audit", "deliver", "work", "settings")
	add("legend.%s", "sent", "inflight", "skipped", "expired", "dead")
	add("help.%s", "name", "description", "note", "amount_off", "max_off", "threshold", "opens_at", "closes_at", "valid_until")
	add("kind_of.%s", "template", "shop", "staff", "key", "channel", "dead_message", "dead_letters", "user", "job", "coupon")
	add("object.%s", "template", "shop", "staff", "key", "channel", "dead_message", "dead_letters", "user", "job", "coupon")
	for _, st := range campaign.States() {
		add("campaign.state.%s", st)
	}
	for _, k := range campaign.AudienceKinds() {
		add("campaign.audience.%s", k)
	}
	for _, step := range campaign.Transitions() {
		add("campaign.do.%s", step)
		add("campaign.done.%s", step)
		add("campaign.confirm.%s.title", step)
	}
	add("campaign.field.%s", "name", "channel", "audience", "audience_value", "title", "body", "language", "preview_user", "preview_language", "title_b", "body_b", "percent_b",
		"hold_out", "grant_template_id", "starts_at", "ends_at", "rate_per_second", "shop", "audience_template", "approval_above",
		"link", "test", "test_share", "test_by", "test_minutes")
	add("campaign.help.%s", "audience_template", "name", "shop", "channel", "audience_value", "body", "preview_user", "preview_language", "title_b", "percent_b", "hold_out", "grant_template_id", "starts_at", "ends_at", "rate_per_second", "link", "test_share")
	for _, by := range delivery.TestMeasures() {
		add("campaign.test_by.%s", by)
	}
	add("reason.%s", delivery.ReasonCampaignPaused, delivery.ReasonSoldOut, delivery.ReasonLimit, delivery.ReasonNoGrant, delivery.ReasonCampaignBudget, delivery.ReasonHoldOut,
		waitlist.ReasonTakenBack, waitlist.ReasonOver, "struck", "household_limit", user.ErrErased.Code, delivery.ReasonMoreUrgent, "audience_gone", "audience_other_shop", "approval_missing", "empty_link")
	for _, k := range life.Kinds() {
		add("timeline.%s", k)
	}
	for _, g := range life.Groups() {
		add("timeline.group.%s", g)
	}
	for _, m := range []campaign.Measure{campaign.Opening, campaign.Reserving, campaign.Claiming, campaign.Using} {
		add("results.measure.%s", m)
		add("results.did.%s", m)
	}
	for _, v := range []campaign.Verdict{campaign.Nothing, campaign.MayChance, campaign.More, campaign.Less} {
		add("results.effect.%s", v)
		add("results.versions.%s", v)
	}
	for _, r := range campaign.Reasons() {
		add("reason.%s", r)
	}
	add("security.kind.%s", staff.TOTP, staff.Passkey, "recovery_code", staff.ByPassword, staff.BySingleSignOn)
	for _, p := range []staff.Policy{staff.Required, staff.Optional} {
		add("staff.policy.%s", p)
		add("staff.policy.%s.help", p)
	}
	add("kind_of.%s", "address", "queue")
	add("object.%s", "address", "queue")
	add("security.field.%s", "count", "since", "detail", "several_addresses")
	add("queue.field.%s", "request")
	add("kind_of.%s", "console")
	add("object.%s", "console")
	add("kind_of.%s", "campaign")
	add("object.%s", "campaign")
	add("nav.%s", "campaigns")
	add("nav.%s", "segments", "suppressions", "import", "mailcheck")
	add("kind_of.%s", "segment", "webhook", "destination", "suppression", "model", "provider", "series", "recipe")
	add("object.%s", "segment", "webhook", "destination", "suppression", "model", "provider", "series", "recipe")
	add("audit.value.%s", "state.published", "action.replay", "action.discard", "to.address", "to.user", "variant.0", "variant.1")
	add("coupon.outcome.%s", owned.Done, owned.Undone, owned.RefusedLocked, owned.RefusedUsed, owned.RefusedExpired, owned.RefusedRevoked, owned.RefusedEnded, owned.RefusedNoLock,
		owned.RefusedOwner, owned.RefusedRule, owned.RefusedChanged, owned.RefusedCurrency, owned.RefusedUnpaid, owned.RefusedConfirms, owned.RefusedSuspended)
	reviewKeys(add)
	add("audit.reason.%s", staff.ReasonClosesAt, staff.ReasonValidUntil, staff.ReasonFirstAdmin, staff.ReasonWebhookFailing, staff.ReasonWebhookGone, staff.ReasonSeries)
	add("optout.%s_text", "missing", "unclear", "busy", "unavailable")
	for _, k := range []string{"malformed", "forbidden", "missing", "conflict", "invalid", "busy", "unavailable", "bug"} {
		add("failure.%s.title", k)
		add("failure.%s.help", k)
	}
	return keys
}

// Families of keys whose last part comes from the domain at run time. A key without a message falls
// back to a text that says so.
var open = regexp.MustCompile(`^(rule|fault|action|field|said)\.`)

var literal = regexp.MustCompile(`"([a-z_]+(?:\.[a-z0-9_-]+)+)"`)

func TestEveryMessageIsUsedAndEveryKeyDefined(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	en := book.Languages.Default()
	used := composed()
	for key := range used {
		if !en.Has(key) {
			t.Errorf("%q is used but not defined", key)
		}
	}
	code := sources(t)
	keys, err := literals()
	musttest.OK(t, err)
	for _, key := range keys {
		used[key] = true
	}
	for _, m := range regexp.MustCompile(`Words: "([a-z_]+)"`).FindAllStringSubmatch(code, -1) { // of lists: parts.Results
		for _, state := range []string{"empty", "none", "further"} {
			used[m[1]+"."+state+"_title"], used[m[1]+"."+state+"_text"] = true, true
		}
	}
	calls := regexp.MustCompile(`\b[TN]\((?:ctx, )?"([a-z0-9_.-]+)"[,)]|\bsay\(r, "([a-z0-9_.-]+)"[,)]`)
	for _, m := range calls.FindAllStringSubmatch(code, -1) {
		key := m[1] + m[2]
		if !en.Has(key) && !en.Has(key+".other") {
			t.Errorf("%q is used but not defined", key)
		}
	}
	loose := looseFamilies(code)
	for _, key := range en.Keys() {
		stem := strings.TrimSuffix(strings.TrimSuffix(key, ".one"), ".other")
		if !used[key] && !used[stem] && !open.MatchString(key) && !hasPrefix(key, loose) {
			t.Errorf("%q is defined but not used", key)
		}
	}
}

// looseFamilies returns the prefixes of keys that the sources compose and that composed does not
// list one by one.
func looseFamilies(code string) (list []string) {
	strict := composed()
	for _, m := range regexp.MustCompile(`"([a-z_]+\.(?:[a-z_]+\.)*)"\s*\+`).FindAllStringSubmatch(code, -1) {
		listed := false
		for key := range strict {
			listed = listed || strings.HasPrefix(key, m[1])
		}
		if !listed {
			list = append(list, m[1])
		}
	}
	return list
}

func hasPrefix(key string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// The open families are checked against the sources of the domain.
func TestRulesAndFaultsHaveWords(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	en := book.Languages.Default()
	var code strings.Builder
	for _, root := range []string{"../../domain", "../../app", "../../adapters/picture", "../../adapters/sheet", "../../web/console", "../pages"} {
		files, err := filesBelow(root)
		musttest.OK(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				raw, err := os.ReadFile(name)
				musttest.OK(t, err)
				code.Write(raw)
			}
		}
	}
	// An empty field says what to do with it. Only the API has refund_id.
	for _, m := range regexp.MustCompile(`Add\("([a-z_]+)", "rule\.required"`).FindAllStringSubmatch(code.String(), -1) {
		if !en.Has("required."+m[1]) && m[1] != "refund_id" {
			t.Errorf("required.%s has no message", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`"(rule\.[a-z_]+)"`).FindAllStringSubmatch(code.String(), -1) {
		// These are about requests of users to the API, which no form makes.
		if !en.Has(m[1]) && !slices.Contains([]string{"rule.other_shop", "rule.repeated", "rule.phone_country"}, m[1]) {
			t.Errorf("%s has no message", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`Told\("(fault\.[a-z_]+)"\)`).FindAllStringSubmatch(code.String(), -1) {
		if !en.Has(m[1]) {
			t.Errorf("%s has no message", m[1])
		}
	}
	for _, s := range template.States() {
		if !en.Has("fault.template_is." + string(s)) {
			t.Errorf("a refusal in the state %s of a template has no message", s)
		}
	}
	for _, s := range campaign.States() {
		if !en.Has("fault.campaign_is." + string(s)) {
			t.Errorf("a refusal in the state %s of a campaign has no message", s)
		}
	}
	for _, s := range []template.State{template.Draft, template.Cancelled} {
		if !en.Has("fault.grant_" + string(s)) {
			t.Errorf("lists for a template that is %s are refused without a message", s)
		}
	}
	for _, m := range regexp.MustCompile(`Action: "([a-z_]+\.[a-z_]+)"`).FindAllStringSubmatch(code.String(), -1) {
		if !en.Has("action." + m[1]) {
			t.Errorf("the action %s has no message", m[1])
		}
	}
	rules := code.String()
	for _, key := range en.Keys() {
		if strings.HasPrefix(key, "rule.") && !strings.Contains(rules, `"`+key+`"`) {
			t.Errorf("%q is defined, but nothing breaks it", key)
		}
	}
}
