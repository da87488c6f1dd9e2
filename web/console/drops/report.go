package drops

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/report"
	"dropbell/domain/staff"
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
func (h *handlers) shareReport(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	days, _ := strconv.Atoi(r.PostFormValue("days")) // nonsense is no life
	_, err = h.Reports.Share(r.Context(), shell.Actor(r), id, time.Duration(days)*24*time.Hour)
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
func (h *handlers) revokeReport(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	link, err := strconv.ParseInt(r.PathValue("link"), 10, 64)
	if err != nil || link <= 0 {
		return shell.ErrNoPage
	}
	if err := h.Reports.Revoke(r.Context(), shell.Actor(r), id, link); err != nil {
		return err
	}
	return h.Done(w, r, reportURL(id)+"#links", ui.Good, shell.Say(r, "report.link.ended"))
}

// showResults sets the last drops side by side.
func (h *handlers) showResults(w http.ResponseWriter, r *http.Request) error {
	shops, err := h.ShopsOf(r)
	if err != nil {
		return err
	}
	p := droppages.Trend{Shops: shops, Shop: r.FormValue("shop")}
	shop, err := strconv.ParseInt(p.Shop, 10, 64)
	if err != nil || shop < 0 {
		shop, p.Shop = 0, "" // nonsense is every shop
	}
	list, err := h.Reports.Trend(r.Context(), shell.Actor(r), shop)
	if err != nil {
		return err
	}
	p.List, p.Before = list[:min(len(list), report.TrendLength)], list[min(len(list), report.TrendLength):]
	p.Choose(r.FormValue("series"), r.Form["beside"])
	return h.Show(w, r, http.StatusOK, p.Page())
}
