package search

import (
	"cmp"
	"errors"
	"net/http"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// unseen reports whether the object is not there, not for the viewer, or in a database that does not
// answer.
func unseen(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.NotFound || kind == fault.Denied || errors.Is(err, shell.ErrSilent)
}

// drops returns the drops of all databases that q selects, the last opening first.
func (h *handlers) drops(r *http.Request, q template.Query) ([]template.Template, error) {
	return shell.All(h.Shell, r, h.cells, func(d Deps, r *http.Request) ([]template.Template, error) {
		return d.Templates.Templates(r.Context(), shell.Actor(r), q)
	}, func(a, b template.Template) int { return cmp.Or(b.OpensAt.Compare(a.OpensAt), cmp.Compare(b.ID, a.ID)) }, q.Limit)
}

func (h *handlers) drop(r *http.Request, id int64) (template.Template, error) {
	t, _, err := shell.First(h.Shell, r, h.cells, func(d Deps, r *http.Request) (template.Template, error) {
		return d.Templates.Template(r.Context(), shell.Actor(r), id)
	})
	return t, err
}

// campaigns returns the campaigns of all databases that q selects, the newest first.
func (h *handlers) campaigns(r *http.Request, q campaign.Query) ([]campaign.Status, error) {
	return shell.All(h.Shell, r, h.cells, func(d Deps, r *http.Request) ([]campaign.Status, error) {
		return d.Campaigns.Campaigns(r.Context(), shell.Actor(r), q)
	}, func(a, b campaign.Status) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	}, q.Limit)
}

func (h *handlers) campaign(r *http.Request, id int64) (campaign.Status, error) {
	s, _, err := shell.First(h.Shell, r, h.cells, func(d Deps, r *http.Request) (campaign.Status, error) {
		return d.Campaigns.Campaign(r.Context(), shell.Actor(r), id)
	})
	return s, err
}

// coupons returns the coupons of all databases that q selects, the newest first.
func (h *handlers) coupons(r *http.Request, q coupon.Query) ([]coupon.Listed, error) {
	return shell.All(h.Shell, r, h.cells, func(d Deps, r *http.Request) ([]coupon.Listed, error) {
		return d.Coupons.List(r.Context(), shell.Actor(r), q)
	}, func(a, b coupon.Listed) int {
		return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), cmp.Compare(b.ID, a.ID))
	}, q.Limit)
}

func (h *handlers) coupon(r *http.Request, id int64) (coupon.Listed, error) {
	l, _, err := shell.First(h.Shell, r, h.cells, func(d Deps, r *http.Request) (coupon.Listed, error) {
		l, _, err := d.Coupons.Coupon(r.Context(), shell.Actor(r), id)
		return l, err
	})
	return l, err
}
