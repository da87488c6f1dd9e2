package drops

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func seriesURL(id int64) string { return fmt.Sprintf("/series/%d", id) }

func (h *handlers) listSeries(w http.ResponseWriter, r *http.Request) error {
	list, err := shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]series.Series, error) {
		return h.Series.List(r.Context(), shell.Actor(r))
	}, func(a, b series.Series) int {
		return cmp.Or(cmp.Compare(ended(a), ended(b)), cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
	}, 0)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, droppages.SeriesList{List: list}.Page())
}

// ended is 1 for a series that has ended, which the list shows last.
func ended(s series.Series) int {
	if s.State == series.Ended {
		return 1
	}
	return 0
}

// series returns a series with the place of its database.
func (h *handlers) series(r *http.Request, id int64) (series.Series, int, error) {
	return shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (series.Series, error) {
		return h.Series.Series(r.Context(), shell.Actor(r), id)
	})
}

func (h *handlers) showSeries(w http.ResponseWriter, r *http.Request) error {
	return h.drawSeries(w, r, http.StatusOK, droppages.SeriesView{})
}

func (h *handlers) drawSeries(w http.ResponseWriter, r *http.Request, status int, p droppages.SeriesView) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	if p.View, err = h.Series.View(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	return h.Show(w, r, status, p.Page())
}

// newSeries shows the form of a new series, of the saved drop ?model= or the drop ?from=.
func (h *handlers) newSeries(w http.ResponseWriter, r *http.Request) error {
	now := h.Now()
	f := droppages.SeriesForm{RequestKey: rand.Text(), Values: map[string]string{"every": "WEEKLY", "interval": "1", "ends": "never", "publishes": "no", "skip_holidays": "1", "clock": "20:00"}}
	if from := r.FormValue("from"); from != "" {
		f.Values["model"] = "drop:" + from
	} else if model := r.FormValue("model"); model != "" {
		f.Values["model"] = "model:" + model
	}
	if t, _, err := h.startDrop(r, f.Values["model"]); err != nil {
		return err
	} else if t.ShopNumber != 0 {
		f.Values["name"] = firstRunes(t.Name, series.MaxName)
		f.Values["clock"] = series.ClockOf(t.OpensAt.In(t.Zone())).String()
		now = now.In(t.Zone())
	}
	f.Values["starts"] = string(series.DayOf(now).Add(1))
	return h.showSeriesForm(w, r, http.StatusOK, f)
}

func firstRunes(text string, n int) string {
	all := []rune(text)
	return string(all[:min(len(all), n)])
}

// startOfSeries reads the drop that settings are taken from: "model:1", "drop:2", or "keep".
func startOfSeries(typed string) (s series.Start) {
	kind, id, _ := strings.Cut(typed, ":")
	n, _ := strconv.ParseInt(id, 10, 64) // nonsense is none
	switch kind {
	case "model":
		s.ModelID = n
	case "drop":
		s.TemplateID = n
	}
	return s
}

// startDrop returns the drop that the form names, with the place of its database; the zero one if it
// names none that the member sees.
func (h *handlers) startDrop(r *http.Request, typed string) (t template.Template, place int, err error) {
	from := startOfSeries(typed)
	switch {
	case from.ModelID != 0:
		m, place, err := h.model(r, from.ModelID)
		if errors.Is(err, template.ErrModelNotFound) {
			return t, place, nil
		}
		return m.Drop, place, err
	case from.TemplateID != 0:
		t, place, err = h.template(r, from.TemplateID)
		if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Denied {
			return template.Template{}, place, nil
		}
	}
	return t, place, err
}

// starts are the saved drops that the settings can be taken from; if there are none, the latest drops.
func (h *handlers) starts(r *http.Request, f droppages.SeriesForm, shop int64) (list []ui.Option, err error) {
	if f.ID != 0 {
		list = append(list, ui.Option{Value: "keep", Label: shell.Say(r, "series.model.keep")})
	}
	if t, _, err := h.startDrop(r, f.Values["model"]); err != nil {
		return nil, err
	} else if t.ShopNumber != 0 && strings.HasPrefix(f.Values["model"], "drop:") {
		list = append(list, ui.Option{Value: f.Values["model"], Label: t.Name + " · " + t.ShopName})
	}
	models, err := h.savedModels(r)
	for _, m := range models {
		if shop == 0 || m.Drop.ShopNumber == shop {
			list = append(list, ui.Option{Value: fmt.Sprintf("model:%d", m.ID), Label: m.Name + " · " + m.Drop.ShopName})
		}
	}
	if err != nil || len(models) > 0 || f.ID != 0 {
		return list, err
	}
	drops, err := h.templates(r, shell.Actor(r), template.Query{Descending: true, Limit: recentModels})
	for _, t := range drops {
		if o := (ui.Option{Value: fmt.Sprintf("drop:%d", t.ID), Label: t.Name + " · " + t.ShopName}); !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	return list, err
}

func (h *handlers) showSeriesForm(w http.ResponseWriter, r *http.Request, status int, f droppages.SeriesForm) error {
	shop := int64(0)
	if f.ID != 0 {
		s, err := h.Series.Series(r.Context(), shell.Actor(r), f.ID)
		if err != nil {
			return err
		}
		shop = s.ShopNumber
	}
	var err error
	if f.Starts, err = h.starts(r, f, shop); err != nil {
		return err
	}
	if f.Values["model"] == "" && len(f.Starts) > 0 {
		f.Values["model"] = f.Starts[0].Value
	}
	if f.Preview, f.Next, err = h.previewOfSeries(r, f); err != nil {
		return err
	}
	shell.InOrder(f.Errors, droppages.SeriesFields())
	return h.Show(w, r, status, f.Page())
}

// typedSeries returns the form as it is typed.
func typedSeries(r *http.Request) droppages.SeriesForm {
	f := droppages.SeriesForm{Values: map[string]string{"version": r.PostFormValue("version")}, RequestKey: r.PostFormValue("request_key")}
	for _, name := range droppages.SeriesFields() {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	f.Values["weekdays"] = strings.Join(r.PostForm["weekdays"], ",") // a box each
	f.ID, _ = strconv.ParseInt(r.PostFormValue("series"), 10, 64)
	return f
}

// readSeries returns the typed settings and the fields that cannot be read. The rules of series are checked by
// their use cases.
func readSeries(v map[string]string) (s series.Spec, broken fault.Fields) {
	rd := &shell.Reading{Values: v}
	s.Name, s.Starts = v["name"], series.Day(v["starts"])
	s.SkipsHolidays, s.Publishes = v["skip_holidays"] != "", v["publishes"] == "yes"
	clock, ok := series.ParseClock(v["clock"])
	if s.Clock = clock; !ok {
		rd.Broken.Add("clock", "rule.series_clock", "must be a time of day, such as 20:00")
	}
	days, wrong := series.ParseDays(v["skips"])
	if s.Skips = days; wrong != "" {
		rd.Broken.Add("skips", "rule.series_day", "must be dates, such as 2027-01-31")
	}
	if v["every"] == "CUSTOM" {
		s.Rule = v["rrule"]
		return s, rd.Broken
	}
	p := series.Plain{Every: v["every"], Interval: 1}
	if v["interval"] != "" {
		p.Interval = int(rd.Number("interval"))
	}
	if p.Every == "WEEKLY" {
		p.Weekdays = slices.DeleteFunc(strings.Split(v["weekdays"], ","), func(w string) bool { return !slices.Contains(series.Weekdays(), w) })
	}
	if p.Every == "MONTHLY" && v["month_day"] != "" {
		p.MonthDay = int(rd.Number("month_day"))
	}
	switch v["ends"] {
	case "until":
		if p.Until = series.Day(v["until"]); !p.Until.Valid() {
			rd.Broken.Add("until", "rule.series_day", "must be a date, such as 2027-01-31")
		}
	case "count":
		p.Count = int(rd.Number("count"))
	}
	s.Rule = p.Rule()
	return s, rd.Broken
}

// previewOfSeries returns the series as it is typed, and its next days.
func (h *handlers) previewOfSeries(r *http.Request, f droppages.SeriesForm) (series.Series, []series.Day, error) {
	spec, _ := readSeries(f.Values)
	shop, zone, place := int64(0), "", 0
	if f.ID != 0 {
		s, at, err := h.series(r, f.ID)
		if err != nil {
			return series.Series{}, nil, err
		}
		shop, zone, place = s.ShopNumber, s.ShopTimezone, at
	} else {
		t, at, err := h.startDrop(r, f.Values["model"])
		if err != nil {
			return series.Series{}, nil, err
		}
		shop, zone, place = t.ShopNumber, t.ShopTimezone, at
	}
	var holidays []series.Day
	if shop != 0 {
		var err error
		if holidays, err = h.cells[place].Series.Holidays(r.Context(), shell.Actor(r), shop); err != nil {
			return series.Series{}, nil, err
		}
	}
	typed, next := h.Series.Preview(spec, zone, holidays)
	return typed, next, nil
}

// previewSeries answers the form as typed so far with the rule and the next days.
func (h *handlers) previewSeries(w http.ResponseWriter, r *http.Request) error {
	f := typedSeries(r)
	var err error
	if f.Preview, f.Next, err = h.previewOfSeries(r, f); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, f.Fragment())
}

func (h *handlers) createSeries(w http.ResponseWriter, r *http.Request) error {
	f := typedSeries(r)
	f.ID = 0
	spec, broken := readSeries(f.Values)
	if f.Errors = broken.List; len(f.Errors) > 0 {
		return h.showSeriesForm(w, r, http.StatusUnprocessableEntity, f)
	}
	_, place, err := h.startDrop(r, f.Values["model"])
	if err != nil {
		return err
	}
	s, err := h.cells[place].Series.Create(r.Context(), shell.Actor(r), spec, startOfSeries(f.Values["model"]), shell.CreationKey(r))
	if f.Errors = seriesErrors(err); len(f.Errors) > 0 {
		return h.showSeriesForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, seriesURL(s.ID), ui.Good, shell.Say(r, "series.created", s.Name))
}

// seriesErrors are the errors about fields; nil for any other error.
func seriesErrors(err error) []fault.Field {
	if errors.Is(err, series.ErrTooMany) {
		return []fault.Field{{Name: "name", Key: "fault." + series.ErrTooMany.Code, Message: err.Error()}}
	}
	if errors.Is(err, template.ErrModelNotFound) || errors.Is(err, template.ErrNotFound) {
		return []fault.Field{{Name: "model", Key: "rule.required", Message: "choose a saved drop"}}
	}
	return shell.FieldsOf(err)
}

// valuesOfSeries are the values of the form for a stored series.
func valuesOfSeries(s series.Series) map[string]string {
	v := map[string]string{"version": strconv.FormatInt(s.Version, 10), "name": s.Name, "model": "keep", "clock": s.Clock.String(), "starts": string(s.Starts),
		"every": "CUSTOM", "interval": "1", "ends": "never", "rrule": s.Rule, "skips": droppages.DaysText(s.Skips), "publishes": "no"}
	if s.SkipsHolidays {
		v["skip_holidays"] = "1"
	}
	if s.Publishes {
		v["publishes"] = "yes"
	}
	p, plain := s.Plain()
	if !plain {
		return v
	}
	v["every"], v["interval"], v["weekdays"] = p.Every, strconv.Itoa(p.Interval), strings.Join(p.Weekdays, ",")
	if p.MonthDay != 0 {
		v["month_day"] = strconv.Itoa(p.MonthDay)
	}
	switch {
	case p.Until != "":
		v["ends"], v["until"] = "until", string(p.Until)
	case p.Count > 0:
		v["ends"], v["count"] = "count", strconv.Itoa(p.Count)
	}
	return v
}

func (h *handlers) editSeries(w http.ResponseWriter, r *http.Request, id int64) error {
	s, err := h.Series.Series(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	if s.State == series.Ended {
		return series.ErrTransition
	}
	return h.showSeriesForm(w, r, http.StatusOK, droppages.SeriesForm{ID: id, Values: valuesOfSeries(s)})
}

func (h *handlers) saveSeries(w http.ResponseWriter, r *http.Request, id int64) error {
	f := typedSeries(r)
	f.ID = id
	spec, broken := readSeries(f.Values)
	if f.Errors = broken.List; len(f.Errors) > 0 {
		return h.showSeriesForm(w, r, http.StatusUnprocessableEntity, f)
	}
	version, _ := strconv.ParseInt(f.Values["version"], 10, 64)
	s, err := h.Series.Edit(r.Context(), shell.Actor(r), id, series.Edition{Version: version, Spec: spec, From: startOfSeries(f.Values["model"])})
	if f.Errors = seriesErrors(err); len(f.Errors) > 0 {
		return h.showSeriesForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if errors.Is(err, fault.ErrStale) {
		return h.Done(w, r, seriesURL(id), ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, seriesURL(id), ui.Good, shell.Say(r, "series.saved", s.Name))
}
