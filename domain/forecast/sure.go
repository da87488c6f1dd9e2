package forecast

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// A Throughput is how many messages per second a channel got through in those of its last
// slots that had enough messages to load it.
type Throughput struct {
	// PerSecond is the median, Low and High are the slowest and the fastest slot.
	PerSecond, Low, High float64
	// Slots is how many slots there were; 0 = nothing was measured.
	Slots int
}

// fewSlots are so few that the next one may well lie outside of them.
const fewSlots = 3

// Sure reports whether there are enough past slots to say how the rate varies.
func (t Throughput) Sure() bool { return t.Slots >= fewSlots }

// Likely returns between which rates the next slot will be: those of past slots, or, if
// these are few, half of the slowest and twice the fastest.
func (t Throughput) Likely() (low, high float64) {
	if t.Sure() {
		return t.Low, t.High
	}
	return t.Low / 2, t.High * 2
}

// likely plays the jobs through at the rates that are likely, within the limits that hold for
// the channel's rate.
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

// Contacts says for how many of a template's bookings each channel has a contact: an address, a
// number or a device of the user, who has not opted out. It is estimated from a sample.
type Contacts [delivery.Channels]struct {
	// Booked are sampled bookings, each counting for as many as it stands for; Reached are
	// those of them with a contact.
	Booked, Reached float64
}

// of returns how many of the messages have a contact.
func (r Contacts) of(c delivery.Channel, messages int64) int64 {
	if r[c].Booked <= 0 {
		return messages // no reservation was read
	}
	return int64(float64(messages)*r[c].Reached/r[c].Booked + 0.5)
}

// withContact leaves the messages of the jobs that have a contact: the others are skipped when
// the slot fires, and take no time.
func (f *Forecaster) withContact(ctx context.Context, jobs []Job) error {
	for i := range jobs {
		jobs[i].Booked = jobs[i].Messages
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

// KeptContacts is read, asked once for each template within life: a page that shows a forecast
// asks every few seconds.
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
