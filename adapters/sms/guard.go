package sms

import (
	"context"
	"slices"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// A Budget bounds how many parts of text messages all workers together hand over in a
// day.
type Budget interface {
	// Take takes up to parts from what is left of the day, all or nothing, and returns
	// whether it did.
	Take(ctx context.Context, parts int64) (bool, error)
	// GiveBack returns parts of messages that the provider has not taken.
	GiveBack(ctx context.Context, parts int64) error
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
}

// Send sends what is permitted. The budget is taken before the call, and what the
// provider refuses is given back: after a crash more is counted than was sent, never
// less.
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
	var parts []int64
	var sum int64
	for _, m := range messages {
		parts = append(parts, int64(max(1, Parts(m))))
		sum += parts[len(parts)-1]
	}
	n := len(messages)
	for {
		taken, err := g.Budget.Take(ctx, sum)
		if err != nil {
			return delivery.Repeat(delivery.Result{Status: delivery.Throttled, Apart: true, Detail: "not sent: the day's budget cannot be read: " + delivery.CauseOf(err)}, len(messages))
		}
		if taken {
			break
		}
		if n == 1 {
			return delivery.Repeat(exhausted(), len(messages))
		}
		// Near its end the budget has room for some of them.
		n /= 2
		sum = 0
		for _, p := range parts[:n] {
			sum += p
		}
	}
	results := g.Sender.Send(ctx, messages[:n])
	var back int64
	for i, r := range results {
		if r.Status == delivery.Permanent || r.Status == delivery.Throttled {
			back += parts[i]
		}
	}
	if back > 0 {
		_ = g.Budget.GiveBack(context.WithoutCancel(ctx), back) // the rest of the day is the shorter
	}
	if n < len(messages) {
		results = append(results, g.within(ctx, messages[n:])...)
	}
	return results
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
