package access

import (
	"context"
	"slices"

	"dropbell/domain/staff"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// An AuditFilter selects records; its fields are the parameters of the address.
type AuditFilter struct {
	Kind, Object, Actor, Action, Text, Shop, From, To string
	// Security selects entries that concern security.
	Security bool
}

// Active reports whether the filter selects anything.
func (f AuditFilter) Active() bool { return f != AuditFilter{} }

// set reports whether a condition other than the search text is set.
func (f AuditFilter) set() bool {
	f.Text = ""
	return f.Active()
}

// runs divides the records into runs of equal changes to objects of one kind.
func (p Audit) runs() (list [][]staff.Record) {
	same := func(a, b staff.Record) bool {
		return a.Actor == b.Actor && a.Action == b.Action && a.ObjectKind == b.ObjectKind && a.ShopNumber == b.ShopNumber && a.Reason == b.Reason
	}
	for i, r := range p.List {
		if i == 0 || !same(p.List[i-1], r) {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], r)
	}
	return list
}

// actionOptions lists the recorded actions, and the action in the address.
func (p Audit) actionOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "audit.all_actions")}}
	names := p.Actions
	if slices.Contains(names, "campaign.approve") && !slices.Contains(names, "campaign.publish") { // to approve is to publish
		names = append(slices.Clone(names), "campaign.publish")
	}
	if p.Filter.Action != "" && !slices.Contains(names, p.Filter.Action) {
		names = append(slices.Clone(names), p.Filter.Action)
	}
	for _, a := range names {
		list = append(list, ui.Option{Value: a, Label: parts.ActionLabel(ctx, a)})
	}
	return list
}

// kindOptions are the kinds of objects in the audit log.
func kindOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "audit.all_kinds")}}
	for _, k := range []string{"template", "campaign", "shop", "staff", "key", "channel", "dead_message", "dead_letters", "user", "segment", "coupon", "review", "job", "webhook", "provider", "destination", "model", "series", "recipe", "console", "queue", "address", "suppression"} {
		list = append(list, ui.Option{Value: k, Label: ui.T(ctx, "kind_of."+k)})
	}
	return list
}
