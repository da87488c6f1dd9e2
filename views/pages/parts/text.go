// Package parts holds the parts that pages of several subjects show: a refused request, a
// confirmation, two versions of one record, jobs, bars, filters, links to other subjects, and their
// common texts.
//
// Each package next to this package holds the pages of one subject. A page is a struct with all its
// content. Its Page method renders it; its other methods render parts of it. Subjects import this
// package and never each other.
package parts

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/staff"
	"dropbell/views/ui"
)

// ActorName drops the label from "staff:1 Ada".
func ActorName(ctx context.Context, actor string) string {
	label, name, _ := strings.Cut(actor, " ")
	if label == "system" {
		return ui.T(ctx, "actor.system")
	}
	if label == "unknown" {
		return ui.T(ctx, "actor.unknown")
	}
	if strings.HasPrefix(label, "key:") && name == staff.ConfiguredKey {
		return ui.T(ctx, "actor.configured_key")
	}
	if strings.HasPrefix(label, "key:") {
		return ui.T(ctx, "actor.key", name)
	}
	if name == "" {
		return label
	}
	return name
}

// AuditReason returns the reason of a change in the words of the member who made it. A reason given
// by the system is translated into the viewer's language.
func AuditReason(ctx context.Context, r staff.Record) string {
	if reason := r.SystemReason(); reason != "" {
		return ui.T(ctx, "audit.reason."+reason)
	}
	return r.Reason
}

// SystemReasons returns the reasons of the system whose words contain text, in any case.
func SystemReasons(ctx context.Context, text string) (list []string) {
	for _, reason := range staff.SystemReasons() {
		if text != "" && strings.Contains(strings.ToLower(ui.T(ctx, "audit.reason."+reason)), strings.ToLower(text)) {
			list = append(list, reason)
		}
	}
	return list
}

// ActionText falls back to the action's own name if it has no text.
func ActionText(ctx context.Context, action string) string {
	if key := "action." + action; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return action
}

// ActionLabel names an action without its object. An action whose text needs an object has a
// separate text for this.
func ActionLabel(ctx context.Context, action string) string {
	if key := "audit.option." + action; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	text := strings.TrimRight(ActionText(ctx, action), ":：")
	kind, _, _ := strings.Cut(action, ".")
	if key := "kind_of." + kind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key) + " · " + text
	}
	return text
}

// ObjectText names the object of a record.
func ObjectText(ctx context.Context, r staff.Record) string {
	if r.ObjectID == "" {
		return ""
	}
	if key := "object." + r.ObjectKind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key, r.ObjectID)
	}
	return r.ObjectKind + " " + r.ObjectID
}

// ObjectURL returns the page of a record's object; "" if it has none.
func ObjectURL(r staff.Record) string {
	switch r.ObjectKind {
	case "template":
		return "/templates/" + r.ObjectID
	case "user":
		return "/users/" + r.ObjectID
	case "campaign":
		return "/campaigns/" + r.ObjectID
	case "job":
		return "/jobs/" + r.ObjectID
	case "coupon":
		return "/coupons/" + r.ObjectID
	case "review":
		return "/reviews/" + r.ObjectID
	case "webhook":
		return "/webhooks/" + r.ObjectID
	case "provider":
		return "/providers/" + r.ObjectID + "/edit"
	}
	return ""
}

// ID writes the number of a row, without the separators of thousands.
func ID(n int64) string { return fmt.Sprint(n) }
