package smtp

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"dropbell/domain/delivery"
)

// A Pace limits how many mails go to the domains of recipients, over all workers.
type Pace interface {
	// Admit is asked once for each Send how many of the mails to each domain may go now.
	// A domain that is missing in the answer is not limited. giveBack gives back mails
	// that were admitted and that no server has taken, by domain; nil = they are not counted.
	Admit(ctx context.Context, mails map[string]Mails) (permits map[string]Permit, giveBack func(ctx context.Context, mails map[string]int))
	// Slow is told of a domain that asks for fewer mails, in reply to one by our server. It
	// returns how long to keep that one back, and whether to keep all others to the domain back as well.
	Slow(ctx context.Context, server, domain string) (wait time.Duration, others bool)
	// Taken is told of a mail that our server took, by its recipient's domain.
	Taken(server, domain string)
}

// Mails are those of one Send to one domain.
type Mails struct {
	// All are the mails, Waited those of them that were kept back before.
	All, Waited int
	// Until is their deadline.
	Until time.Time
	// Yield says that other mails to the domain go first: those of campaigns yield.
	Yield bool
}

// A Permit is how many mails may go to a domain, those first that were kept back before.
type Permit struct {
	Now int
	// Wait is when the first of the others may go, Every the time between two of them.
	Wait, Every time.Duration
	// Given is how many of the others go so, and Again when the rest asks again; with
	// Again 0 all go so.
	Given int
	Again time.Duration
	// Reason is why they wait, Detail the same for operators; both may be empty.
	Reason, Detail string
}

// paceStep is what waits are rounded up to: a batch is taken up again for all mails of
// a step together.
const paceStep = 2 * time.Second

// domainOf is the domain of a recipient's address, in lower case.
func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

// keepBack answers the messages that may not go now. Test messages always may.
// giveBackUnsent, once all are answered, gives back the others that no server has taken.
func (s *Sender) keepBack(ctx context.Context, messages []delivery.Message, results []delivery.Result) (giveBackUnsent func()) {
	if s.cfg.Pace == nil {
		return func() {}
	}
	order, mails := gather(messages)
	if len(mails) == 0 {
		return func() {}
	}
	permits, giveBack := s.cfg.Pace.Admit(ctx, mails)
	used := map[string]int{}
	var admitted []int
	for _, i := range order {
		domain := domainOf(messages[i].To.Email)
		p, limited := permits[domain]
		if used[domain]++; !limited || used[domain] <= p.Now {
			admitted = append(admitted, i)
			continue
		}
		results[i] = heldBack(p.turn(used[domain]-p.Now-1), p.Reason)
		results[i].Detail = p.Detail
	}
	return func() {
		if back := unsent(messages, results, admitted); len(back) > 0 && giveBack != nil {
			giveBack(ctx, back)
		}
	}
}

// gather returns the places of the messages that are paced, those first that were kept back
// before, and how many there are for each domain.
func gather(messages []delivery.Message) (order []int, mails map[string]Mails) {
	mails = map[string]Mails{}
	for _, waited := range []bool{true, false} {
		for i, m := range messages {
			if m.Waited != waited || !paced(m) {
				continue
			}
			order = append(order, i)
			domain := domainOf(m.To.Email)
			of := mails[domain]
			of.All++
			if waited {
				of.Waited++
			}
			of.Until, of.Yield = m.Until, m.Subject.Kind == delivery.KindCampaign
			mails[domain] = of
		}
	}
	return order, mails
}

// turn is how long a mail waits that is the nth of those that may not go now, from 0 on.
func (p Permit) turn(n int) time.Duration {
	if p.Again > 0 && n >= p.Given {
		return p.Again
	}
	return p.Wait + time.Duration(n)*p.Every
}

func paced(m delivery.Message) bool {
	return m.Subject.Kind != delivery.KindTest && validAddress(m.To.Email)
}

// heldBack is the answer to a message that waits.
func heldBack(wait time.Duration, reason string) delivery.Result {
	steps := max(1, (wait+paceStep-1)/paceStep)
	return delivery.Result{Status: delivery.Throttled, Apart: true, Held: true, Unsent: true, After: steps * paceStep, Reason: reason}
}

// unsent counts, by domain, the results at the places of admitted mails that say that no
// server has taken the mail.
func unsent(messages []delivery.Message, results []delivery.Result, admitted []int) map[string]int {
	back := map[string]int{}
	for _, i := range admitted {
		if r := results[i]; r.Unsent || r.Status == delivery.Throttled || r.Status == delivery.Permanent {
			back[domainOf(messages[i].To.Email)]++
		}
	}
	return back
}

// slowDown notes that the domain of the message asks for fewer mails, and makes the
// answer one about this domain, or about this mail alone. If no mail gets through between
// the answers of two domains, it is the mail server that asks, and the answer stays one about the channel.
func (r *run) slowDown(m delivery.Message, a *answer) {
	if r.sender.cfg.Pace == nil || !a.slow {
		return
	}
	domain := domainOf(m.To.Email)
	if r.asking != "" && r.asking != domain {
		a.result.Status, a.result.Apart = delivery.Throttled, false
		return
	}
	r.asking = domain
	wait, others := r.sender.cfg.Pace.Slow(r.ctx, r.sender.cfg.Host, domain)
	if others || a.broken { // another mail might cost another connection
		if r.slow == nil {
			r.slow = map[string]time.Duration{}
		}
		r.slow[domain] = wait
	}
	a.result.Status, a.result.Apart, a.result.Unsent, a.result.After = delivery.Throttled, true, true, wait
	if others {
		a.result.Reason = delivery.ReasonDomain
		return
	}
	a.result.Growing = true
	a.result.After += rand.N(wait/3 + 1) // so that the mails of one call do not come back together
}

// gotThrough notes that the server took the message.
func (r *run) gotThrough(m delivery.Message) {
	r.losses, r.asking = 0, ""
	if r.sender.cfg.Pace != nil {
		r.sender.cfg.Pace.Taken(r.sender.cfg.Host, domainOf(m.To.Email))
	}
	if m.Journal != nil {
		r.recorded = m.Journal.Accepted(m.To.ID)
	}
}
