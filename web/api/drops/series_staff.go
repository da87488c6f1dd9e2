package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// SeriesWish are the settings of a new series.
type SeriesWish struct {
	Name         string   `json:"name" example:"Friday deal"`
	TemplateID   string   `json:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop whose settings its drops get, as they are now; the series belongs to its shop." example:"1"`
	RRule        string   `json:"rrule" doc:"An RRULE of RFC 5545, of days only." example:"FREQ=WEEKLY;BYDAY=FR"`
	Starts       string   `json:"starts" doc:"The day from which the rule counts, in the shop's zone: its DTSTART." example:"2027-01-01"`
	Clock        string   `json:"clock" doc:"When the drops open, on the clocks of the shop." example:"20:00"`
	Skips        []string `json:"skips,omitempty" nullable:"false" doc:"Dates without a drop." example:"[\"2027-12-24\"]"`
	SkipHolidays bool     `json:"skip_holidays,omitempty" doc:"The holidays of the shop have no drop." example:"true"`
	Publish      bool     `json:"publish,omitempty" doc:"Its drops are published as soon as they are created; otherwise they are drafts." example:"true"`
}

// Series is a series as staff see it.
type Series struct {
	ID           string          `json:"id" example:"1"`
	ShopNumber   string          `json:"shop_number" example:"10"`
	Name         string          `json:"name" example:"Friday deal"`
	RRule        string          `json:"rrule" example:"FREQ=WEEKLY;BYDAY=FR"`
	Starts       string          `json:"starts" example:"2027-01-01"`
	Clock        string          `json:"clock" example:"20:00"`
	Skips        []string        `json:"skips" nullable:"false" example:"[\"2027-12-24\"]"`
	SkipHolidays bool            `json:"skip_holidays" example:"true"`
	Publish      bool            `json:"publish" example:"true"`
	State        string          `json:"state" enum:"active,paused,ended" example:"active"`
	Version      int64           `json:"version" example:"1"`
	Standing     *int64          `json:"standing,omitempty" doc:"Users with a standing reservation; of one series." example:"1204"`
	Next         []SeriesOpening `json:"next,omitempty" doc:"The next ten days; of one series."`
	Drops        []SeriesDrop    `json:"drops,omitempty" doc:"Its drops of the last week and those to come; of one series."`
}

// SeriesOpening is a day to come.
type SeriesOpening struct {
	Day     string    `json:"day" example:"2027-01-01"`
	OpensAt time.Time `json:"opens_at" example:"2027-01-01T12:00:00Z"`
}

// SeriesDrop is a day with its drop.
type SeriesDrop struct {
	Day        string `json:"day" example:"2027-01-01"`
	TemplateID string `json:"template_id,omitempty" doc:"Absent until it is created." example:"17"`
	Code       string `json:"code,omitempty" doc:"Why the series could not create, change or publish the drop; reason says it in words." example:"invalid_transition"`
	Reason     string `json:"reason,omitempty" example:"red points of the flight check: 1"`
	Reminded   *int64 `json:"reminded,omitempty" doc:"Users who have its reminders by a standing reservation; absent until these are copied." example:"1204"`
}

// SeriesList is every series the caller may see.
type SeriesList struct {
	Series []Series `json:"series" nullable:"false"`
}

type seriesAnswer struct {
	Status int
	Body   Series
}

func (h *handlers) seriesStaffRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/series", "list-series", "List series of drops", pipeline.Route{Cells: &cells.List{}}), h.listSeries)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/series", "create-series", "Create a series of drops",
		pipeline.Route{Status: http.StatusCreated, Description: "Its next four drops are created within seconds. It is changed in the console.", Codes: []string{"template_not_found", "too_many_series"},
			Example: `{"name":"Friday deal","template_id":"1","rrule":"FREQ=WEEKLY;BYDAY=FR","starts":"2027-01-01","clock":"20:00"}`}), h.createSeries)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/series/{id}", "get-series", "Show a series with its drops",
		pipeline.Route{Codes: []string{"series_not_found"}}), pipeline.ByID(h.readSeries))
	for step, text := range map[series.Step]string{series.Pausing: "Pause a series: it creates and changes no drops", series.Resuming: "Resume a series", series.Ending: "End a series for good"} {
		pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/series/{id}/"+string(step), string(step)+"-series", text,
			pipeline.Route{Codes: []string{"series_not_found", "series_state"}}), pipeline.ByID(func(ctx context.Context, id int64) (*seriesAnswer, error) {
			s, err := h.Series.Take(ctx, pipeline.ActorOf(ctx), id, step, "")
			return &seriesAnswer{http.StatusOK, seriesJSON(s)}, err
		}))
	}
}

func (h *handlers) listSeries(ctx context.Context, _ *struct{}) (*struct{ Body SeriesList }, error) {
	list, err := h.Series.List(ctx, pipeline.ActorOf(ctx))
	return &struct{ Body SeriesList }{SeriesList{pipeline.Each(list, seriesJSON)}}, err
}

func (h *handlers) createSeries(ctx context.Context, in *struct{ Body SeriesWish }) (*seriesAnswer, error) {
	from, err := pipeline.ParseID("body.template_id", in.Body.TemplateID)
	if err != nil {
		return nil, err
	}
	clock, ok := series.ParseClock(in.Body.Clock)
	if !ok {
		return nil, pipeline.Refused("body.clock", "must be a time of day, such as 20:00")
	}
	spec := series.Spec{Name: in.Body.Name, Recurrence: series.Recurrence{Rule: in.Body.RRule, Starts: series.Day(in.Body.Starts)}, Clock: clock,
		SkipsHolidays: in.Body.SkipHolidays, Publishes: in.Body.Publish}
	for _, d := range in.Body.Skips {
		spec.Skips = append(spec.Skips, series.Day(d))
	}
	s, err := h.Series.Create(ctx, pipeline.ActorOf(ctx), spec, series.Start{TemplateID: from}, pipeline.RequestKey(ctx))
	return &seriesAnswer{http.StatusCreated, seriesJSON(s)}, err
}

func (h *handlers) readSeries(ctx context.Context, id int64) (*seriesAnswer, error) {
	v, err := h.Series.View(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	j := seriesJSON(v.Series)
	j.Standing = &v.Standing
	for _, d := range v.Next {
		j.Next = append(j.Next, SeriesOpening{string(d), v.OpensOn(d).UTC()})
	}
	for _, o := range v.Occurrences {
		drop := SeriesDrop{Day: string(o.Day)}
		if o.TemplateID != 0 {
			drop.TemplateID = pipeline.Decimal(o.TemplateID)
		}
		if o.Why != nil {
			drop.Code, drop.Reason = fault.CodeOf(o.Why), o.Why.Text
		}
		if o.Reminded >= 0 {
			drop.Reminded = &o.Reminded
		}
		j.Drops = append(j.Drops, drop)
	}
	return &seriesAnswer{http.StatusOK, j}, nil
}

func seriesJSON(s series.Series) Series {
	j := Series{ID: pipeline.Decimal(s.ID), ShopNumber: pipeline.Decimal(s.ShopNumber), Name: s.Name, RRule: s.Rule, Starts: string(s.Starts), Clock: s.Clock.String(),
		Skips: []string{}, SkipHolidays: s.SkipsHolidays, Publish: s.Publishes, State: string(s.State), Version: s.Version}
	for _, d := range s.Skips {
		j.Skips = append(j.Skips, string(d))
	}
	return j
}
