package drops

import (
	"context"
	"net/http"
	"slices"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// compare sets the drop that the page's drop is compared with: the chosen drop, otherwise the
// previous drop of the shop. Its figures come from the same counters as the figures of the page.
func (h *handlers) compare(r *http.Request, p *droppages.Template) error {
	ctx, t := r.Context(), p.Drop.Template
	with, err := shell.Compared(r, h.Templates, t)
	if err != nil {
		return err
	}
	if with != nil && p.Sales != nil {
		p.With = with.ID
		if err := h.Sales.Compare(ctx, p.Sales, *with); err != nil {
			return err
		}
	} else if with, err = h.dropBefore(ctx, t); err != nil || with == nil {
		return err
	}
	board, err := h.Board.Board(ctx, with.ID)
	if err != nil {
		return err
	}
	sales, err := h.Sales.Of(ctx, *with)
	j := droppages.JourneyOf(droppages.Drop{Template: *with, Board: board}, sales)
	j.Chosen = p.With != 0
	p.Before = &j
	return err
}

// dropBefore returns the previous drop of the same shop, nil if there is none.
func (h *handlers) dropBefore(ctx context.Context, t template.Template) (*template.Template, error) {
	if t.Stored == template.Draft {
		return nil, nil
	}
	until := t.OpensAt
	if now := h.Now(); until.After(now) {
		until = now
	}
	list, err := h.Templates.Templates(ctx, staff.System(), template.Query{Shops: []int64{t.ShopNumber}, To: &until, Descending: true, Limit: 3,
		States: []template.State{template.Open, template.SoldOut, template.Paused, template.Closed}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(o template.Template) bool { return o.ID != t.ID && o.OpensAt.Before(t.OpensAt) })
	if i < 0 {
		return nil, nil
	}
	return &list[i], nil
}

// chooseOther asks which drop the drop is compared with.
func (h *handlers) chooseOther(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p := droppages.ChooseOther{Template: t, Tab: droppages.TabAt(t, h.Now())}
	if tab := droppages.Tab(r.FormValue("tab")); slices.Contains(droppages.Tabs(), tab) {
		p.Tab = tab
	}
	with, err := shell.Compared(r, h.Templates, t)
	if err != nil {
		return err
	}
	if with != nil {
		p.With = with.ID
	}
	if p.Others, err = h.Reports.Others(r.Context(), shell.Actor(r), t.ID); err != nil {
		return err
	}
	return h.Either(w, r, p.Fragment(), p.Page())
}
