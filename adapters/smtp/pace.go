package smtp

import (
	"cmp"
	"context"
	"strings"
	"time"

	"dropbell/domain/delivery"
)

// A Pace limits how many mails go to the domains of recipients, over all workers.
type Pace interface {
	// Admit is asked once for each Send how many of the mails to each domain may go now.
	// A domain that is missing in the answer is not limited.
	Admit(ctx context.Context, mails map[string]int) map[string]Permit
	// Slow is told of a domain whose server asks for fewer mails. It returns how long
	// to keep mails to it back.
	Slow(ctx context.Context, domain string) time.Duration
	// Unsent gives back mails that were admitted and that no server has taken.
	Unsent(ctx context.Context, mails int)
}

// A Permit is how many mails may go to a domain.
type Permit struct {
	Now int
	// Wait is when the first of the others may go, Every the time between two of them.
	Wait, Every time.Duration
	// Reason is why they wait.
	Reason string
}

// paceStep is what waits are rounded up to: a batch is taken up again for all mails of
// a step together.
const paceStep = 2 * time.Second

// domainOf is the domain of a recipient's address, in lower case.
func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

// keepBack answers the messages that may not go now. Test messages always may.
func (s *Sender) keepBack(ctx context.Context, messages []delivery.Message, results []delivery.Result) {
	if s.cfg.Pace == nil {
		return
	}
	mails := map[string]int{}
	for _, m := range messages {
		if paced(m) {
			mails[domainOf(m.To.Email)]++
		}
	}
	if len(mails) == 0 {
		return
	}
	permits, used := s.cfg.Pace.Admit(ctx, mails), map[string]int{}
	for i, m := range messages {
		domain := domainOf(m.To.Email)
		p, limited := permits[domain]
		if !limited || !paced(m) {
			continue
		}
		if used[domain]++; used[domain] > p.Now {
			late := used[domain] - p.Now - 1
			results[i] = heldBack(p.Wait+time.Duration(late)*p.Every, p.Reason)
		}
	}
}

func paced(m delivery.Message) bool {
	return m.Subject.Kind != delivery.KindTest && validAddress(m.To.Email)
}

// heldBack is the answer to a message that waits.
func heldBack(wait time.Duration, reason string) delivery.Result {
	steps := max(1, (wait+paceStep-1)/paceStep)
	return delivery.Result{Status: delivery.Throttled, Apart: true, Held: true, Unsent: true, After: steps * paceStep, Reason: reason,
		Detail: map[string]string{delivery.ReasonWarmUp: "not sent: the mails of the day are sent"}[reason]}
}

// unsent counts mails that were admitted and that the server has certainly not taken.
func unsent(messages []delivery.Message, results []delivery.Result) (n int) {
	for i, r := range results {
		if paced(messages[i]) && !r.Held && (r.Status == delivery.Throttled || r.Status == delivery.Permanent) {
			n++
		}
	}
	return n
}

// slowDown notes that the domain of the message asks for fewer mails, and makes the
// answer one about this domain. If a second domain asks in the same Send, it is the mail
// server that asks, and the answer stays one about the channel.
func (r *run) slowDown(m delivery.Message, a *answer) {
	if r.sender.cfg.Pace == nil || !a.slow {
		return
	}
	domain := domainOf(m.To.Email)
	if _, known := r.slow[domain]; len(r.slow) > 0 && !known {
		a.result.Status, a.result.Apart = delivery.Throttled, false
		return
	}
	if r.slow == nil {
		r.slow = map[string]time.Duration{}
	}
	r.slow[domain] = cmp.Or(r.slow[domain], r.sender.cfg.Pace.Slow(r.ctx, domain))
	a.result.Status, a.result.Apart, a.result.Unsent, a.result.After, a.result.Reason = delivery.Throttled, true, true, r.slow[domain], delivery.ReasonDomain
}
