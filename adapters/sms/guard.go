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

// A Budget limits how many parts of text messages all workers together hand over per day and per
// drop.
type Budget interface {
	// Take takes the size of messages of an owner from the day's budgets and from the drop's budget,
	// all or nothing, and adds it to the owner's cost. short names the budget without enough room.
	Take(ctx context.Context, owner delivery.BudgetOwner, size delivery.BudgetSize) (delivery.BudgetTaking, delivery.BudgetShort, error)
	// GiveBack returns the size of messages that the provider has not taken to the budgets.
	GiveBack(ctx context.Context, from delivery.BudgetTaking, size delivery.BudgetSize) error
}

// A Guard is a sender that hands over only permitted messages: to numbers of the allowed
// countries, while the budgets last. It is safe for concurrent use.
type Guard struct {
	delivery.Sender
	// Countries are allowed, by ISO 3166 codes; none = all.
	Countries []string
	// Budget may be nil: nothing is limited, and no cost is kept.
	Budget Budget
	// Prices are counted in the day's budget of money, in addition to parts.
	Prices delivery.SMSPrices
	// Now is the clock; nil = [time.Now].
	Now func() time.Time

	full full
}

// Send sends the permitted messages. The budget is taken before the call. The share of messages
// that the provider has certainly not taken is given back. After a crash or a timeout the budget
// therefore counts more than was sent, never less.
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

// country returns the refusal of a message whose number is in a country that is not allowed; nil
// = allowed. An invalid phone number is left to the sender.
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
		owner, n := delivery.BudgetOwnerOf(messages[0].Subject), 1
		for n < len(messages) && delivery.BudgetOwnerOf(messages[n].Subject) == owner {
			n++
		}
		results = append(results, g.withinOwner(ctx, owner, messages[:n])...)
		messages = messages[n:]
	}
	return results
}

// withinOwner is [Guard.within] of messages of one owner.
func (g *Guard) withinOwner(ctx context.Context, owner delivery.BudgetOwner, messages []delivery.Message) (results []delivery.Result) {
	sizes := make([]delivery.BudgetSize, len(messages))
	for i, m := range messages {
		sizes[i] = g.size(m)
	}
	for len(messages) > 0 {
		n, from, short, err := g.take(ctx, owner, sizes)
		switch {
		case err != nil:
			away := delivery.Result{Status: delivery.Throttled, Apart: true, Detail: "not sent: the budget cannot be read: " + delivery.CauseOf(err)}
			return append(results, delivery.Repeat(away, len(messages))...)
		case n == 0: // later messages may be shorter
			results, n = append(results, exhausted(short)), 1
		default:
			results = append(results, g.send(ctx, messages[:n], sizes, from)...)
		}
		messages, sizes = messages[n:], sizes[n:]
	}
	return results
}

// size returns how much a message takes from the budgets. The sender refuses an invalid phone
// number, and the size of its message is given back.
func (g *Guard) size(m delivery.Message) delivery.BudgetSize {
	size := delivery.BudgetSize{Parts: int64(max(1, Parts(m)))}
	if !g.Prices.Empty() {
		number, _ := Number(m.To.Phone)
		size.Micros = size.Parts * g.Prices.AtMost(number)
	}
	return size
}

// take takes the budget for the first n messages. If there is no room for all messages, take
// tries half as many, and so on. n = 0: the first message does not fit into the budget short.
func (g *Guard) take(ctx context.Context, owner delivery.BudgetOwner, sizes []delivery.BudgetSize) (n int, from delivery.BudgetTaking, short delivery.BudgetShort, err error) {
	for n = len(sizes); n > 0; n /= 2 {
		var sum delivery.BudgetSize
		for _, s := range sizes[:n] {
			sum = sum.Plus(s)
		}
		now := g.now()
		if short = g.full.holds(owner.Drop, sum, now); short != delivery.BudgetEnough {
			continue
		}
		if from, short, err = g.Budget.Take(ctx, owner, sum); err != nil || short == delivery.BudgetEnough {
			return n, from, short, err
		}
		g.full.note(owner.Drop, short, sum, now)
	}
	return 0, from, short, nil
}

// send sends messages whose sizes were taken from the budgets, and gives back the sizes of the
// messages that the provider has not taken.
func (g *Guard) send(ctx context.Context, messages []delivery.Message, sizes []delivery.BudgetSize, from delivery.BudgetTaking) []delivery.Result {
	results := g.Sender.Send(ctx, messages)
	var back delivery.BudgetSize
	for i, r := range results {
		if r.Status == delivery.Permanent || r.Status == delivery.Throttled || r.Unsent {
			back = back.Plus(sizes[i])
		}
	}
	if back.Parts > 0 {
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

// fullFor is how long a budget is not asked again for a size that did not fit.
const fullFor = 5 * time.Second

// full remembers the smallest size for which a budget had no room.
type full struct {
	mu  sync.Mutex
	had map[budgetOf]noRoom
}

// budgetOf names a budget: the budget of a drop, or one of the day's two budgets, for which drop
// is 0.
type budgetOf struct {
	short delivery.BudgetShort
	drop  int64
}

// measure is the size as the budget counts it.
func (b budgetOf) measure(size delivery.BudgetSize) int64 {
	if b.short == delivery.BudgetMoneyShort {
		return size.Micros
	}
	return size.Parts
}

// noRoom says that a budget had no room for so much.
type noRoom struct {
	size  int64
	until time.Time
}

func (n noRoom) lacks(size int64, now time.Time) bool {
	return n.size > 0 && size >= n.size && now.Before(n.until)
}

// holds returns the budget that is known to have no room.
func (f *full) holds(drop int64, size delivery.BudgetSize, now time.Time) delivery.BudgetShort {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range []budgetOf{{delivery.BudgetDayShort, 0}, {delivery.BudgetMoneyShort, 0}, {delivery.BudgetDropShort, drop}} {
		if f.had[b].lacks(b.measure(size), now) {
			return b.short
		}
	}
	return delivery.BudgetEnough
}

func (f *full) note(drop int64, short delivery.BudgetShort, size delivery.BudgetSize, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := now.Add(fullFor)
	if short != delivery.BudgetDropShort {
		drop = 0
		// A new day has a budget of its own.
		if day := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); day.Before(until) {
			until = day
		}
	}
	b := budgetOf{short, drop}
	if n := f.had[b]; n.size > 0 && n.size < b.measure(size) && now.Before(n.until) {
		return
	}
	if f.had == nil {
		f.had = map[budgetOf]noRoom{}
	}
	maps.DeleteFunc(f.had, func(_ budgetOf, n noRoom) bool { return !now.Before(n.until) })
	f.had[b] = noRoom{b.measure(size), until}
}

// forget forgets the budgets of the day and of the drop.
func (f *full) forget(drop int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range []budgetOf{{delivery.BudgetDayShort, 0}, {delivery.BudgetMoneyShort, 0}, {delivery.BudgetDropShort, drop}} {
		delete(f.had, b)
	}
}

// Parts returns how many parts a message's text takes. A text that a template produces is
// assumed to have the same length.
func Parts(m delivery.Message) int {
	return message.SizeOf(Shorten(m.Content.Text)).Parts
}

// exhausted is the result of a message for which nothing is left.
func exhausted(short delivery.BudgetShort) delivery.Result {
	detail := "budget_used_up: SMS_BUDGET_PER_DAY leaves no more for today"
	switch short {
	case delivery.BudgetMoneyShort:
		detail = "budget_used_up: SMS_BUDGET_MONEY_PER_DAY leaves no more for today"
	case delivery.BudgetDropShort:
		detail = "budget_used_up: SMS_BUDGET_PER_DROP leaves no more for this drop"
	}
	return delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonBudget, Detail: detail}
}
