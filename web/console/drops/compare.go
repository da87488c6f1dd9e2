package drops

import (
	"context"
	"net/http"
	"slices"

	"dropbell/domain/report"
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

// dropBefore returns the drop before of [report.Service.Before], nil if there is none.
func (h *handlers) dropBefore(ctx context.Context, t template.Template) (*template.Template, error) {
	if t.Stored == template.Draft {
		return nil, nil
	}
	list, err := h.Reports.Before(ctx, t, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
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
	if !shell.Partial(r) && t.Stored != template.Draft {
		if p.Pair, err = h.pair(r, t, with); err != nil {
			return err
		}
	}
	if p.With == 0 && len(p.Pair) == 2 && slices.ContainsFunc(p.Others, func(o template.Template) bool { return o.ID == p.Pair[1].Template.ID }) {
		p.With = p.Pair[1].Template.ID
	}
	return h.Either(w, r, p.Fragment(), p.Page())
}

// pair returns the figures of the drop and of the chosen drop, nil = the drop before. Without another drop there are none.
func (h *handlers) pair(r *http.Request, t template.Template, with *template.Template) (pair []report.Figures, err error) {
	if with == nil {
		if with, err = h.dropBefore(r.Context(), t); err != nil || with == nil {
			return nil, err
		}
	}
	for _, id := range []int64{t.ID, with.ID} {
		f, err := h.Reports.FiguresOf(r.Context(), shell.Actor(r), id)
		if err != nil {
			return nil, err
		}
		pair = append(pair, f)
	}
	return pair, nil
}
