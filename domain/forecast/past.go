package forecast

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// keptAhead is how long before its due instant the forecast of a slot is stored for comparison.
// It is replaced by newer forecasts until the slot fires.
const keptAhead = 10 * time.Minute

// A PastForecast is the forecast of one slot on one channel, made before the slot fired.
type PastForecast struct {
	SlotID  int64
	Slot    template.Slot
	Channel delivery.Channel
	DueAt   time.Time
	OpensAt time.Time
	// MadeAt is when the forecast was made.
	MadeAt time.Time
	// Booked is the number of reminders at that time, Messages the number of reminders with a
	// contact, Missed the number that would not be sent before the opening.
	Booked, Messages, Missed int64
	PerSecond                float64
	FinishAt                 time.Time
}

// InTime returns how many messages were forecast to be sent before the opening.
func (p PastForecast) InTime() int64 { return p.Messages - p.Missed }

// An Outcome is a forecast with the outcomes of its slot and channel.
type Outcome struct {
	PastForecast
	delivery.Counts
	// DoneAt is when the last batch was done; nil if that is unknown.
	DoneAt *time.Time
}

// Error returns the relative error of the forecast, 0…1: the difference between the messages
// forecast in time and the messages sent, divided by the greater of both numbers.
func (o Outcome) Error() float64 { return ErrorOf([]Outcome{o}) }

// ErrorOf is the error of several forecasts together.
func ErrorOf(list []Outcome) float64 {
	var off, all int64
	for _, o := range list {
		off, all = off+max(o.InTime(), o.Sent)-min(o.InTime(), o.Sent), all+max(o.InTime(), o.Sent)
	}
	return float64(off) / float64(max(1, all))
}

// OutcomesOf joins the forecasts with the outcomes of finished slots, the slot farthest from the
// opening first.
func OutcomesOf(forecasts []PastForecast, c reminder.Cockpit) (list []Outcome) {
	for _, r := range c.Rows {
		if r.State != reminder.Finished {
			continue
		}
		for _, f := range forecasts {
			if l := r.Lanes[f.Channel]; f.SlotID == r.ID {
				list = append(list, Outcome{f, l.Counts, l.DoneAt})
			}
		}
	}
	return list
}

// AccuracyDrops is the number of drops over which an [Accuracy] is computed.
const AccuracyDrops = 10

// An Accuracy is how far off the forecasts of the last drops were.
type Accuracy struct {
	Drops int
	// Median is the median of the drops' errors; see [ErrorOf].
	Median float64
}

// AccuracyOf returns the accuracy of forecasts of drops with these errors.
func AccuracyOf(errors []float64) (a Accuracy) {
	if len(errors) == 0 {
		return a
	}
	sorted := slices.Sorted(slices.Values(errors))
	n := len(sorted)
	return Accuracy{n, (sorted[(n-1)/2] + sorted[n/2]) / 2}
}

// PastForecasts keeps the forecasts made before slots fired.
type PastForecasts interface {
	// Keep replaces the forecasts of slots that still wait by the database's clock.
	Keep(ctx context.Context, list []Prognosis) error
	// PastForecasts returns the forecasts for the present opening of a template.
	PastForecasts(ctx context.Context, templateID int64) ([]PastForecast, error)
	// Errors returns the errors of the last drops that have opened, at most limit.
	Errors(ctx context.Context, limit int) ([]float64, error)
}

// Keep stores the forecasts of the slots that fire soon.
func (f *Forecaster) Keep(ctx context.Context, channels []ChannelForecast) error {
	now := f.Now()
	var soon []Prognosis
	for _, c := range channels {
		for _, p := range c.Jobs {
			if p.DueAt.After(now) && !p.DueAt.After(now.Add(keptAhead)) {
				soon = append(soon, p)
			}
		}
	}
	if len(soon) == 0 {
		return nil
	}
	return f.Past.Keep(ctx, soon)
}

// Accuracy returns how far off the forecasts of the last [AccuracyDrops] drops were.
func (f *Forecaster) Accuracy(ctx context.Context) (Accuracy, error) {
	if f.Past == nil {
		return Accuracy{}, nil
	}
	errors, err := f.Past.Errors(ctx, AccuracyDrops)
	return AccuracyOf(errors), err
}

// A DropForecast is the forecast of one drop, with the outcomes of earlier forecasts.
type DropForecast struct {
	// Ahead are the channels with reminders of the drop that wait or are being sent.
	Ahead []ChannelForecast
	// Outcomes are the outcomes of finished slots.
	Outcomes []Outcome
	Accuracy Accuracy
}

// Outcomes returns the forecasts of the drop whose cockpit is c, with the outcomes of its slots.
func (f *Forecaster) Outcomes(ctx context.Context, templateID int64, c reminder.Cockpit) ([]Outcome, error) {
	if f.Past == nil {
		return nil, nil
	}
	past, err := f.Past.PastForecasts(ctx, templateID)
	return OutcomesOf(past, c), err
}

// Drop returns the forecast of one drop until the given horizon from now.
func (f *Forecaster) Drop(ctx context.Context, templateID int64, c reminder.Cockpit, horizon time.Duration) (d DropForecast, err error) {
	all, err := f.Forecast(ctx, horizon)
	if err != nil {
		return d, err
	}
	for _, ch := range all {
		ch.Jobs = slices.DeleteFunc(ch.Jobs, func(p Prognosis) bool { return p.TemplateID != templateID })
		if len(ch.Jobs) > 0 {
			d.Ahead = append(d.Ahead, ch)
		}
	}
	if d.Outcomes, err = f.Outcomes(ctx, templateID, c); err != nil {
		return d, err
	}
	d.Accuracy, err = f.Accuracy(ctx)
	return d, err
}
