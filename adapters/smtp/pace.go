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
	// Admit is called once for each Send. It returns how many of the mails to each domain may go
	// now. A domain that is missing in permits is not limited. giveBack gives back, by domain,
	// admitted mails that no server has taken; nil = admitted mails are not counted.
	Admit(ctx context.Context, mails map[string]Mails) (permits map[string]Permit, giveBack func(ctx context.Context, mails map[string]int))
	// Slow is told of a domain that asks for fewer mails, in reply to one mail by our server.
	// wait is how long to keep this mail back. others says whether to keep all other mails to
	// the domain back, too.
	Slow(ctx context.Context, server, domain string) (wait time.Duration, others bool)
	// Taken is told of a mail that our server took, by its recipient's domain.
	Taken(server, domain string)
}

// Mails counts the mails of one Send to one domain.
type Mails struct {
	// All counts all mails. Waited counts the mails among them that were kept back before.
	All, Waited int
	// Until is their deadline.
	Until time.Time
	// Yield says that other mails to the domain go first. Mails of campaigns yield.
	Yield bool
}

// A Permit says how many mails may go to a domain. Mails that were kept back before go first.
type Permit struct {
	Now int
	// Wait is the delay before the first kept-back mail may go; Every is the time between two
	// kept-back mails.
	Wait, Every time.Duration
	// Given counts the kept-back mails with a turn by Wait and Every. Mails beyond Given ask
	// again after Again. Again 0 = all kept-back mails have a turn.
	Given int
	Again time.Duration
	// Reason is why the mails are kept back. Detail is the same for operators. Both may be
	// empty.
	Reason, Detail string
}

// paceStep is the unit to which waits are rounded up, so that a batch is resumed once for all
// mails of a step.
const paceStep = 2 * time.Second

// domainOf is the domain of a recipient's address, in lower case.
func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

// keepBack sets the results of the messages that may not go now. Test messages may always go.
// Call giveBackUnsent once all messages have results: it gives back the admitted messages that
// no server has taken.
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

// gather returns the indexes of the paced messages, with the messages that were kept back before
// at the front, and counts the messages for each domain.
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

// turn is how long the nth kept-back mail waits; n begins at 0.
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

// unsent counts, by domain, the admitted mails whose result says that no server has taken the
// mail. admitted are indexes of messages.
func unsent(messages []delivery.Message, results []delivery.Result, admitted []int) map[string]int {
	back := map[string]int{}
	for _, i := range admitted {
		if r := results[i]; r.Unsent || r.Status == delivery.Throttled || r.Status == delivery.Permanent {
			back[domainOf(messages[i].To.Email)]++
		}
	}
	return back
}

// slowDown records that the message's domain asks for fewer mails, and limits the result to this
// domain or to this mail. If two domains ask without a mail getting through in between, the mail
// server itself asks, and the result concerns the whole channel.
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
