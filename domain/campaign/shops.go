package campaign

import (
	"context"
	"slices"
	"strconv"

	"dropbell/domain/fault"
	"dropbell/domain/segment"
)

// ErrOtherShop fails a campaign of a shop whose audience or coupon is defined by a template of
// another shop.
var ErrOtherShop = fault.New(fault.Conflict, "audience_other_shop", "the audience or the coupon of the campaign is about a template of another shop; create a campaign that uses templates of its own shop")

// templates returns the ids of the templates that define the audience and the granted coupon,
// ascending, each once.
func (s Snapshot) templates() []int64 {
	ids := []int64{s.audienceTemplate(), s.GrantTemplate}
	if s.Rule != nil {
		ids = append(ids, s.Rule.Rule.Templates()...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id int64) bool { return id == 0 })
}

// checkShops returns a [fault.Fields] that names every template that does not belong to the
// campaign's shop. A campaign without a shop may be about any template; only staff of all shops
// can have such a campaign.
func (s Snapshot) checkShops(shops map[int64]int64) error {
	e := &fault.Fields{}
	if s.Shop == 0 {
		return nil
	}
	field := "audience." + string(s.Audience.Kind)
	if id := s.audienceTemplate(); id != 0 && shops[id] != s.Shop {
		e.Add(field, "rule.other_shop", "belongs to another shop")
	}
	if id := s.GrantTemplate; id != 0 && shops[id] != s.Shop {
		e.Add("grant_template_id", "rule.other_shop", "belongs to another shop")
	}
	if s.Rule == nil {
		return e.Err()
	}
	for _, id := range s.Rule.Rule.Templates() {
		if shops[id] != s.Shop {
			e.Add(field, "rule.audience_foreign_template", "names template %q, which the campaign's shop does not have; choose a segment about templates of this shop", strconv.FormatInt(id, 10))
		}
	}
	if slices.ContainsFunc(s.Rule.Rule.Shops(), func(shop int64) bool { return shop != s.Shop }) {
		e.Add(field, "rule.audience_foreign_shop", "is about another shop than the campaign's; choose a segment about this shop")
	}
	return e.Err()
}

// CheckShops checks that everything that a is about belongs to its shop.
func CheckShops(ctx context.Context, store segment.TemplateStore, a Snapshot) error {
	ids := a.templates()
	if a.Shop == 0 || len(ids) == 0 && (a.Rule == nil || len(a.Rule.Rule.Shops()) == 0) {
		return nil
	}
	shops, err := store.TemplateShops(ctx, ids)
	if err != nil {
		return err
	}
	return a.checkShops(shops)
}

// checkOwn returns [ErrOtherShop] unless the audience to be cut is defined by templates of the
// campaign's shop alone. The segment, or the shop of a draft template, may have changed since the
// campaign was published.
func (l *Launcher) checkOwn(ctx context.Context, cut Cut) error {
	err := CheckShops(ctx, l.Store, Snapshot{Spec: cut.Spec, Rule: cut.Rule})
	if fault.KindOf(err) == fault.Invalid {
		return ErrOtherShop
	}
	return err
}
