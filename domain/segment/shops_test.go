package segment_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

// everyTemplate is a rule with each operator that names templates, the ids from
// first on, in groups of every kind.
func everyTemplate(first int) (rule segment.Rule, ids []int64) {
	rule = segment.Rule{Match: segment.All, Rules: []segment.Rule{segment.Leaf(segment.Locale, "", segment.OneOf, "12")}}
	for i, f := range segment.Fields() {
		for _, op := range segment.Ops(f) {
			if kind, _ := segment.ValueOf(f, op); kind == segment.TemplateIDs {
				id := int64(first + len(ids))
				ids = append(ids, id)
				rule.Rules = append(rule.Rules, segment.Rule{Match: segment.Matches()[i%3], Rules: []segment.Rule{segment.Leaf(f, "", op, fmt.Sprint(id))}})
			}
		}
	}
	return rule, ids
}

func TestEveryTemplateOfARuleIsFound(t *testing.T) {
	rule, ids := everyTemplate(1000)
	if len(ids) < 8 || !slices.Equal(rule.Templates(), ids) {
		t.Errorf("found %v, want %v", rule.Templates(), ids)
	}
	for i, id := range ids {
		shops := map[int64]int64{}
		for _, other := range ids {
			shops[other] = 10
		}
		shops[id] = 11
		var broken *fault.Fields
		err := rule.CheckShops(shops, func(shop int64) bool { return shop == 10 })
		if !errors.As(err, &broken) || len(broken.List) != 1 || broken.List[0].Key != "rule.foreign_template" {
			t.Errorf("template %d of another shop (condition %d): %v", id, i, err)
		}
		foreign := err.Error()
		delete(shops, id)
		if err := rule.CheckShops(shops, func(shop int64) bool { return shop == 10 }); err == nil || err.Error() != foreign {
			t.Errorf("an unknown template is told apart from one of another shop: %v, %s", err, foreign)
		}
	}
}

// Staff who are limited to shops cannot use a segment to name a template of another
// shop or to count its users.
func TestTemplatesOfOtherShopsAreRefused(t *testing.T) {
	mine := segment.Leaf(segment.Reserved, "", segment.Template, "7")
	theirs := segment.Rule{Match: segment.None, Rules: []segment.Rule{segment.Leaf(segment.Coupon, "", segment.NeverHad, "7", "8")}}
	limited := staff.Actor{Label: "staff:4", Role: staff.Marketer, Shops: []int64{10}}
	store := &fakeStore{shops: map[int64]int64{7: 10, 8: 11}}
	s := &segment.Service{Store: store, Jobs: &fakeJobs{}}
	g, err := s.Create(t.Context(), marketer, segment.Spec{Name: "All shops", Rule: theirs}, "")
	if err != nil {
		t.Fatal(err)
	}
	calls := func(rule segment.Rule) map[string]error {
		_, estimate := s.Estimate(t.Context(), limited, rule)
		_, create := s.Create(t.Context(), limited, segment.Spec{Name: "x", Rule: rule}, "")
		_, save := s.Save(t.Context(), limited, g.ID, g.Version, segment.Spec{Name: "x", Rule: rule})
		return map[string]error{"estimate": estimate, "create": create, "save": save}
	}
	_, count := s.Count(t.Context(), limited, g.ID, "")
	_, clone := s.Clone(t.Context(), limited, g.ID, "x")
	refused := calls(theirs)
	refused["count"], refused["clone"] = count, clone
	for what, err := range refused {
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range calls(mine) {
		if err != nil {
			t.Errorf("%s of the own shop: %v", what, err)
		}
	}
}
