package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
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
	desk map[int64]*shell.Recent[droppages.Sales]
}

func (d *salesDesk) of(id int64, look func(context.Context) (droppages.Sales, error)) *shell.Recent[droppages.Sales] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.desk[id] == nil {
		if len(d.desk) >= maxSales || d.desk == nil {
			d.desk = map[int64]*shell.Recent[droppages.Sales]{} // whoever is still watching looks again
		}
		d.desk[id] = shell.NewRecent(salesLife, look)
	}
	return d.desk[id]
}

// salesOf returns nil for a draft, of which nobody can have a coupon.
func (c *Console) salesOf(ctx context.Context, t template.Template) (*droppages.Sales, error) {
	if t.Stored == template.Draft {
		return nil, nil
	}
	s, err := c.sales.of(t.ID, func(ctx context.Context) (droppages.Sales, error) { return c.lookAtSales(ctx, t.ID) }).Get(ctx)
	t.Stock, t.Issued = s.Total, s.Issued // of the instant at which the rest was looked at
	s.Template = t
	return &s, err
}

// lookAtSales asks who decides the claims: what a gate has given away is on
// its shelves at once and in the database when it is written.
func (c *Console) lookAtSales(ctx context.Context, id int64) (droppages.Sales, error) {
	t, err := c.Templates.Template(ctx, staff.System(), id)
	if err != nil {
		return droppages.Sales{}, err
	}
	a, err := c.Stock.Of(ctx, t)
	s := droppages.Sales{Total: a.Total, Issued: a.Issued, Writing: a.Writing, Away: a.Away}
	if err != nil {
		return s, err
	}
	if s.Tally, err = c.Tallies.Tally(ctx, t.ID); err != nil {
		return s, err
	}
	if s.Curve, err = c.Sales.Curve(ctx, t.ID, salesPoints); err != nil {
		return s, err
	}
	if a.Seen() && c.Paces != nil {
		s.Pace, err = c.Paces.Pace(ctx, t.ID, a.Plan.Shards, a.Plan.Now, paceSeconds)
		if fault.KindOf(err) != fault.Unavailable {
			return s, err
		}
	}
	s.Pace, err = c.Sales.Pace(ctx, t.ID, paceSeconds)
	return s, err
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
	if !shell.Partial(r) { // somebody has opened the address itself
		http.Redirect(w, r, "/templates/"+r.PathValue("id"), http.StatusSeeOther)
		return nil
	}
	return c.Show(w, r, http.StatusOK, droppages.ClaimsCard(*s))
}
