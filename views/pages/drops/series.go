package drops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// SeriesList lists the series of the shops.
type SeriesList struct {
	List []series.Series
}

// SeriesView is everything about one series.
type SeriesView struct {
	series.View
	// Holidays are the typed holidays of the shop, which were refused for Errors; "" = the stored ones are shown.
	Holidays string
	Errors   []fault.Field
}

// SeriesForm creates a series or edits one.
type SeriesForm struct {
	// ID is 0 for a new one.
	ID     int64
	Values map[string]string
	Errors []fault.Field
	// Starts are the drops that the settings can be taken from.
	Starts []ui.Option
	// Preview is the series as it is typed, and Next are its next days.
	Preview    series.Series
	Next       []series.Day
	RequestKey string
}

func seriesURL(id int64) string { return fmt.Sprintf("/series/%d", id) }

// SeriesFields are the names of everything typed about a series.
func SeriesFields() []string {
	return []string{"name", "model", "clock", "starts", "every", "interval", "weekdays", "month_day", "ends", "until", "count", "rrule", "skips", "skip_holidays", "publishes"}
}

// Rule says the rule of a series in words.
func ruleText(ctx context.Context, s series.Series) string {
	p, plain := s.Plain()
	l := ui.From(ctx).Locale
	if !plain {
		return s.Rule
	}
	text := l.T("series.every_n."+strings.ToLower(p.Every), p.Interval)
	if p.Interval == 1 {
		text = l.T("series.each." + strings.ToLower(p.Every))
	}
	if len(p.Weekdays) > 0 {
		names := make([]string, len(p.Weekdays))
		for i, w := range p.Weekdays {
			names[i], _ = l.Weekday(series.WeekdayOf(w))
		}
		text = l.T("series.on", text, strings.Join(names, l.T("series.list")))
	}
	switch {
	case p.MonthDay == -1:
		text = l.T("series.on_last", text)
	case p.MonthDay > 0:
		text = l.T("series.on_day", text, p.MonthDay)
	}
	switch {
	case p.Until != "":
		text = l.T("series.to", text, dayText(ctx, p.Until))
	case p.Count > 0:
		text = l.T("series.times", text, p.Count)
	}
	return text
}

// dayText writes a day out.
func dayText(ctx context.Context, d series.Day) string {
	t, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		return string(d)
	}
	return ui.From(ctx).Locale.Date(t, time.UTC)
}

// openingText is when the drop of the day opens.
func openingText(ctx context.Context, s series.Series, d series.Day) string {
	at := s.OpensOn(d)
	return ui.From(ctx).Locale.DateTime(at, s.Zone()) + " " + ui.From(ctx).Locale.Zone(at, s.Zone())
}

// whyText says why the series could not keep a drop.
func whyText(ctx context.Context, o series.Occurrence) string {
	if o.Why == nil {
		return ""
	}
	return ui.FaultText(ctx, o.Why)
}

// seriesTone is the tone of a state.
func seriesTone(s series.State) ui.Tone {
	switch s {
	case series.Active:
		return ui.Good
	case series.Paused:
		return ui.Warn
	}
	return ui.Neutral
}

func (p SeriesView) manage(ctx context.Context) bool {
	return ui.May(ctx, staff.ManageTemplates, p.ShopNumber)
}

// holidays are the days of the field.
func (p SeriesView) holidays() string {
	if p.Holidays != "" || len(p.Errors) > 0 {
		return p.Holidays
	}
	return DaysText(p.View.Holidays)
}

// DaysText writes days for a field, a line each.
func DaysText(days []series.Day) string {
	lines := make([]string, len(days))
	for i, d := range days {
		lines[i] = string(d)
	}
	return strings.Join(lines, "\n")
}

// drop is the state of the drop of an occurrence.
func dropState(ctx context.Context, o series.Listed) template.State {
	switch {
	case o.Drop != template.Published:
		return o.Drop
	case ui.From(ctx).Now.Before(o.OpensAt):
		return template.Scheduled
	}
	return template.Open
}

func (p SeriesForm) action() string {
	if p.ID == 0 {
		return "/series"
	}
	return seriesURL(p.ID) + "/edit"
}

func (p SeriesForm) back() string {
	if p.ID == 0 {
		return "/series"
	}
	return seriesURL(p.ID)
}

func (p SeriesForm) title(ctx context.Context) string {
	if p.ID == 0 {
		return ui.T(ctx, "series.new")
	}
	return ui.T(ctx, "series.edit", p.Values["name"])
}

func (p SeriesForm) submit(ctx context.Context) string {
	if p.ID == 0 {
		return ui.T(ctx, "series.create")
	}
	return ui.T(ctx, "ui.save")
}

func (p SeriesForm) err(ctx context.Context, name string) string {
	return ui.ErrorOf(ctx, p.Errors, name)
}

// field describes an input of the form.
func (p SeriesForm) field(ctx context.Context, name string) ui.FieldProps {
	f := ui.FieldProps{Name: name, Label: seriesLabel(ctx, name), Value: p.Values[name], Error: p.err(ctx, name), Autocomplete: "off"}
	switch name {
	case "name":
		f.Required, f.MaxLength = true, fmt.Sprint(series.MaxName)
	case "clock":
		f.Required, f.Type, f.Narrow, f.Help = true, "time", true, ui.T(ctx, "series.help.clock")
	case "starts":
		f.Required, f.Type, f.Narrow = true, "date", true
	case "until":
		f.Type, f.Narrow, f.Required = "date", true, true
	case "interval", "count", "month_day":
		f.InputMode, f.Narrow = "numeric", true
	case "rrule":
		f.MaxLength, f.Help, f.Required = fmt.Sprint(series.MaxRule), ui.T(ctx, "series.help.rrule"), true
	case "skips":
		f.Type, f.Help = "textarea", ui.T(ctx, "series.help.skips")
	}
	if name == "month_day" {
		f.Help = ui.T(ctx, "series.help.month_day")
	}
	return f
}

// choice describes a choice of the form.
func (p SeriesForm) choice(ctx context.Context, name string, values ...string) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: name, Label: seriesLabel(ctx, name), Value: p.Values[name], Error: p.err(ctx, name)}
	for _, v := range values {
		c.Options = append(c.Options, ui.Option{Value: v, Label: ui.T(ctx, "series."+name+"."+strings.ToLower(v))})
	}
	return c
}

// weekdays is the choice of days of the week.
func (p SeriesForm) weekdays(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "weekdays", Label: seriesLabel(ctx, "weekdays"), Values: strings.Split(p.Values["weekdays"], ","), Error: p.err(ctx, "weekdays")}
	for _, w := range series.Weekdays() {
		_, long := ui.From(ctx).Locale.Weekday(series.WeekdayOf(w))
		c.Options = append(c.Options, ui.Option{Value: w, Label: long})
	}
	return c
}

// model is the choice of the drop whose settings the drops get.
func (p SeriesForm) model(ctx context.Context) ui.ChoiceProps {
	return ui.ChoiceProps{Name: "model", Label: seriesLabel(ctx, "model"), Help: ui.T(ctx, "series.help.model"), Value: p.Values["model"], Error: p.err(ctx, "model"), Options: p.Starts, Required: true}
}

func seriesLabel(ctx context.Context, name string) string {
	if name == "name" {
		return parts.FieldLabel(ctx, name)
	}
	return ui.T(ctx, "series.field."+name)
}
