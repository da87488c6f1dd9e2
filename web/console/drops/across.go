package drops

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// withOthers sets the handlers of all databases, which lists ask and which serve forms about their shops.
func (h *handlers) withOthers() {
	h.cells = []*handlers{h}
	for _, d := range h.Others {
		h.cells = append(h.cells, newHandlers(h.Shell, d))
	}
	for _, o := range h.cells {
		o.cells = h.cells
	}
}

// at returns the handlers of the database that has the shop of a form.
func (h *handlers) at(values map[string]string) (*handlers, error) {
	place, err := h.CellOf(values["shop_number"])
	return h.cells[place], err
}

// templates returns the drops of all databases that q selects, in its order.
func (h *handlers) templates(r *http.Request, by staff.Actor, q template.Query) ([]template.Template, error) {
	return shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]template.Template, error) {
		return h.Templates.Templates(r.Context(), by, q)
	}, byOpening(q.Descending), q.Limit)
}

// template returns a drop with the place of its database.
func (h *handlers) template(r *http.Request, id int64) (template.Template, int, error) {
	return shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (template.Template, error) {
		return h.Templates.Template(r.Context(), shell.Actor(r), id)
	})
}

// model returns a saved drop with the place of its database.
func (h *handlers) model(r *http.Request, id int64) (template.Model, int, error) {
	return shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (template.Model, error) {
		return h.Models.Model(r.Context(), shell.Actor(r), id)
	})
}

// savedModels returns the saved drops of all databases by name.
func (h *handlers) savedModels(r *http.Request) ([]template.Model, error) {
	return shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]template.Model, error) {
		return h.Models.Of(r.Context(), shell.Actor(r))
	}, func(a, b template.Model) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
	}, 0)
}

// overviewPage returns the first page with the drops and the problems of all databases.
func (h *handlers) overviewPage(r *http.Request) (p droppages.Overview, _ error) {
	if err := h.UseShopsZone(r, 0); err != nil {
		return p, err
	}
	got, err := shell.Across(h.Shell, r, h.cells, (*handlers).ownOverview)
	if err != nil {
		return p, err
	}
	p = *got[0]
	if len(got) == 1 {
		return p, nil
	}
	p.Attention, p.Tasks = h.concernsOf(r, 0, p.Attention), h.concernsOf(r, 0, p.Tasks)
	for n, o := range got[1:] {
		if o != nil {
			p = joinOverviews(p, *o)
			p.Attention = joinConcerns(p.Attention, h.concernsOf(r, n+1, o.Attention))
			p.Tasks = joinConcerns(p.Tasks, h.concernsOf(r, n+1, o.Tasks))
		}
	}
	p.Attention = bySeverity(p.Attention)
	return p, nil
}

// concernsOf returns the entries of database n; their links name it where the page behind needs it.
func (h *handlers) concernsOf(r *http.Request, n int, list []droppages.Attention) []droppages.Attention {
	for i, a := range list {
		list[i].URL = h.InCell(r, n, a.URL)
	}
	return list
}

// joinConcerns adds the entries of more; the state of a channel is the same in every database.
func joinConcerns(list, more []droppages.Attention) []droppages.Attention {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// bySeverity puts failures before warnings.
func bySeverity(list []droppages.Attention) []droppages.Attention {
	slices.SortStableFunc(list, func(a, b droppages.Attention) int { return ui.Severity(a.Tone) - ui.Severity(b.Tone) })
	return list
}

// byOpening orders drops as a database does; latest is whether the last opening comes first.
func byOpening(latest bool) func(a, b template.Template) int {
	return func(a, b template.Template) int {
		order := cmp.Or(a.OpensAt.Compare(b.OpensAt), cmp.Compare(a.ID, b.ID))
		if latest {
			return -order
		}
		return order
	}
}

// joinOverviews adds the drops and figures of another database to p.
func joinOverviews(p, o droppages.Overview) droppages.Overview {
	join := func(a, b []droppages.Drop, latest bool, limit int) []droppages.Drop {
		order := byOpening(latest)
		all := shell.Merged([]*[]droppages.Drop{&a, &b}, func(a, b droppages.Drop) int { return order(a.Template, b.Template) }, 0)
		all = slices.CompactFunc(all, func(a, b droppages.Drop) bool { return a.ID == b.ID }) // while its shop moves
		return all[:min(limit, len(all))]
	}
	if p.First != o.First { // a database without drops has read nothing further
		if p.First {
			p.Activity, p.Forecast, p.Accuracy, p.Health, p.Halted, p.Earned = o.Activity, o.Forecast, o.Accuracy, o.Health, o.Halted, o.Earned
		}
		p.Upcoming, p.Open, p.First = join(p.Upcoming, o.Upcoming, false, upcomingDrops), join(p.Open, o.Open, true, openDrops), false
		return p
	}
	p.Upcoming, p.Open = join(p.Upcoming, o.Upcoming, false, upcomingDrops), join(p.Open, o.Open, true, openDrops)
	p.Activity = shell.Merged([]*[]staff.Record{&p.Activity, &o.Activity}, func(a, b staff.Record) int { return b.At.Compare(a.At) }, recentRecords)
	for i, h := range o.Health {
		p.Health[i].Counts = p.Health[i].Counts.Plus(h.Counts)
		p.Health[i].Failing = p.Health[i].Failing || h.Failing
	}
	for i, why := range o.Halted {
		p.Halted[i] = cmp.Or(p.Halted[i], why)
	}
	p.Forecast = joinForecasts(p.Forecast, o.Forecast)
	if o.Accuracy.Drops > p.Accuracy.Drops {
		p.Accuracy = o.Accuracy
	}
	p.Earned.Overview = p.Earned.Plus(o.Earned.Overview)
	if o.Setup == nil {
		p.Setup = nil
	}
	return p
}

// A bulkPart is a database's part of a step for many templates.
type bulkPart struct {
	*handlers
	template.Bulk
}

// bulkParts divides the step among the databases that have templates of it. Without the answer of a
// database that may have some the error is [shell.ErrSilent].
func (h *handlers) bulkParts(r *http.Request) (parts []bulkPart, _ error) {
	b, err := h.bulkOf(r)
	if err != nil || len(h.cells) == 1 || b.UndoOf != 0 {
		return []bulkPart{{h, b}}, err
	}
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]template.Template, error) {
		if b.All {
			return nil, nil
		}
		return h.Templates.Templates(r.Context(), shell.Actor(r), template.Query{IDs: b.IDs, Limit: max(1, len(b.IDs))})
	})
	if err != nil {
		return nil, err
	}
	named := 0
	for n, found := range got {
		own := b
		own.IDs = nil
		if found != nil {
			for _, t := range *found {
				own.IDs = append(own.IDs, t.ID)
			}
		}
		if named += len(own.IDs); b.All || len(own.IDs) > 0 {
			parts = append(parts, bulkPart{h.cells[n], own})
		}
	}
	if slices.Contains(got, nil) && (b.All || named < len(b.IDs)) {
		return nil, shell.ErrSilent
	}
	if len(parts) == 0 { // the step refuses what no database has
		parts = []bulkPart{{h, b}}
	}
	return parts, nil
}

// rehearseBulk returns the effect of a step in all its databases.
func rehearseBulk(r *http.Request, parts []bulkPart) (sum template.Rehearsal, _ error) {
	for _, p := range parts {
		o, err := p.Bulks.Rehearse(r.Context(), shell.Actor(r), p.Bulk)
		if err != nil {
			return sum, err
		}
		sum = sum.Plus(o)
	}
	return sum, nil
}
