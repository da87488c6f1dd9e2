package drops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/increment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

const (
	growthPoints = 120
	latestFirst  = "latest"
	soonestFirst = "soonest"
	aheadFirst   = "ahead" // see phases
)

func (h *handlers) listTemplates(w http.ResponseWriter, r *http.Request) error {
	p, q, err := h.templateQuery(r)
	if err != nil {
		return err
	}
	parts := []template.Query{q}
	if p.Sort == aheadFirst {
		parts = phases(q, h.Now())
	}
	rows, paged, err := h.phased(r, parts, p.Errors).Page(r)
	if err != nil {
		return err
	}
	p.List, p.Paged, p.Export = templatesOf(shell.Rows(rows)), paged, shell.ExportURL(r)
	return h.Listed(w, r, p.Part(), p.Page())
}

// phased is the list of the templates of all databases in the order of the parts.
func (h *handlers) phased(r *http.Request, parts []template.Query, broken []fault.Field) shell.List[shell.Found[phaseRow], string] {
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[phaseRow, phasePlace] {
		return shell.List[phaseRow, phasePlace]{Keys: phasePlaces(len(parts)), Broken: broken, Read: func(after phasePlace, limit int) ([]phaseRow, error) {
			return h.inPhases(r, parts, after, limit)
		}, KeyOf: func(row phaseRow) phasePlace { return phasePlace{row.phase, shell.Place{At: row.OpensAt, ID: row.ID}} }}
	}, func(a, b phaseRow) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), byOpening(parts[a.phase].Descending)(a.Template, b.Template))
	})
}

// phases returns the parts of the unsorted list. First come active and scheduled drops and drafts
// with a future opening, the next opening first. Then come ended drops and drafts with a past
// opening, the last opening first. Parts that q does not select are left out.
func phases(q template.Query, now time.Time) (list []template.Query) {
	ahead, past := q, q
	if q.From == nil || q.From.Before(now) {
		ahead.From = &now
	}
	if q.To == nil || q.To.After(now) {
		past.To = &now
	}
	past.Descending = true
	over := q
	over.Descending = true
	for _, p := range []struct {
		query  template.Query
		states []template.State
	}{
		{q, []template.State{template.Scheduled, template.Open, template.SoldOut, template.Paused}}, {ahead, []template.State{template.Draft}},
		{over, []template.State{template.Closed, template.Cancelled}}, {past, []template.State{template.Draft}},
	} {
		if p.query.States = p.states; len(q.States) > 0 {
			p.query.States = slices.DeleteFunc(p.states, func(s template.State) bool { return !slices.Contains(q.States, s) })
		}
		if len(p.query.States) > 0 {
			list = append(list, p.query)
		}
	}
	return list
}

// A phaseRow is a template and the index of its phase.
type phaseRow struct {
	template.Template
	phase int
}

func templatesOf(rows []phaseRow) (list []template.Template) {
	for _, row := range rows {
		list = append(list, row.Template)
	}
	return list
}

// A phasePlace is the key of a template in a list of phases.
type phasePlace struct {
	phase int
	shell.Place
}

// phasePlaces are the keys of a list of n phases. A key names its phase unless n is 1. A key with a
// phase that does not exist is the beginning.
func phasePlaces(n int) shell.Keys[phasePlace] {
	places := shell.Places("_")
	return shell.Keys[phasePlace]{Param: places.Param, Text: func(p phasePlace) string {
		if n == 1 {
			return places.Text(p.Place)
		}
		return fmt.Sprintf("%d.%s", p.phase, places.Text(p.Place))
	}, Parse: func(s string) phasePlace {
		phase, place, several := strings.Cut(s, ".")
		if i, err := strconv.Atoi(phase); several && err == nil && i >= 0 && i < n {
			return phasePlace{i, places.Parse(place)}
		}
		return phasePlace{Place: places.Parse(s)}
	}}
}

// inPhases returns at most limit templates behind a place in one of the phases.
func (h *handlers) inPhases(r *http.Request, parts []template.Query, after phasePlace, limit int) (list []phaseRow, _ error) {
	for i := after.phase; i < len(parts) && len(list) < limit; i++ {
		q := parts[i]
		q.Limit = limit - len(list)
		if i == after.phase {
			q.After = template.Cursor{OpensAt: after.At, ID: after.ID}
		}
		some, err := h.Templates.Templates(r.Context(), shell.Actor(r), q)
		if err != nil {
			return nil, err
		}
		for _, t := range some {
			list = append(list, phaseRow{t, i})
		}
	}
	return list, nil
}

// selected returns the templates that the filter of the list selects, in the order of their
// opening.
func (h *handlers) selected(r *http.Request) (shell.List[shell.Found[template.Template], string], error) {
	p, q, err := h.templateQuery(r)
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[template.Template, shell.Place] {
		return shell.List[template.Template, shell.Place]{Keys: shell.Places("_"), Broken: p.Errors, Read: func(after shell.Place, limit int) ([]template.Template, error) {
			q := q
			q.After, q.Limit = template.Cursor{OpensAt: after.At, ID: after.ID}, limit
			return h.Templates.Templates(r.Context(), shell.Actor(r), q)
		}, KeyOf: func(t template.Template) shell.Place { return shell.Place{At: t.OpensAt, ID: t.ID} }}
	}, byOpening(q.Descending)), err
}

// released are the first columns of the file of templates, in the order of release 0.1.0.
var released = []string{"id", "shop_number", "shop_name", "name", "state", "kind", "amount_off", "threshold", "percent_off", "max_off", "currency",
	"target", "product", "stock", "issued", "per_user_limit", "opens_at", "closes_at", "valid_hours", "valid_until", "obtain", "claim_mode",
	"description", "claim_url", "notify_days", "notify_channels"}

// A comparedTemplate is a template with what its messages brought; nil = it holds nobody out.
type comparedTemplate struct {
	template.Template
	*increment.Increment
}

// templateFile is the file of templates with their state at now. It has a column for each field of
// a template that staff can set, named like the field of the API; fields that came later follow the
// columns of the release. The last columns say what the messages brought.
func templateFile(now time.Time) shell.File[comparedTemplate] {
	head := slices.Clone(released)
	for _, name := range form.Fields.Names() {
		if !slices.Contains(head, name) {
			head = append(head, name)
		}
	}
	return shell.FileOf("templates", append(slices.Clone(head), shell.IncrementHead()...), func(t comparedTemplate) []any {
		cells := form.Cells(t.Spec)
		cells["id"], cells["shop_name"], cells["state"], cells["issued"] = t.ID, t.ShopName, string(t.State(now)), t.Issued
		row := make([]any, len(head))
		for i, name := range head {
			row[i] = cells[name]
		}
		return append(row, shell.IncrementCells(t.Increment)...)
	})
}

// exportTemplates sends the templates that the filter of the list selects.
func (h *handlers) exportTemplates(w http.ResponseWriter, r *http.Request) error {
	l, err := h.selected(r)
	if err != nil {
		return err
	}
	if len(l.Broken) > 0 {
		return &fault.Fields{List: l.Broken}
	}
	return templateFile(h.Now()).Send(h.Shell, w, r, func(write func(comparedTemplate) error) error {
		return l.Pages(func(list []shell.Found[template.Template]) error {
			for _, t := range list {
				i, err := h.cells[t.Cell].Reports.IncrementOf(r.Context(), t.Row)
				if err == nil {
					err = write(comparedTemplate{t.Row, i})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// templateQuery reads the filter of templates; unreadable fields are among the page's errors. If
// exactly one shop is selected, days are days of its zone.
func (h *handlers) templateQuery(r *http.Request) (droppages.Templates, template.Query, error) {
	p := droppages.Templates{Search: strings.TrimSpace(r.FormValue("q")), Shop: r.FormValue("shop"), From: r.FormValue("from"),
		To: r.FormValue("to"), Sort: aheadFirst}
	if sort := r.FormValue("sort"); sort == latestFirst || sort == soonestFirst {
		p.Sort = sort
	}
	var err error
	if p.Shops, err = h.AllShopsOf(r); err != nil {
		return p, template.Query{}, err
	}
	f := h.Filter(r)
	p.States = shell.Chosen(f, "state", template.States())
	q := template.Query{Search: p.Search, States: p.States, Descending: p.Sort == latestFirst}
	n := f.Shop()
	if n != 0 {
		q.Shops = []int64{n}
	}
	if i := slices.IndexFunc(p.Shops, func(s template.Shop) bool { return s.Number == n || n == 0 && len(p.Shops) == 1 }); i >= 0 {
		p.DaysOf, f.Zone = &p.Shops[i], h.ShopZone(p.Shops[i].Timezone)
	}
	q.From, q.To = f.Days()
	p.Zone, p.Errors = f.Zone, f.Broken.List
	return p, q, nil
}

func (h *handlers) showTemplate(w http.ResponseWriter, r *http.Request) error {
	t, err := shell.TemplateOf(h.Templates)(r)
	if errors.Is(err, template.ErrNotFound) {
		return h.showDeleted(w, r)
	}
	if err != nil {
		return err
	}
	p, err := h.templatePage(r.Context(), t)
	if err != nil {
		return err
	}
	p.Tab = droppages.TabAt(t, h.Now())
	if tab := droppages.Tab(r.FormValue("tab")); slices.Contains(droppages.Tabs(), tab) {
		p.Tab = tab
	}
	if p.Sales, err = h.Sales.Of(r.Context(), t); err != nil {
		return err
	}
	if err := h.compare(r, &p); err != nil {
		return err
	}
	if err := h.fillDraw(r.Context(), &p); err != nil {
		return err
	}
	if err := h.fillTab(r, &p); err != nil {
		return err
	}
	return h.Either(w, r, p.Live(), p.Page())
}

// fillTab reads the data that only the page's tab shows. A draft shows its history without a tab.
func (h *handlers) fillTab(r *http.Request, p *droppages.Template) (err error) {
	ctx, t := r.Context(), p.Drop.Template
	if p.Tab == droppages.TabHistory || t.Stored == template.Draft {
		p.History, err = h.Audit.Records(ctx, staff.AuditQuery{ObjectKind: "template", ObjectID: strconv.FormatInt(t.ID, 10), Limit: recentRecords})
		return err
	}
	switch p.Tab {
	case droppages.TabReminders:
		return h.fillReminders(r, p)
	case droppages.TabLive:
		if p.Announce, err = h.announce(ctx, shell.Actor(r), t); err != nil || shell.Partial(r) {
			return err
		}
		if p.Wave, err = h.wave(r, p.Drop); err != nil {
			return err
		}
		p.Cockpit, err = h.cockpit(ctx, t)
	}
	return err
}

func (h *handlers) fillReminders(r *http.Request, p *droppages.Template) (err error) {
	t := p.Drop.Template
	if p.Growth, err = h.Board.Growth(r.Context(), t.ID, growthPoints); err != nil {
		return err
	}
	if p.Announce, err = h.announce(r.Context(), shell.Actor(r), t); err != nil {
		return err
	}
	if s := t.State(h.Now()); s != template.Scheduled && s != template.Paused {
		return nil
	}
	ahead := h.ahead.Get
	if !shell.Partial(r) { // after a change the page shows its result
		ahead = func(ctx context.Context) ([]forecast.ChannelForecast, error) {
			return h.Forecaster.Forecast(ctx, forecastAhead)
		}
	}
	if p.Forecast, err = ahead(r.Context()); err != nil {
		return err
	}
	if p.Accuracy, err = h.Forecaster.Accuracy(r.Context()); err != nil {
		return err
	}
	channels, err := h.States.Look(r.Context())
	p.Halted = droppages.HaltedOf(channels)
	if err == nil && h.TextCosts != nil && h.Channels.Has(delivery.SMS) {
		p.Texts = h.texts.get(r.Context(), t)
	}
	return err
}

// templatePage is the part of the page that the board and the stock make.
func (h *handlers) templatePage(ctx context.Context, t template.Template) (droppages.Template, error) {
	board, err := h.Board.Board(ctx, t.ID)
	p := droppages.Template{Drop: droppages.Drop{Template: t, Board: board}, Channels: h.Channels.Set()}
	for _, row := range board.Rows {
		for _, cell := range row.Cells {
			p.Difference += off(cell.Counts)
		}
	}
	if err == nil {
		p.Shards, err = h.Sales.Shards(ctx, t)
	}
	if err == nil && h.Now().Before(t.OpensAt) {
		p.Flight, _, err = h.Flight.Kept(ctx, t.ID)
	}
	return p, err
}

func off(c delivery.Counts) int64 {
	if d := c.Difference(); d < 0 {
		return -d
	}
	return c.Difference()
}
