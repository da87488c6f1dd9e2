package forecast

import (
	"context"
	"maps"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// WarmUpLimit is the name of the limit that is a warm-up plan; others are domains.
const WarmUpLimit = ""

// Mails are the limits of mails other than the rate of their channel. The zero value limits
// nothing.
type Mails struct {
	// PerSecond are the most mails a second to a domain of recipients.
	PerSecond map[string]int
	// WarmUp is the plan of a new sender. Sent returns how many mails were sent on the day (UTC)
	// of now; nil = none.
	WarmUp delivery.WarmUp
	Sent   func(ctx context.Context, now time.Time) (int64, error)
	// Shares returns, for each of the domains, about which part (0…1) of the users with a mail
	// address has an address there.
	Shares func(ctx context.Context, domains []string) (map[string]float64, error)
}

// A Limit is the forecast for the mails to one limited domain, or for all mails under a warm-up
// plan.
type Limit struct {
	// Name is the domain, or [WarmUpLimit].
	Name string
	// PerSecond is the limit of the domain. It is 0 for a warm-up plan; Today and Tomorrow are
	// then how many mails may still be sent today (UTC) and tomorrow; -1 = any number.
	PerSecond       int
	Today, Tomorrow int64
	// Messages is the number of mails under the limit, estimated by the share of the domain.
	// Missed is how many of them would not be sent before their opening.
	Messages, Missed int64
	// Takes is the duration of the slowest slot, from its due instant. Earlier is how much
	// earlier its mails would have to be due to be in time; 0 if none is missed.
	Takes, Earlier time.Duration

	jobs []Prognosis
}

// limits simulates the delivery of the mails at each limit.
func (m Mails) limits(ctx context.Context, jobs []Job, now time.Time) (list []Limit, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if len(m.PerSecond) > 0 {
		domains := slices.Sorted(maps.Keys(m.PerSecond))
		shares, err := m.Shares(ctx, domains)
		if err != nil {
			return nil, err
		}
		for _, d := range domains {
			if l := m.domain(d, shares[d], jobs, now); l.Messages > 0 {
				list = append(list, l)
			}
		}
	}
	plan, ok, err := m.plan(ctx, jobs, now)
	if ok {
		list = append(list, plan)
	}
	return list, err
}

// domain is the limit of a domain that has a share of all recipients.
func (m Mails) domain(name string, share float64, jobs []Job, now time.Time) Limit {
	part := slices.Clone(jobs)
	for i := range part {
		part[i].Messages = int64(share*float64(part[i].Messages) + 0.5)
	}
	l := Limit{Name: name, PerSecond: m.PerSecond[name]}
	l.jobs = Forecast(part, Rate{PerSecond: float64(l.PerSecond)}, now)
	for _, p := range l.jobs {
		over := time.Duration(float64(p.Missed) / float64(l.PerSecond) * float64(time.Second))
		l.add(p, now, over)
	}
	return l
}

// plan is the limit of the warm-up plan; false if there is none.
func (m Mails) plan(ctx context.Context, jobs []Job, now time.Time) (l Limit, ok bool, err error) {
	most := m.WarmUp.Most(now)
	if most == 0 || m.Sent == nil {
		return l, false, nil
	}
	sent, err := m.Sent(ctx, now)
	if err != nil {
		return l, false, err
	}
	l = Limit{Name: WarmUpLimit, Today: max(0, most-sent), Tomorrow: anyOr(m.WarmUp.Most(midnight(now)))}
	l.jobs = playDays(jobs, now, func(day time.Time) int64 {
		if day.Equal(midnight(now).AddDate(0, 0, -1)) {
			return l.Today
		}
		return anyOr(m.WarmUp.Most(day))
	})
	for _, p := range l.jobs {
		l.add(p, now, 0)
	}
	return l, true, nil
}

// anyOr turns the 0 of [delivery.WarmUp.Most] into -1.
func anyOr(most int64) int64 {
	if most == 0 {
		return -1
	}
	return most
}

// midnight is the next one (UTC).
func midnight(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
}

// add counts a job; over is how long it would go on behind its deadline.
func (l *Limit) add(p Prognosis, now time.Time, over time.Duration) {
	l.Messages, l.Missed = l.Messages+p.Messages, l.Missed+p.Missed
	from := p.DueAt
	if from.Before(now) {
		from = now
	}
	l.Takes = max(l.Takes, p.FinishAt.Sub(from)+over)
	l.Earlier = max(l.Earlier, over)
}

// playDays simulates the delivery of the jobs like [Forecast], with a limit of mails per day
// (UTC) as the only limit; most returns it, -1 = any number.
func playDays(jobs []Job, now time.Time, most func(day time.Time) int64) []Prognosis {
	out := make([]Prognosis, len(jobs))
	for i, j := range jobs {
		out[i] = Prognosis{Job: j}
	}
	slices.SortStableFunc(out, func(a, b Prognosis) int { return a.DueAt.Compare(b.DueAt) })
	left := make([]float64, len(jobs))
	for i := range out {
		left[i] = float64(out[i].Messages)
	}
	spent := map[time.Time]int64{}
	for at := now; ; {
		i, next := mostUrgent(out, left, at)
		if i < 0 {
			if next.IsZero() {
				return out
			}
			at = next
			continue
		}
		p := &out[i]
		if p.StartAt.IsZero() {
			p.StartAt = at
		}
		day := midnight(at).AddDate(0, 0, -1)
		n := int64(left[i])
		if budget := most(day); budget >= 0 {
			n = min(n, max(0, budget-spent[day]))
		}
		if p.Deadline.Before(at) {
			n = 0
		}
		spent[day] += n
		left[i] -= float64(n)
		p.FinishAt = at
		if left[i] == 0 {
			continue
		}
		// The rest waits for the next day, or misses its opening.
		if tomorrow := midnight(at); tomorrow.Before(p.Deadline) {
			at = laterOf(at, earlierOf(tomorrow, next))
			continue
		}
		p.Missed, left[i] = int64(left[i]), 0
		p.FinishAt = p.Deadline
	}
}

// earlierOf is the earlier of the instants; the zero one is none.
func earlierOf(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// within holds a forecast of mails against their limits.
func (m Mails) within(ctx context.Context, f *ChannelForecast, now time.Time) (err error) {
	jobs := make([]Job, len(f.Jobs))
	for i, p := range f.Jobs {
		jobs[i] = p.Job
	}
	if f.Limits, err = m.limits(ctx, jobs, now); err != nil {
		return err
	}
	limit(f.Jobs, f.Limits)
	f.Missed = 0
	for _, p := range f.Jobs {
		f.Missed += p.Missed
	}
	return nil
}

// limit applies the prognoses of the limits to the prognoses of the channel. A job misses the sum
// of the mails missed at all limited domains, or the number that the channel or the warm-up plan
// alone misses, if that is greater.
func limit(all []Prognosis, limits []Limit) {
	for i := range all {
		p := &all[i]
		var missed, plan int64
		for _, l := range limits {
			o := l.jobs[i] // in the same order: it depends on the due instants alone
			if l.Name == WarmUpLimit {
				plan = o.Missed
			} else {
				missed += o.Missed
			}
			p.FinishAt = laterOf(p.FinishAt, o.FinishAt)
			if l.PerSecond > 0 {
				p.Over = max(p.Over, time.Duration(float64(o.Missed)/float64(l.PerSecond)*float64(time.Second)))
			}
		}
		missed = max(p.Missed, missed)
		p.ByPlan = plan > missed
		p.Missed = min(p.Messages, max(missed, plan))
	}
}

// KeptShares returns read, the shares of [Mails], with a cache: the result is used for all calls
// within life, because shares change slowly. After an error the next call reads again.
func KeptShares(life time.Duration, now func() time.Time, read func(context.Context, []string) (map[string]float64, error)) func(context.Context, []string) (map[string]float64, error) {
	turn := make(chan struct{}, 1)
	var of []string
	var shares map[string]float64
	var at time.Time
	return func(ctx context.Context, domains []string) (map[string]float64, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if shares != nil && slices.Equal(of, domains) && now().Sub(at) < life {
			return shares, nil
		}
		fresh, err := read(ctx, domains)
		if err == nil {
			of, shares, at = slices.Clone(domains), fresh, now()
		}
		return fresh, err
	}
}
