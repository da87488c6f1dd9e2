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
	var ids []int64
	r.templates(func(_ string, id int64) { ids = append(ids, id) })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// templates calls visit with every template id and its place in the rule.
func (r Rule) templates(visit func(place string, id int64)) {
	r.Conditions(func(path string, x Condition) {
		if kind, _ := ValueOf(x.Field, x.Op); kind != TemplateIDs {
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
// of the rule that does not exist or whose shop is not allowed. Both get the
// same error, so that it does not reveal which templates other shops have.
func (r Rule) CheckShops(shops map[int64]int64, allowed func(shop int64) bool) error {
	c := &checker{}
	r.templates(func(place string, id int64) {
		if shop, known := shops[id]; !known || !allowed(shop) {
			c.add(place, "rule.foreign_template", "there is no template %q in the shops that this is for; name a template of these shops", strconv.FormatInt(id, 10))
		}
	})
	return c.broken.Err()
}

// checkRule returns a [fault.Fields] unless by may use every template that the
// rule names. Staff of all shops may use any.
func (s *Service) checkRule(ctx context.Context, by staff.Actor, r Rule) error {
	ids := r.Templates()
	if len(by.Shops) == 0 || len(ids) == 0 {
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
