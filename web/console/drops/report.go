package drops

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/increment"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) showReport(w http.ResponseWriter, r *http.Request) error {
	return h.drawReport(w, r, http.StatusOK, "")
}

func (h *handlers) drawReport(w http.ResponseWriter, r *http.Request, status int, broken string) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	ctx, by := r.Context(), shell.Actor(r)
	made, err := h.Reports.Report(ctx, by, id)
	if err != nil {
		return err
	}
	if err := h.compareReport(r, &made); err != nil {
		return err
	}
	p := droppages.Report{Report: made, Off: !h.Reports.Signed.Enabled(), Error: broken, Life: r.PostFormValue("days"),
		Address: func(linkID int64) string { return h.Reports.Signed.Address(h.PublicURL, linkID) }}
	if p.Others, err = h.Reports.Others(ctx, by, id); err != nil {
		return err
	}
	if by.May(staff.ManageTemplates, made.Template.ShopNumber) == nil {
		if p.Links, err = h.Reports.LinksOf(ctx, by, id); err != nil {
			return err
		}
	}
	return h.Show(w, r, status, p.Page())
}

// compareReport sets the drop that the member chose to compare with. A drop that cannot be shown
// leaves the drop before.
func (h *handlers) compareReport(r *http.Request, made *report.Report) error {
	other, err := strconv.ParseInt(r.FormValue("compare"), 10, 64)
	if err != nil || other <= 0 || other == made.Template.ID {
		return nil
	}
	past, err := h.Reports.Other(r.Context(), shell.Actor(r), other)
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Denied, fault.Conflict:
		return nil
	}
	if err == nil {
		made.Other = &past
	}
	return err
}

func reportURL(id int64) string { return shell.TemplateURL(id) + "/report" }

// shareReport makes a link to the report.
func (h *handlers) shareReport(w http.ResponseWriter, r *http.Request, id int64) error {
	days, _ := strconv.Atoi(r.PostFormValue("days")) // nonsense is no life
	_, err := h.Reports.Share(r.Context(), shell.Actor(r), id, time.Duration(days)*24*time.Hour)
	switch {
	case errors.Is(err, report.ErrTooManyLinks), errors.Is(err, report.ErrLinksOff):
		return h.drawReport(w, r, http.StatusConflict, ui.FaultText(r.Context(), err))
	case fault.KindOf(err) == fault.Invalid:
		return h.drawReport(w, r, http.StatusUnprocessableEntity, shell.Say(r, "report.valid_for")+": "+shell.Say(r, "rule.kind"))
	case err != nil:
		return err
	}
	return h.Done(w, r, reportURL(id)+"#links", ui.Good, shell.Say(r, "report.link.made"))
}

// revokeReport ends a link to the report.
func (h *handlers) revokeReport(w http.ResponseWriter, r *http.Request, id int64) error {
	link, err := strconv.ParseInt(r.PathValue("link"), 10, 64)
	if err != nil || link <= 0 {
		return shell.ErrNoPage
	}
	if err := h.Reports.Revoke(r.Context(), shell.Actor(r), id, link); err != nil {
		return err
	}
	return h.Done(w, r, reportURL(id)+"#links", ui.Good, shell.Say(r, "report.link.ended"))
}

// showResults shows what drops brought by period.
func (h *handlers) showResults(w http.ResponseWriter, r *http.Request, shops []template.Shop) error {
	p := droppages.Trend{Shops: shops, From: strings.TrimSpace(r.FormValue("from")), To: strings.TrimSpace(r.FormValue("to"))}
	var shop int64
	var err error
	var trend joinedTrend
	if trend, p.Period, shop, err = h.trend(r); err != nil {
		var broken *fault.Fields
		if !errors.As(err, &broken) {
			return err
		}
		p.Errors = broken.List
	}
	p.Trend = trend.Trend
	if shop != 0 {
		p.Shop = strconv.FormatInt(shop, 10)
	}
	p.Export = shell.ExportURL(r)
	p.Sort = r.FormValue("sort")
	p.Choose(r.FormValue("series"), r.Form["beside"])
	return h.Show(w, r, http.StatusOK, p.Page())
}

// period returns the period in the address: from one day to another, or a span that ends today, in the zone
// of the page's shops. A day that is missing beside the other is today, or 29 days before the last. A fault.Fields names days that
// cannot be read; the period is then the first span.
func (h *handlers) period(r *http.Request) (report.Period, error) {
	f := h.Filter(r)
	f.Zone = shell.Frame(r).DayZone()
	from, end := f.Days()
	p := report.PeriodOf(report.Span(r.FormValue("period")), h.Now(), f.Zone)
	if err := f.Broken.Err(); err != nil || from == nil && end == nil {
		return p, err
	}
	last := report.PeriodOf(report.Days30, h.Now(), f.Zone).To().AddDate(0, 0, -1)
	if end != nil {
		last = end.AddDate(0, 0, -1)
	}
	if from == nil {
		from = new(last.AddDate(0, 0, -29))
	}
	chosen, err := report.PeriodBetween(*from, last)
	if err != nil {
		return p, err
	}
	return chosen, nil
}

// A joinedTrend has the drops of all databases, and the place of the database of each by its drop.
type joinedTrend struct {
	report.Trend
	places map[int64]int
}

// trend returns the drops of the period and of the shop in the address; nonsense is every shop.
func (h *handlers) trend(r *http.Request) (t joinedTrend, p report.Period, shop int64, err error) {
	if shop, err = strconv.ParseInt(r.FormValue("shop"), 10, 64); err != nil || shop < 0 {
		shop = 0
	}
	if err = h.UseShopsZone(r, shop); err != nil {
		return t, p, shop, err
	}
	if p, err = h.period(r); err != nil {
		return t, p, shop, err
	}
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (report.Trend, error) {
		return h.Reports.Trend(r.Context(), shell.Actor(r), shop, p)
	})
	if err != nil {
		return t, p, shop, err
	}
	t.Trend, t.places = *got[0], map[int64]int{}
	latest := func(a, b report.Figures) int { return byOpening(true)(a.Template, b.Template) }
	for place, of := range got[1:] {
		if of == nil {
			continue
		}
		for _, f := range of.List {
			t.places[f.Template.ID] = place + 1
		}
		t.More = t.More || of.More || len(t.List)+len(of.List) > report.MostDrops || len(t.Before)+len(of.Before) > report.MostDrops
		t.List = shell.Merged([]*[]report.Figures{&t.List, &of.List}, latest, report.MostDrops)
		t.Before = shell.Merged([]*[]report.Figures{&t.Before, &of.Before}, latest, report.MostDrops)
	}
	return t, p, shop, nil
}

// exported returns the drop that the address names, otherwise the drops of the period and of the shop in the address.
func (h *handlers) exported(r *http.Request) (t joinedTrend, err error) {
	drop := r.FormValue("drop")
	if drop == "" {
		t, _, _, err = h.trend(r)
		if err == nil && len(shell.Frame(r).Silent) > 0 {
			err = shell.ErrSilent
		}
		return t, err
	}
	id, err := strconv.ParseInt(drop, 10, 64)
	if err != nil || id <= 0 {
		return t, shell.ErrNoPage
	}
	f, err := h.Reports.FiguresOf(r.Context(), shell.Actor(r), id)
	t.List = []report.Figures{f}
	return t, err
}

// exportResults sends the drops of a period with what they earned and what their messages brought, the
// latest first; amounts are minor units. An address that names a drop gets a file of this drop.
func (h *handlers) exportResults(w http.ResponseWriter, r *http.Request) error {
	found, err := h.exported(r)
	if err != nil {
		return err
	}
	list := found.List
	increments, refused := map[int64]*increment.Increment{}, map[int64][]door.Refusal{}
	for _, f := range list {
		reports := h.cells[found.places[f.Template.ID]].Reports
		if refused[f.Template.ID], err = reports.RefusedOf(r.Context(), f.Template); err != nil {
			return err
		}
		if increments[f.Template.ID], err = reports.IncrementOf(r.Context(), f.Template); err != nil {
			return err
		}
	}
	head := []string{"id", "name", "shop_number", "opens_at", "total", "issued", "used", "reminders", "opened", "currency", "orders", "ordered", "discount", "revenue", "refunded", "sold_out_seconds", "refused_no_door", "refused_door_1", "refused_door_2", "refused_door_3", "refused_door_4"}
	return shell.FileOf("results", slices.Concat(head, shell.SMSHead(), shell.IncrementHead()), func(f report.Figures) []any {
		t, m := f.Template, f.Money
		var soldOut any
		if f.SoldOutAfter > 0 {
			soldOut = f.SoldOutAfter.Seconds()
		}
		doors := make([]any, 1+template.MaxDoors)
		for place := 0; place <= len(t.Doors) && len(t.Doors) > 0; place++ {
			doors[place] = door.Sum(refused[t.ID], place)
		}
		return append([]any{t.ID, t.Name, t.ShopNumber, t.OpensAt, f.Total, f.Issued, f.Tally.Used, f.Progress.Sent, f.Opened, t.Currency, m.Orders(), int64(m.Ordered()),
			int64(m.Discount()), int64(m.Revenue()), int64(m.Refunded()), soldOut}, slices.Concat(doors, shell.SMSCells(m.SMS), shell.IncrementCells(increments[t.ID]))...)
	}).Send(h.Shell, w, r, shell.Each(list))
}
