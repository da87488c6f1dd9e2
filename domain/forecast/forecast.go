// Package forecast computes in advance whether the reminders of coming drops will be sent in
// time, from the rates that each channel has reached. It also says how certain a forecast is,
// estimates the cost of text messages, and afterwards compares forecasts with the outcomes.
package forecast

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
)

// A Job is the messages of one slot on one channel that will be due, or are due and wait.
type Job struct {
	TemplateID int64
	Name       string
	Slot       template.Slot
	Channel    delivery.Channel
	DueAt      time.Time
	Deadline   time.Time
	Messages   int64
	// ShopTimezone is the zone in which the template's times are shown.
	ShopTimezone string
	Shop         int64 // the number of the template's shop
	// Booked are the reminders of which Messages are for users who are not held out and have a
	// contact; see [Contacts].
	Booked int64
}

// A Rate is how many messages per second a channel gets through.
type Rate struct {
	PerSecond float64
	// Source says where the number is from.
	Source RateSource
}

// RateSource says where a rate is from.
type RateSource string

// The sources, the most trustworthy first.
const (
	Quota      RateSource = "quota"      // of the push service of Android phones
	Configured RateSource = "configured" // by an operator, and below what was measured
	Measured   RateSource = "measured"
	Assumed    RateSource = "assumed"
)

// AssumedRate is the rate that is assumed for a channel before anything was measured.
func AssumedRate(c delivery.Channel) Rate {
	perSecond := [delivery.Channels]float64{delivery.App: 100_000, delivery.Email: 500, delivery.SMS: 500,
		delivery.WebPush: 500, delivery.Webhook: 10_000}
	return Rate{perSecond[c], Assumed}
}

// A Prognosis is the forecast for a job.
type Prognosis struct {
	Job
	Rate Rate
	// StartAt and FinishAt are the instants of the job's first and last message. If messages are
	// missed, FinishAt is the deadline.
	StartAt  time.Time
	FinishAt time.Time
	// Missed is how many would still be unsent at the deadline.
	Missed int64
	// Over is how long after the deadline the missed messages would still take because of a limit
	// of mails other than Rate.
	Over time.Duration
	// ByPlan says that most missed messages are missed because of the warm-up plan. How long they
	// would take then depends on the later days of the plan only.
	ByPlan bool
}

// Share returns which part of the job would miss the deadline, 0…1.
func (p Prognosis) Share() float64 {
	if p.Messages == 0 {
		return 0
	}
	return float64(p.Missed) / float64(p.Messages)
}

// Forecast simulates the delivery of one channel's jobs at its rate. Like the workers, it sends
// the due messages with the nearest deadline first. It returns a prognosis per job, ordered by
// due instant.
func Forecast(jobs []Job, rate Rate, now time.Time) []Prognosis {
	out := make([]Prognosis, len(jobs))
	left := make([]float64, len(jobs))
	for i, j := range jobs {
		out[i] = Prognosis{Job: j, Rate: rate}
		if j.Messages == 0 {
			out[i].StartAt, out[i].FinishAt = j.DueAt, j.DueAt
		}
	}
	slices.SortStableFunc(out, func(a, b Prognosis) int { return a.DueAt.Compare(b.DueAt) })
	for i := range out {
		left[i] = float64(out[i].Messages)
	}
	for at := now; ; {
		i, next := mostUrgent(out, left, at)
		if i < 0 {
			if next.IsZero() {
				return out
			}
			at = next
			continue
		}
		at = out[i].advance(&left[i], at, next)
	}
}

// mostUrgent returns the due job with the nearest deadline that has messages left, or -1. next is
// the instant at which another job becomes due.
func mostUrgent(jobs []Prognosis, left []float64, at time.Time) (best int, next time.Time) {
	best = -1
	for i, j := range jobs {
		switch {
		case left[i] <= 0:
		case j.DueAt.After(at):
			if next.IsZero() || j.DueAt.Before(next) {
				next = j.DueAt
			}
		case best < 0 || j.Deadline.Before(jobs[best].Deadline):
			best = i
		}
	}
	return best, next
}

// advance sends p's messages from at until all are sent, until the deadline, or until next, and
// returns that instant.
func (p *Prognosis) advance(left *float64, at, next time.Time) time.Time {
	if p.Deadline.Before(at) { // it was over before anything could go out
		p.StartAt, p.FinishAt, p.Missed = p.Deadline, p.Deadline, p.Messages // nothing was sent: jobs with a nearer deadline ended before it
		*left = 0
		return at
	}
	if p.StartAt.IsZero() {
		p.StartAt = at
	}
	end := p.Deadline
	if p.Rate.PerSecond > 0 {
		seconds := min(*left/p.Rate.PerSecond, 1e8) // a Duration holds 292 years
		if full := at.Add(time.Duration(seconds * float64(time.Second))); full.Before(end) {
			end = full
		}
	}
	stopped := !next.IsZero() && next.Before(end)
	if stopped {
		end = next
	}
	*left -= end.Sub(at).Seconds() * p.Rate.PerSecond
	p.FinishAt = end
	if stopped {
		return end
	}
	if *left > 0.5 && !end.Before(p.Deadline) {
		p.Missed = int64(*left + 0.5)
	}
	*left = 0
	return end
}

// NeededRate returns the messages per second at which no message of these jobs would be missed,
// found by bisection. Jobs that would miss messages at any rate are ignored.
func NeededRate(jobs []Job, now time.Time) float64 {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return !j.Deadline.After(now) || !j.Deadline.After(j.DueAt) })
	missed := func(perSecond float64) bool {
		for _, p := range Forecast(jobs, Rate{PerSecond: perSecond}, now) {
			if p.Missed > 0 {
				return true
			}
		}
		return false
	}
	low, high := 0.0, 1.0
	for missed(high) && high < 1e9 {
		low, high = high, high*2
	}
	for range 20 {
		if mid := (low + high) / 2; missed(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// ForecastStore reads the data of a forecast.
type ForecastStore interface {
	// Jobs returns the messages that wait or are being sent and are due before until.
	Jobs(ctx context.Context, until time.Time) ([]Job, error)
	// Rates returns every channel's throughput in past slots, and the limits set by operators; 0
	// = no limit.
	Rates(ctx context.Context) (measured [delivery.Channels]Throughput, limits [delivery.Channels]float64, err error)
	// AndroidShares returns, by app, about which part (0…1) of the users whom push messages reach
	// have an Android phone. The key is the app that the phone names; empty = the phone names
	// none.
	AndroidShares(ctx context.Context) (map[string]float64, error)
}

// Forecaster computes before a drop whether all reminders can be sent in time.
type Forecaster struct {
	Store ForecastStore
	Now   func() time.Time
	// Quotas returns the quotas of the push service of Android phones; nil = there is none.
	Quotas func(ctx context.Context) ([]PushQuota, error)
	// Mails are the limits of mails other than the rate of their channel.
	Mails Mails
	// Contacts returns for how many of the bookings of each template there is a contact; nil = all.
	Contacts func(ctx context.Context, templates []int64) (map[int64]Contacts, error)
	// Past has the forecasts that were made before slots fired; nil = none.
	Past PastForecasts
}

// A ChannelForecast is one channel's forecast for everything that is due.
type ChannelForecast struct {
	Channel delivery.Channel
	Rate    Rate
	// Measured is the channel's throughput in past slots. Least and Most are how many messages
	// would be missed at the highest and at the lowest rate that is likely by Measured.
	Measured    Throughput
	Least, Most int64
	Jobs        []Prognosis
	Missed      int64
	// Needed is the rate at which nothing would be missed; 0 if nothing is.
	Needed float64
	// Limits are the limits other than the rate; see [Mails].
	Limits []Limit
}

// Forecast returns the forecast per channel until the given horizon from now.
func (f *Forecaster) Forecast(ctx context.Context, horizon time.Duration) ([]ChannelForecast, error) {
	now := f.Now()
	jobs, err := f.Store.Jobs(ctx, now.Add(horizon))
	if err != nil {
		return nil, err
	}
	if err := f.withContact(ctx, jobs); err != nil {
		return nil, err
	}
	measured, limits, err := f.Store.Rates(ctx)
	if err != nil {
		return nil, err
	}
	var out []ChannelForecast
	for _, c := range delivery.AllChannels() {
		mine := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return j.Channel != c })
		rate := RateOf(c, measured[c].PerSecond, limits[c])
		if c == delivery.WebPush && len(mine) > 0 {
			if rate, err = f.withinQuotas(ctx, mine, rate); err != nil {
				return nil, err
			}
		}
		one := forecastChannel(c, mine, rate, now)
		if c == delivery.Email {
			if err := f.Mails.within(ctx, &one, now); err != nil {
				return nil, err
			}
		}
		one.likely(mine, measured[c], now)
		out = append(out, one)
	}
	return out, nil
}

func forecastChannel(c delivery.Channel, jobs []Job, rate Rate, now time.Time) ChannelForecast {
	f := ChannelForecast{Channel: c, Rate: rate, Jobs: Forecast(jobs, rate, now)}
	for _, p := range f.Jobs {
		f.Missed += p.Missed
	}
	if f.Missed > 0 {
		f.Needed = NeededRate(jobs, now)
	}
	return f
}

// RateOf returns the rate of a channel from its measured rate and the limit of its operators; 0 = none.
func RateOf(c delivery.Channel, measured, limit float64) Rate {
	r := AssumedRate(c)
	if measured > 0 {
		r = Rate{measured, Measured}
	}
	if limit > 0 && limit < r.PerSecond {
		r = Rate{limit, Configured}
	}
	return r
}
