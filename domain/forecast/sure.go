package forecast

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// A Throughput is the rate of a channel, in messages per second, in its last slots with enough
// messages to load the channel.
type Throughput struct {
	// PerSecond is the median, Low and High are the slowest and the fastest slot.
	PerSecond, Low, High float64
	// Slots is how many slots there were; 0 = nothing was measured.
	Slots int
}

// fewSlots is the number of past slots below which the next slot may well be slower or faster
// than all of them.
const fewSlots = 3

// Sure reports whether there are enough past slots to say how the rate varies.
func (t Throughput) Sure() bool { return t.Slots >= fewSlots }

// Likely returns the bounds of the rate that is expected in the next slot: the slowest and the
// fastest past slot. If there are few past slots, it returns half the slowest and twice the
// fastest rate.
func (t Throughput) Likely() (low, high float64) {
	if t.Sure() {
		return t.Low, t.High
	}
	return t.Low / 2, t.High * 2
}

// likely simulates the delivery of the jobs at the bounds of the likely rate, within the limits
// of the channel's rate.
func (f *ChannelForecast) likely(jobs []Job, t Throughput, now time.Time) {
	f.Measured, f.Least, f.Most = t, f.Missed, f.Missed
	if t.Slots == 0 {
		return
	}
	low, high := t.Likely()
	if f.Rate.Source != Measured { // a limit is below the median; a slow slot may be below the limit
		low, high = min(low, f.Rate.PerSecond), f.Rate.PerSecond
	}
	f.Least, f.Most = f.missedAt(jobs, high, now), f.missedAt(jobs, low, now)
}

func (f *ChannelForecast) missedAt(jobs []Job, perSecond float64, now time.Time) (n int64) {
	list := Forecast(jobs, Rate{PerSecond: perSecond}, now)
	limit(list, f.Limits)
	for _, p := range list {
		n += p.Missed
	}
	return n
}

// Contacts says for which part of a template's bookings each channel has a contact: an address,
// number or device of a user who has not opted out. It is estimated from a sample.
type Contacts [delivery.Channels]struct {
	// Booked is the weighted number of sampled bookings; a booking has the weight of the bookings
	// that it represents. Reached is the weighted number of sampled bookings with a contact.
	Booked, Reached float64
}

// of returns how many of the messages have a contact.
func (r Contacts) of(c delivery.Channel, messages int64) int64 {
	if r[c].Booked <= 0 {
		return messages // no reservation was read
	}
	return int64(float64(messages)*r[c].Reached/r[c].Booked + 0.5)
}

// withContact reduces the messages of the jobs to the messages with a contact. Messages without a
// contact are skipped when the slot fires, and take no time.
func (f *Forecaster) withContact(ctx context.Context, jobs []Job) error {
	for i := range jobs {
		jobs[i].Booked = max(jobs[i].Booked, jobs[i].Messages)
	}
	if f.Contacts == nil || len(jobs) == 0 {
		return nil
	}
	templates := make([]int64, len(jobs))
	for i, j := range jobs {
		templates[i] = j.TemplateID
	}
	slices.Sort(templates)
	contacts, err := f.Contacts(ctx, slices.Compact(templates))
	if err != nil {
		return err
	}
	for i, j := range jobs {
		jobs[i].Messages = contacts[j.TemplateID].of(j.Channel, j.Messages)
	}
	return nil
}

// KeptContacts returns read with a cache: a template is read once within life, because a page
// with a forecast asks every few seconds.
func KeptContacts(life time.Duration, now func() time.Time, read func(context.Context, []int64) (map[int64]Contacts, error)) func(context.Context, []int64) (map[int64]Contacts, error) {
	type kept struct {
		Contacts
		at time.Time
	}
	turn := make(chan struct{}, 1)
	known := map[int64]kept{}
	return func(ctx context.Context, templates []int64) (map[int64]Contacts, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		at := now()
		for id, k := range known {
			if at.Sub(k.at) >= life {
				delete(known, id)
			}
		}
		var missing []int64
		for _, id := range templates {
			if _, ok := known[id]; !ok {
				missing = append(missing, id)
			}
		}
		if len(missing) > 0 {
			fresh, err := read(ctx, missing)
			if err != nil {
				return nil, err
			}
			for _, id := range missing {
				known[id] = kept{fresh[id], at}
			}
		}
		all := make(map[int64]Contacts, len(templates))
		for _, id := range templates {
			all[id] = known[id].Contacts
		}
		return all, nil
	}
}
