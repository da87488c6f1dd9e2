package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/views/pages"
)

// Sales knows how templates sell.
type Sales interface {
	// Curve returns how the template sold, in at most so many steps.
	Curve(ctx context.Context, templateID int64, points int) (claim.Curve, error)
	// Pace returns coupons issued in each of the last seconds, the oldest first.
	Pace(ctx context.Context, templateID int64, seconds int) ([]int64, error)
}

const (
	salesPoints = 120
	paceSeconds = 60
	// salesLife bounds what any number of viewers costs: one look per template
	// and second.
	salesLife = time.Second
	maxSales  = 200
)

// salesDesk remembers each template's sales for a moment.
type salesDesk struct {
	mu   sync.Mutex
	desk map[int64]*recent[pages.Sales]
}

func (d *salesDesk) of(id int64, look func(context.Context) (pages.Sales, error)) *recent[pages.Sales] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.desk[id] == nil {
		if len(d.desk) >= maxSales || d.desk == nil {
			d.desk = map[int64]*recent[pages.Sales]{} // whoever is still watching looks again
		}
		d.desk[id] = &recent[pages.Sales]{life: salesLife, look: look}
	}
	return d.desk[id]
}

// salesOf returns nil for a draft, of which nobody can have a coupon.
func (c *Console) salesOf(ctx context.Context, t template.Template) (*pages.Sales, error) {
	if t.Stored == template.Draft {
		return nil, nil
	}
	s, err := c.sales.of(t.ID, func(ctx context.Context) (s pages.Sales, err error) {
		if s.Curve, err = c.Sales.Curve(ctx, t.ID, salesPoints); err == nil {
			s.Pace, err = c.Sales.Pace(ctx, t.ID, paceSeconds)
		}
		return s, err
	}).get(ctx)
	s.Template = t
	return &s, err
}

// showClaims answers with what of the card changes.
func (c *Console) showClaims(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	s, err := c.salesOf(r.Context(), t)
	if err != nil {
		return err
	}
	if s == nil {
		return template.ErrNotFound
	}
	if !partial(r) { // somebody has opened the address itself
		http.Redirect(w, r, "/templates/"+r.PathValue("id"), http.StatusSeeOther)
		return nil
	}
	return c.show(w, r, http.StatusOK, s.Inside())
}
