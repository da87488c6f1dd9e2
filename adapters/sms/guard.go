package sms

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// A Budget bounds how many parts of text messages all workers together hand over in a
// day, and for a drop.
type Budget interface {
	// Take takes parts of messages about a drop, 0 = about none, from what is left of
	// the day and of the drop, all or nothing. It returns which of them had no room.
	Take(ctx context.Context, drop, parts int64) (delivery.BudgetTaking, delivery.BudgetShort, error)
	// GiveBack returns parts that were taken for messages that the provider has not
	// taken.
	GiveBack(ctx context.Context, from delivery.BudgetTaking, parts int64) error
}

// A Guard is a sender that hands over only what is permitted: messages to numbers of
// the allowed countries, as long as the budgets last. It is safe for concurrent
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

// dropOf is the drop whose budget a message is counted in; 0 = none: campaigns and
// tests are about no drop alone.
func dropOf(m delivery.Message) int64 {
	switch {
	case m.Subject == nil, m.Subject.Kind == delivery.KindCampaign, m.Subject.Kind == delivery.KindTest:
		return 0
	}
	return m.Subject.TemplateID
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

// within sends as many of the messages, in order, as the budgets have parts for.
func (g *Guard) within(ctx context.Context, messages []delivery.Message) (results []delivery.Result) {
	if g.Budget == nil {
		return g.Sender.Send(ctx, messages)
	}
	for len(messages) > 0 {
		drop, n := dropOf(messages[0]), 1
		for n < len(messages) && dropOf(messages[n]) == drop {
			n++
		}
		results = append(results, g.withinDrop(ctx, drop, messages[:n])...)
		messages = messages[n:]
	}
	return results
}

// withinDrop is [Guard.within] of messages about one drop.
func (g *Guard) withinDrop(ctx context.Context, drop int64, messages []delivery.Message) (results []delivery.Result) {
	parts := make([]int64, len(messages))
	for i, m := range messages {
		parts[i] = int64(max(1, Parts(m)))
	}
	for len(messages) > 0 {
		n, from, short, err := g.take(ctx, drop, parts)
		switch {
		case err != nil:
			away := delivery.Result{Status: delivery.Throttled, Apart: true, Detail: "not sent: the budget cannot be read: " + delivery.CauseOf(err)}
			return append(results, delivery.Repeat(away, len(messages))...)
		case n == 0: // those behind it may be shorter
			results, n = append(results, exhausted(short)), 1
		default:
			results = append(results, g.send(ctx, messages[:n], parts, from)...)
		}
		messages, parts = messages[n:], parts[n:]
	}
	return results
}

// take takes the parts of as many messages, from the first on, as there is room for, by
// halves; n = 0: the first does not fit into the budget that is short.
func (g *Guard) take(ctx context.Context, drop int64, parts []int64) (n int, from delivery.BudgetTaking, short delivery.BudgetShort, err error) {
	for n = len(parts); n > 0; n /= 2 {
		var sum int64
		for _, p := range parts[:n] {
			sum += p
		}
		now := g.now()
		if short = g.full.holds(drop, sum, now); short != delivery.BudgetEnough {
			continue
		}
		if from, short, err = g.Budget.Take(ctx, drop, sum); err != nil || short == delivery.BudgetEnough {
			return n, from, short, err
		}
		g.full.note(drop, short, sum, now)
	}
	return 0, from, short, nil
}

// send sends messages whose parts were taken from the budgets, and gives back those
// that the provider has not taken.
func (g *Guard) send(ctx context.Context, messages []delivery.Message, parts []int64, from delivery.BudgetTaking) []delivery.Result {
	results := g.Sender.Send(ctx, messages)
	var back int64
	for i, r := range results {
		if r.Status == delivery.Permanent || r.Status == delivery.Throttled || r.Unsent {
			back += parts[i]
		}
	}
	if back > 0 {
		_ = g.Budget.GiveBack(context.WithoutCancel(ctx), from, back) // if it fails, less is sent
		g.full.forget(from.Drop)
	}
	return results
}

func (g *Guard) now() time.Time {
	if g.Now == nil {
		return time.Now()
	}
	return g.Now()
}

// fullFor is how long a budget is not asked again for what it had no room for.
const fullFor = 5 * time.Second

// full remembers the fewest parts for which a budget had no room, by its drop; that of
// the day has the number 0.
type full struct {
	mu  sync.Mutex
	had map[int64]noRoom
}

// noRoom says that a budget had no room for so many parts.
type noRoom struct {
	parts int64
	until time.Time
}

func (n noRoom) lacks(parts int64, now time.Time) bool {
	return n.parts > 0 && parts >= n.parts && now.Before(n.until)
}

// holds returns the budget that is known to have no room.
func (f *full) holds(drop, parts int64, now time.Time) delivery.BudgetShort {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.had[0].lacks(parts, now):
		return delivery.BudgetDayShort
	case drop != 0 && f.had[drop].lacks(parts, now):
		return delivery.BudgetDropShort
	}
	return delivery.BudgetEnough
}

func (f *full) note(drop int64, short delivery.BudgetShort, parts int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := now.Add(fullFor)
	if short == delivery.BudgetDayShort {
		drop = 0
		// A new day has a budget of its own.
		if day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); day.Before(until) {
			until = day
		}
	}
	if n := f.had[drop]; n.parts > 0 && n.parts < parts && now.Before(n.until) {
		return
	}
	if f.had == nil {
		f.had = map[int64]noRoom{}
	}
	maps.DeleteFunc(f.had, func(_ int64, n noRoom) bool { return !now.Before(n.until) })
	f.had[drop] = noRoom{parts, until}
}

// forget forgets the budgets of the day and of the drop.
func (f *full) forget(drop int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.had, 0)
	delete(f.had, drop)
}

// Parts returns how many parts a message's text takes; a text that is a template's is
// taken for as long.
func Parts(m delivery.Message) int {
	return message.SizeOf(Shorten(m.Content.Text)).Parts
}

// exhausted is the result of a message for which nothing is left.
func exhausted(short delivery.BudgetShort) delivery.Result {
	detail := "budget_used_up: SMS_BUDGET_PER_DAY leaves no more for today"
	if short == delivery.BudgetDropShort {
		detail = "budget_used_up: SMS_BUDGET_PER_DROP leaves no more for this drop"
	}
	return delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonBudget, Detail: detail}
}
