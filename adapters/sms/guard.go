package sms

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// A Budget bounds how many parts of text messages all workers together hand over in a
// day.
type Budget interface {
	// Take takes parts from what is left of the day, all or nothing, and returns whether
	// it did, and which day that is.
	Take(ctx context.Context, parts int64) (day time.Time, taken bool, err error)
	// GiveBack returns parts, taken from the day, of messages that the provider has not
	// taken.
	GiveBack(ctx context.Context, day time.Time, parts int64) error
}

// A Guard is a sender that hands over only what is permitted: messages to numbers of
// the allowed countries, as long as the day's budget lasts. It is safe for concurrent
// use.
type Guard struct {
	delivery.Sender
	// Countries are allowed, by ISO 3166 codes; none = all.
	Countries []string
	// Budget may be nil.
	Budget Budget
	// Now is the clock; nil = [time.Now].
	Now func() time.Time

	full full
}

// Send sends what is permitted. The budget is taken before the call, and what the
// provider has certainly not taken is given back: after a crash or a time-out more is
// counted than was sent, never less.
func (g *Guard) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	var allowed []delivery.Message
	var at []int
	for i, m := range messages {
		if refusal := g.country(m); refusal != nil {
			results[i] = *refusal
			continue
		}
		allowed, at = append(allowed, m), append(at, i)
	}
	if len(allowed) == 0 {
		return results
	}
	for k, r := range g.within(ctx, allowed) {
		results[at[k]] = r
	}
	return results
}

// country returns why a message may not be sent to its number's country; nil = it may.
// A number that is none is left to the sender.
func (g *Guard) country(m delivery.Message) *delivery.Result {
	if len(g.Countries) == 0 {
		return nil
	}
	number, err := Number(m.To.Phone)
	if err != nil {
		return nil
	}
	country := CountryOf(number)
	if slices.Contains(g.Countries, country) {
		return nil
	}
	if country == "" {
		country = "an unknown country"
	}
	return &delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonCountry,
		Detail: "country_not_allowed: SMS_COUNTRIES does not name " + country}
}

// within sends as many of the messages, in order, as the budget has parts for.
func (g *Guard) within(ctx context.Context, messages []delivery.Message) []delivery.Result {
	if g.Budget == nil {
		return g.Sender.Send(ctx, messages)
	}
	parts := make([]int64, len(messages))
	for i, m := range messages {
		parts[i] = int64(max(1, Parts(m)))
	}
	var results []delivery.Result
	for len(messages) > 0 {
		n, day, err := g.take(ctx, parts)
		switch {
		case err != nil:
			away := delivery.Result{Status: delivery.Throttled, Apart: true, Detail: "not sent: the day's budget cannot be read: " + delivery.CauseOf(err)}
			return append(results, delivery.Repeat(away, len(messages))...)
		case n == 0: // those behind it may be shorter
			results, n = append(results, exhausted()), 1
		default:
			results = append(results, g.send(ctx, messages[:n], parts, day)...)
		}
		messages, parts = messages[n:], parts[n:]
	}
	return results
}

// take takes the parts of as many messages, from the first on, as there is room for, by
// halves; n = 0: the first does not fit.
func (g *Guard) take(ctx context.Context, parts []int64) (n int, day time.Time, err error) {
	for n = len(parts); n > 0; n /= 2 {
		var sum int64
		for _, p := range parts[:n] {
			sum += p
		}
		now := g.now()
		if g.full.holds(sum, now) {
			continue
		}
		day, taken, err := g.Budget.Take(ctx, sum)
		if err != nil || taken {
			return n, day, err
		}
		g.full.note(sum, now)
	}
	return 0, day, nil
}

// send sends messages whose parts were taken from the day's budget, and gives back those
// that the provider has not taken.
func (g *Guard) send(ctx context.Context, messages []delivery.Message, parts []int64, day time.Time) []delivery.Result {
	results := g.Sender.Send(ctx, messages)
	var back int64
	for i, r := range results {
		if r.Status == delivery.Permanent || r.Status == delivery.Throttled || r.Unsent {
			back += parts[i]
		}
	}
	if back > 0 {
		_ = g.Budget.GiveBack(context.WithoutCancel(ctx), day, back) // the rest of the day is the shorter
		g.full.forget()
	}
	return results
}

func (g *Guard) now() time.Time {
	if g.Now == nil {
		return time.Now()
	}
	return g.Now()
}

// fullFor is how long the budget is not asked again for what it had no room for.
const fullFor = 5 * time.Second

// full remembers the fewest parts for which the budget had no room.
type full struct {
	mu    sync.Mutex
	parts int64 // 0 = none
	until time.Time
}

func (f *full) holds(parts int64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parts > 0 && parts >= f.parts && now.Before(f.until)
}

func (f *full) note(parts int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts > 0 && f.parts < parts && now.Before(f.until) {
		return
	}
	f.parts, f.until = parts, now.Add(fullFor)
	// A new day has a budget of its own.
	if day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); day.Before(f.until) {
		f.until = day
	}
}

func (f *full) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = 0
}

// Parts returns how many parts a message's text takes; a text that is a template's is
// taken for as long.
func Parts(m delivery.Message) int {
	return message.SizeOf(Shorten(m.Content.Text)).Parts
}

// exhausted is the result of a message for which nothing is left.
func exhausted() delivery.Result {
	return delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonBudget,
		Detail: "budget_used_up: SMS_BUDGET_PER_DAY leaves no more for today"}
}
