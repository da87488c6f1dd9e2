package segment

import (
	"context"
	"slices"
	"strconv"

	"dropbell/domain/staff"
)

// TemplateStore returns the shops of templates.
type TemplateStore interface {
	// TemplateShops returns the shop of each template by its id; a template that
	// does not exist is absent.
	TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error)
}

// Templates returns the ids of the templates that the rule names, ascending,
// each once.
func (r Rule) Templates() []int64 {
	return r.named(TemplateIDs)
}

// Shops returns the numbers of the shops that the rule names, ascending, each once.
func (r Rule) Shops() []int64 { return r.named(ShopNumbers) }

func (r Rule) named(kind Value) []int64 {
	var ids []int64
	r.ids(kind, func(_ string, id int64) { ids = append(ids, id) })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ids calls visit with every value of the kind, which are numbers, and its place in the rule.
func (r Rule) ids(kind Value, visit func(place string, id int64)) {
	r.Conditions(func(path string, x Condition) {
		if k, _ := ValueOf(x.Field, x.Op); k != kind {
			return
		}
		for i, v := range x.Values {
			if id, err := strconv.ParseInt(v, 10, 64); err == nil {
				visit(path+".values["+strconv.Itoa(i)+"]", id)
			}
		}
	})
}

// CheckShops returns a [fault.Fields] that names, by its place, every template
// of the rule that does not exist or whose shop is not allowed, and every shop
// that is not allowed. Both kinds of templates get the same error, so that it does not reveal which templates other shops have.
func (r Rule) CheckShops(shops map[int64]int64, allowed func(shop int64) bool) error {
	c := &checker{}
	r.ids(ShopNumbers, func(place string, shop int64) {
		if !allowed(shop) {
			c.add(place, "rule.foreign_shop", "shop %q is none of the shops that this is for; name one of these shops", strconv.FormatInt(shop, 10))
		}
	})
	r.ids(TemplateIDs, func(place string, id int64) {
		if shop, known := shops[id]; !known || !allowed(shop) {
			c.add(place, "rule.foreign_template", "there is no template %q in the shops that this is for; name a template of these shops", strconv.FormatInt(id, 10))
		}
	})
	return c.broken.Err()
}

// checkRule returns a [fault.Fields] unless by may use every template and shop that the
// rule names. Staff of all shops may use any.
func (s *Service) checkRule(ctx context.Context, by staff.Actor, r Rule) error {
	ids := r.Templates()
	if len(by.Shops) == 0 || len(ids)+len(r.Shops()) == 0 {
		return nil
	}
	shops, err := s.Store.TemplateShops(ctx, ids)
	if err != nil {
		return err
	}
	return r.CheckShops(shops, func(shop int64) bool { return slices.Contains(by.Shops, shop) })
}

// checkSpec checks the spec and the shops of its templates.
func (s *Service) checkSpec(ctx context.Context, by staff.Actor, spec Spec) error {
	if err := spec.check(); err != nil {
		return err
	}
	return s.checkRule(ctx, by, spec.Rule)
}
