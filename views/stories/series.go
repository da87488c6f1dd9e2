package stories

import (
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
)

// seriesPages are the pages of series: one of each state, one with drops that need staff, and the form.
func seriesPages() []Story {
	evening := series.Series{ID: 1, ShopName: "Harbour Tea House", ShopTimezone: "Asia/Shanghai", State: series.Active, Version: 3, Spec: series.Spec{Name: "Friday deal", ShopNumber: 10,
		Recurrence: series.Recurrence{Rule: "FREQ=WEEKLY;BYDAY=MO,FR", Starts: series.DayOf(Now()), Skips: []series.Day{series.DayOf(Now()).Add(7), series.DayOf(Now()).Add(14)}}, Clock: 20 * 3600, Publishes: true}}
	paused, ended := evening, evening
	paused.ID, paused.State, paused.Rule = 2, series.Paused, "FREQ=MONTHLY;COUNT=12;BYMONTHDAY=-1"
	ended.ID, ended.State, ended.Rule, ended.Name = 3, series.Ended, "FREQ=MONTHLY;BYDAY=-1FR", "A name of a series that goes on for as long as the field allows"
	view := droppages.SeriesView{View: series.View{Series: evening, Next: evening.Upcoming(Now(), 10), Standing: 1_204}}
	for i, d := range evening.Upcoming(Now().Add(-8*24*time.Hour), 6) {
		o := series.Listed{Occurrence: series.Occurrence{SeriesID: 1, Day: d, State: series.Kept, TemplateID: int64(10 + i), Reminded: int64(1_100 + i)}, Name: "Friday deal", OpensAt: evening.OpensOn(d), Drop: template.Published}
		switch i {
		case 3:
			o.Drop, o.Reminded, o.Why = template.Draft, -1, series.ErrLeft
		case 4:
			o.Drop, o.Reminded = "", -1
		case 5:
			o.Drop, o.TemplateID, o.Reminded = "", 0, -1
		}
		view.Occurrences = append(view.Occurrences, o)
	}
	over := droppages.SeriesView{View: series.View{Series: ended}}
	starts := []ui.Option{{Value: "keep", Label: "As they are"}, {Value: "model:1", Label: "Friday special · Harbour Tea House"}}
	form := droppages.SeriesForm{ID: 1, Starts: starts, Preview: evening, Next: view.Next, Values: map[string]string{"name": "Friday deal", "model": "keep", "every": "WEEKLY", "interval": "1", "weekdays": "MO,FR",
		"starts": string(evening.Starts), "clock": "20:00", "ends": "never", "publishes": "yes", "skip_holidays": "1"}}
	wrong := form
	wrong.ID, wrong.Next, wrong.Preview = 0, nil, series.Series{}
	wrong.Values = map[string]string{"every": "CUSTOM", "rrule": "FREQ=HOURLY", "ends": "until", "publishes": "no", "model": "model:1"}
	wrong.Errors = []fault.Field{{Name: "name", Key: "rule.required", Message: "is required"}, {Name: "rrule", Key: "rule.rrule", Message: "must be an RRULE"}, {Name: "skips", Key: "rule.series_day", Message: "must be dates"}}
	refused := view
	refused.Holidays, refused.Errors = "Christmas", []fault.Field{{Name: "holidays", Key: "rule.series_day", Message: "must be dates"}}
	return []Story{
		{Name: "series/empty", Page: droppages.SeriesList{}.Page()},
		{Name: "series/many", Page: droppages.SeriesList{List: []series.Series{evening, paused, ended}}.Page()},
		{Name: "series/one", Page: view.Page()},
		{Name: "series/viewer", Page: view.Page(), Role: staff.Viewer},
		{Name: "series/ended", Page: over.Page()},
		{Name: "series/holidays", Page: refused.Page()},
		{Name: "series/form", Page: form.Page()},
		{Name: "series/wrong", Page: wrong.Page()},
		{Name: "series/models", Page: droppages.SeriesForm{}.Page()},
	}
}
