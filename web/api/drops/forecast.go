package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/forecast"
	"dropbell/web/api/pipeline"
)

// forecastHorizon is how far ahead a forecast looks.
const forecastHorizon = 24 * time.Hour

// Forecast is the expected load of a drop's reminders, and the outcome of earlier forecasts.
type Forecast struct {
	TemplateID string            `json:"template_id" example:"1"`
	Channels   []ForecastChannel `json:"channels" nullable:"false" doc:"Channels with reminders of the drop that are due within 24 hours or being sent."`
	Outcomes   []ForecastOutcome `json:"outcomes" nullable:"false" doc:"The last forecast before each slot that is over, and what happened."`
	Error      *float64          `json:"error,omitempty" doc:"Which part of the reminders the outcomes were off by together; absent without outcomes." minimum:"0" maximum:"1" example:"0.04"`
	// MedianError is the median error of the last ten drops.
	MedianError *float64 `json:"median_error,omitempty" doc:"The median error of the last drops of all shops, at most ten; absent if there are none." minimum:"0" maximum:"1" example:"0.06"`
	MedianDrops int      `json:"median_drops" doc:"Of how many drops median_error is." example:"10"`
}

// ForecastChannel is the forecast of one channel, which all drops share.
type ForecastChannel struct {
	Channel    string         `json:"channel" example:"email"`
	PerSecond  float64        `json:"rate_per_second" doc:"The rate that the forecast is made with." example:"240"`
	Source     string         `json:"rate_source" enum:"quota,configured,measured,assumed"`
	Slots      int            `json:"measured_slots" doc:"In how many past slots the channel's rate was measured; 0 = none." example:"6"`
	Low        float64        `json:"measured_low" doc:"The slowest of them, per second." example:"180"`
	High       float64        `json:"measured_high" doc:"The fastest of them, per second." example:"310"`
	Missed     int64          `json:"missed" doc:"Reminders of all drops on this channel that would miss their opening." example:"0"`
	MissedLow  int64          `json:"missed_low" doc:"The same at the highest rate that past slots make likely." example:"0"`
	MissedHigh int64          `json:"missed_high" doc:"The same at the lowest such rate." example:"1200"`
	Forecasts  []ForecastSlot `json:"slots" nullable:"false" doc:"The drop's slots, in the order of their instants."`
}

// ForecastSlot is the expected load of one slot.
type ForecastSlot struct {
	Minutes  int       `json:"minutes" example:"10"`
	DueAt    time.Time `json:"due_at"`
	Booked   int64     `json:"booked" example:"4000"`
	Messages int64     `json:"messages" doc:"The part of booked with a contact whose user has not opted out and is not held out, as estimated from a sample." example:"484"`
	Missed   int64     `json:"missed" doc:"The part of messages that would not go out before the opening." example:"0"`
	FinishAt time.Time `json:"finish_at" doc:"When the last message would go out."`
}

// ForecastOutcome is a forecast and its outcome.
type ForecastOutcome struct {
	ForecastSlot
	Channel string     `json:"channel" example:"email"`
	MadeAt  time.Time  `json:"made_at" doc:"When the forecast was made: the last one before the slot fired."`
	Sent    int64      `json:"sent" example:"480"`
	Skipped int64      `json:"skipped" example:"3516"`
	Expired int64      `json:"expired" doc:"Not sent before the opening." example:"0"`
	Dead    int64      `json:"dead" example:"4"`
	DoneAt  *time.Time `json:"done_at,omitempty"`
	Error   float64    `json:"error" doc:"|messages − missed − sent| ÷ the greater of messages − missed and sent." minimum:"0" maximum:"1" example:"0.01"`
}

func (h *handlers) forecastRoute() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/forecast", "template-forecast", "Show the forecast of a drop's reminders",
		pipeline.Route{Description: "Whether they go out before the opening, how sure that is, and how far off earlier forecasts were.",
			Codes: []string{"template_not_found"}}), pipeline.ByID(h.forecast))
}

func (h *handlers) forecast(ctx context.Context, id int64) (*struct{ Body Forecast }, error) {
	t, err := h.Templates.Template(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	c, err := h.Cockpits.Cockpit(ctx, t.ID, nil)
	if err != nil {
		return nil, err
	}
	d, err := h.Forecaster.Drop(ctx, t.ID, c, forecastHorizon)
	return &struct{ Body Forecast }{forecastJSON(pipeline.Decimal(id), d)}, err
}

func forecastJSON(id string, d forecast.DropForecast) Forecast {
	f := Forecast{TemplateID: id, Channels: make([]ForecastChannel, len(d.Ahead)), Outcomes: make([]ForecastOutcome, len(d.Outcomes)), MedianDrops: d.Accuracy.Drops}
	for i, c := range d.Ahead {
		f.Channels[i] = ForecastChannel{c.Channel.String(), c.Rate.PerSecond, string(c.Rate.Source), c.Measured.Slots, c.Measured.Low, c.Measured.High, c.Missed, c.Least, c.Most, make([]ForecastSlot, len(c.Jobs))}
		for k, p := range c.Jobs {
			f.Channels[i].Forecasts[k] = ForecastSlot{p.Slot.Minutes(), p.DueAt.UTC(), p.Booked, p.Messages, p.Missed, p.FinishAt.UTC()}
		}
	}
	for i, o := range d.Outcomes {
		f.Outcomes[i] = ForecastOutcome{ForecastSlot{o.Slot.Minutes(), o.DueAt.UTC(), o.Booked, o.Messages, o.Missed, o.FinishAt.UTC()}, o.Channel.String(), o.MadeAt.UTC(),
			o.Sent, o.Skipped, o.Expired, o.Dead, pipeline.UTC(o.DoneAt), o.Error()}
	}
	if len(d.Outcomes) > 0 {
		n := forecast.ErrorOf(d.Outcomes)
		f.Error = &n
	}
	if d.Accuracy.Drops > 0 {
		f.MedianError = &d.Accuracy.Median
	}
	return f
}
