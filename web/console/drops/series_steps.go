package drops

import (
	"cmp"
	"errors"
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// stepOfSeries is the step that the address names, and the series.
func (h *handlers) stepOfSeries(r *http.Request) (series.Step, series.Series, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return "", series.Series{}, err
	}
	s, err := h.Series.Series(r.Context(), shell.Actor(r), id)
	return series.Step(r.PathValue("step")), s, err
}

func (h *handlers) confirmSeries(w http.ResponseWriter, r *http.Request) error {
	step, s, err := h.stepOfSeries(r)
	if err != nil {
		return err
	}
	l, kind := shell.Frame(r).Locale, "primary"
	if step == series.Ending {
		kind = "danger"
	}
	key := "series." + string(step)
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "series", Crumbs: []ui.Crumb{{Label: l.T("nav.series"), URL: "/series"}, {Label: s.Name, URL: seriesURL(s.ID)}},
		ConfirmProps: ui.ConfirmProps{Title: l.T(key+".title", s.Name), Points: []string{l.T(key + ".1"), l.T(key + ".2")}, Kind: kind,
			Action: seriesURL(s.ID) + "/" + string(step), Cancel: seriesURL(s.ID), Submit: l.T(key)}})
}

func (h *handlers) takeSeries(w http.ResponseWriter, r *http.Request) error {
	step, s, err := h.stepOfSeries(r)
	if err != nil {
		return err
	}
	s, err = h.Series.Take(r.Context(), shell.Actor(r), s.ID, step, r.PostFormValue("reason"))
	if kind := fault.KindOf(err); kind == fault.Conflict {
		return h.Done(w, r, seriesURL(s.ID), ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, seriesURL(s.ID), ui.Good, shell.Say(r, "series."+string(step)+".done", s.Name))
}

func (h *handlers) saveHolidays(w http.ResponseWriter, r *http.Request, id int64) error {
	s, err := h.Series.Series(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	p := droppages.SeriesView{Holidays: r.PostFormValue("holidays")}
	days, wrong := series.ParseDays(p.Holidays)
	if wrong != "" {
		p.Errors = []fault.Field{{Name: "holidays", Key: "rule.series_day", Message: "must be dates, such as 2027-01-31"}}
	} else {
		err = h.Series.SetHolidays(r.Context(), shell.Actor(r), s.ShopNumber, days)
		p.Errors = shell.FieldsOf(err)
	}
	if len(p.Errors) > 0 {
		return h.drawSeries(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, seriesURL(id), ui.Good, shell.Say(r, "series.holidays_saved", s.ShopName))
}

// seriesOf sets the name of the series of a drop in its form, if the series can still change, and what saving
// changes: this drop alone unless the member chose otherwise.
func (h *handlers) seriesOf(r *http.Request, t template.Template, f *droppages.TemplateForm) error {
	if t.SeriesID == 0 {
		return nil
	}
	s, err := h.Series.Series(r.Context(), shell.Actor(r), t.SeriesID)
	if errors.Is(err, series.ErrNotFound) {
		return nil
	}
	if err == nil && s.State != series.Ended {
		f.Series, f.Scope = s.Name, cmp.Or(r.PostFormValue("series_scope"), "one")
	}
	return err
}
