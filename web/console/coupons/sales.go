package coupons

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// Curves reads the sales of templates over time.
type Curves interface {
	// Curve returns how the template sold, in at most so many steps.
	Curve(ctx context.Context, templateID int64, points int) (claim.Curve, error)
	// Pace returns coupons issued in each of the last complete seconds since the opening, the oldest first.
	Pace(ctx context.Context, templateID int64, opensAt time.Time, seconds int) ([]int64, error)
	// Waits returns the counters of the template's waitlist.
	Waits(ctx context.Context, templateID int64) (waitlist.Sheet, error)
}

const (
	salesPoints = 120
	paceSeconds = 60
	// salesLife is how long a reading of sales is cached: one look per template and second serves
	// any number of viewers.
	salesLife = time.Second
	maxSales  = 200
	// historyLife is the greatest age of the events and earlier drops shown with curves.
	historyLife = 10 * time.Second
	// moneyLife is the greatest age of the drop's orders.
	moneyLife = 2 * time.Second
)

// SalesDeps are the dependencies of [Sales].
type SalesDeps struct {
	// Templates are read on behalf of the program: one look serves every viewer.
	Templates shell.Templates
	// Stock sums up where coupons are.
	Stock   gate.Accounts
	Tallies Tallies
	Curves  Curves
	// Histories reads the events and earlier drops shown with curves.
	Histories Histories
	// Doors counts the refused claims of drops with doors.
	Doors door.Counter
	// Paces reads the claim gate's rate of accepted claims; nil = there is no gate.
	Paces Paces
}

// Histories reads the events and earlier drops shown with curves, and what drops earned.
type Histories interface {
	History(ctx context.Context, t template.Template) (report.History, error)
	// PastOf returns the figures and curves of a drop that another drop is compared with.
	PastOf(ctx context.Context, t template.Template) (report.Past, error)
	// MoneyOf returns what the drop earned.
	MoneyOf(ctx context.Context, t template.Template) (report.Money, error)
}

// Sales loads the sales of templates, and caches them for salesLife.
type Sales struct {
	SalesDeps
	mu     sync.Mutex
	recent map[int64]*recentSales
}

// recentSales are one template's sales with their history.
type recentSales struct {
	sales   *shell.Recent[droppages.Sales]
	history *shell.Recent[report.History]
	money   *shell.Recent[report.Money]
	past    *shell.Recent[report.Past]
}

// NewSales returns the sales of all templates.
func NewSales(d SalesDeps) *Sales { return &Sales{SalesDeps: d} }

func (d *Sales) recently(t template.Template) *recentSales {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recent[t.ID] == nil {
		if len(d.recent) >= maxSales || d.recent == nil {
			d.recent = map[int64]*recentSales{} // the remaining viewers load theirs again
		}
		d.recent[t.ID] = &recentSales{
			sales: shell.NewRecent(salesLife, func(ctx context.Context) (droppages.Sales, error) { return d.look(ctx, t.ID) }),
			history: shell.NewRecent(historyLife, func(ctx context.Context) (report.History, error) {
				now, err := d.Templates.Template(ctx, staff.System(), t.ID)
				if err != nil {
					return report.History{}, err
				}
				return d.Histories.History(ctx, now)
			}),
			money: shell.NewRecent(moneyLife, func(ctx context.Context) (report.Money, error) {
				now, err := d.Templates.Template(ctx, staff.System(), t.ID)
				if err != nil {
					return report.Money{}, err
				}
				return d.Histories.MoneyOf(ctx, now)
			}),
			past: shell.NewRecent(historyLife, func(ctx context.Context) (report.Past, error) {
				now, err := d.Templates.Template(ctx, staff.System(), t.ID)
				if err != nil {
					return report.Past{}, err
				}
				return d.Histories.PastOf(ctx, now)
			}),
		}
	}
	return d.recent[t.ID]
}

// Of returns the sales of the template; nil for a draft, which has none.
func (d *Sales) Of(ctx context.Context, t template.Template) (*droppages.Sales, error) {
	if t.Stored == template.Draft {
		return nil, nil
	}
	recent := d.recently(t)
	s, err := recent.sales.Get(ctx)
	if err != nil {
		return &s, err
	}
	if s.Money.Money, err = recent.money.Get(ctx); err != nil {
		return &s, err
	}
	h, err := recent.history.Get(ctx)
	s.Events, s.Earlier = h.Events, h.Earlier
	t.Stock, t.Issued, t.Held = s.Total, s.Issued, s.Wait.Held // of the instant at which the rest was looked at
	s.Template = t
	s.Money.BudgetURL, s.Money.Drop = fmt.Sprintf("/budgets?scope=drop&subject=%d", t.ID), t.ID
	return &s, err
}

// Compare sets the drop that the sales are compared with, instead of the shop's earlier drops.
func (d *Sales) Compare(ctx context.Context, s *droppages.Sales, with template.Template) error {
	past, err := d.recently(with).past.Get(ctx)
	s.Earlier, s.With = []report.Past{past}, with.ID
	return err
}

// look reads the gate or the database, whichever decides the claims. An accepted claim is in the
// gate's shards at once, and in the database after it is written.
func (d *Sales) look(ctx context.Context, id int64) (droppages.Sales, error) {
	t, err := d.Templates.Template(ctx, staff.System(), id)
	if err != nil {
		return droppages.Sales{}, err
	}
	a, err := d.Stock.Of(ctx, t)
	s := droppages.Sales{Total: a.Total, Issued: a.Issued, Writing: a.Writing, Away: a.Away}
	if err != nil {
		return s, err
	}
	if t.Waits() {
		if s.Wait, err = d.Curves.Waits(ctx, t.ID); err != nil {
			return s, err
		}
		s.Wait.Held = a.Held // of the same instant as the other numbers
	}
	if len(t.Doors) > 0 {
		if s.Refused, err = d.Doors.DoorRefusals(ctx, t.ID); err != nil {
			return s, err
		}
	}
	if s.Tally, err = d.Tallies.Tally(ctx, t.ID); err != nil {
		return s, err
	}
	if s.Curve, err = d.Curves.Curve(ctx, t.ID, salesPoints); err != nil {
		return s, err
	}
	if a.Seen() && d.Paces != nil {
		passed := int(a.Plan.Now.Unix() - t.FirstOpening().Unix())
		s.Pace, err = d.Paces.Pace(ctx, t.ID, a.Plan.Shards, a.Plan.Now, min(paceSeconds, max(0, passed)))
		if fault.KindOf(err) != fault.Unavailable {
			return s, err
		}
	}
	s.Pace, err = d.Curves.Pace(ctx, t.ID, t.FirstOpening(), paceSeconds)
	return s, err
}

// showClaims answers with the changed parts of the card.
func (h *handlers) showClaims(w http.ResponseWriter, r *http.Request, t template.Template) error {
	s, err := h.Sales.Of(r.Context(), t)
	if err != nil {
		return err
	}
	if s == nil {
		return template.ErrNotFound
	}
	if !shell.Partial(r) { // the address was opened as a page
		http.Redirect(w, r, "/templates/"+r.PathValue("id"), http.StatusSeeOther)
		return nil
	}
	s.Live = r.FormValue("tab") == "live"
	with, err := shell.Compared(r, h.Templates, t)
	if err == nil && with != nil {
		err = h.Sales.Compare(r.Context(), s, *with)
	}
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, droppages.ClaimsCard(*s))
}

// Paces reads the claim gate's rate of accepted claims.
type Paces interface {
	// Pace returns the claims accepted in each of the last seconds completed at now, the oldest
	// second first. If Redis does not answer, the error is a fault of kind Unavailable.
	Pace(ctx context.Context, templateID int64, shards int, now time.Time, seconds int) ([]int64, error)
}

// Shards returns the distribution of coupons over a gate's shards; nil for a template that has no
// gate.
func (d *Sales) Shards(ctx context.Context, t template.Template) (*droppages.StockShards, error) {
	if t.ClaimMode != template.Gate {
		return nil, nil
	}
	a, err := d.Stock.Of(ctx, t)
	if err != nil || a.Plan.Shards == 0 {
		return nil, err
	}
	return shardsOf(a, t.Zone()), nil
}

func shardsOf(a gate.Account, zone *time.Location) *droppages.StockShards {
	return &droppages.StockShards{State: a.Plan.State, Reason: a.Plan.Reason, BuiltAt: a.Plan.BuiltAt, Zone: zone, Away: a.Away,
		Ledger: a.Ledger, Shards: a.Shards}
}
