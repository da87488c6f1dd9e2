package template

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"dropbell/domain/fault"
)

// Limits of stacking.
const (
	MaxGroups   = 20
	MaxPerOrder = 5
)

// RefundRule is what a partial refund does about the threshold of a coupon.
type RefundRule string

// The rules. With Keep the lines that stay keep their share of the discount. With Recompute they lose it
// if they are below the threshold.
const (
	Keep      RefundRule = "keep"
	Recompute RefundRule = "recompute"
)

// Groups are names of stack groups, ordered and separated by single blanks.
type Groups string

// GroupsOf returns the groups with these names, each once.
func GroupsOf(names ...string) Groups {
	var list []string
	for _, name := range names {
		list = append(list, words(name)...)
	}
	slices.Sort(list)
	return Groups(strings.Join(slices.Compact(list), " "))
}

// List returns the names.
func (g Groups) List() []string { return strings.Fields(string(g)) }

// String returns the groups as the form shows them: "member, welcome".
func (g Groups) String() string { return strings.Join(g.List(), ", ") }

// ParseGroups reads the text that [Groups.String] returns.
func ParseGroups(s string) Groups { return GroupsOf(s) }

// Stacking says which coupons a coupon goes together with in one order, and what a partial refund
// does. The zero value stands alone, once in an order.
type Stacking struct {
	// StackGroup is the group of the coupons. Coupons of two templates go together if each of the
	// templates names the group of the other in StacksWith. Empty = they go with no other coupon.
	StackGroup string `field:"stack_group"`
	StacksWith Groups `field:"stacks_with"`
	// MaxPerOrder is how many coupons of the template an order can use; 0 means 1.
	MaxPerOrder int `field:"max_per_order,fixed"`
	// RefundRule is [Keep] if empty.
	RefundRule RefundRule `field:"refund_rule,fixed"`
}

// own returns s with its defaults, without groups that have no effect.
func (s Stacking) own() Stacking {
	if s.StackGroup == "" {
		s.StacksWith = ""
	}
	s.MaxPerOrder = cmp.Or(s.MaxPerOrder, 1)
	s.RefundRule = cmp.Or(s.RefundRule, Keep)
	return s
}

var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

func (s Stacking) check(e *fault.Fields) {
	const form = "must be names of 1 to 32 small letters, digits, - and _"
	if s.StackGroup != "" && !groupName.MatchString(s.StackGroup) {
		e.Add("stack_group", "rule.stack_group", form)
	}
	with := s.StacksWith.List()
	switch {
	case len(with) > MaxGroups:
		e.Add("stacks_with", "rule.too_many", "must have at most %d entries", MaxGroups)
	case slices.ContainsFunc(with, func(g string) bool { return !groupName.MatchString(g) }):
		e.Add("stacks_with", "rule.stack_group", form)
	case len(with) > 0 && s.StackGroup == "":
		e.Add("stack_group", "rule.stack_group_missing", "is required with stacks_with; other drops name this group")
	}
	if s.MaxPerOrder < 0 || s.MaxPerOrder > MaxPerOrder {
		e.Add("max_per_order", "rule.max_per_order", "must be between 1 and %d", MaxPerOrder)
	}
	switch s.RefundRule {
	case "", Keep, Recompute:
	default:
		e.Add("refund_rule", "rule.refund_rule", "must be keep or recompute")
	}
}
