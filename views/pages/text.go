// Package pages holds the console's pages. Each is a struct with everything it
// shows; its Page method draws it, its other methods parts of it.
package pages

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
	if strings.HasPrefix(label, "key:") {
		return ui.T(ctx, "actor.key", name)
	}
	if name == "" {
		return label
	}
	return name
}

// auditReason is why something was done, in the words of who did it; what the
// system says is put into the viewer's language.
func auditReason(ctx context.Context, r staff.Record) string {
	if reason := r.SystemReason(); reason != "" {
		return ui.T(ctx, "audit.reason."+reason)
	}
	return r.Reason
}

// SystemReasons returns those reasons of the system whose words contain text,
// in any case.
func SystemReasons(ctx context.Context, text string) (list []string) {
	for _, reason := range staff.SystemReasons() {
		if text != "" && strings.Contains(strings.ToLower(ui.T(ctx, "audit.reason."+reason)), strings.ToLower(text)) {
			list = append(list, reason)
		}
	}
	return list
}

// actionText falls back to the action's own name: whoever adds one may not
// have had the words for it.
func actionText(ctx context.Context, action string) string {
	if key := "action." + action; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return action
}

// actionLabel names an action without a sentence around it. Words that want a
// name behind them have others for this.
func actionLabel(ctx context.Context, action string) string {
	if key := "audit.option." + action; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	text := strings.TrimRight(actionText(ctx, action), ":：")
	kind, _, _ := strings.Cut(action, ".")
	if key := "kind_of." + kind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key) + " · " + text
	}
	return text
}

func objectText(ctx context.Context, r staff.Record) string {
	if r.ObjectID == "" {
		return ""
	}
	if key := "object." + r.ObjectKind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key, r.ObjectID)
	}
	return r.ObjectKind + " " + r.ObjectID
}

func objectURL(r staff.Record) string {
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
	}
	return ""
}

func id(n int64) string { return fmt.Sprint(n) }
