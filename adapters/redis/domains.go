package redis

import (
	"context"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"
)

const (
	// slowKey is a hash with a field for each domain that asked for fewer mails. The value is
	// the end of the pause, in milliseconds, and how often in a row the domain asked.
	slowKey = "pace:mail:slow"
	// slowFirst is the first pause, which doubles up to slowMost. A domain that did not ask for
	// fewer mails for slowForget starts with slowFirst again.
	slowFirst, slowMost, slowForget = 15 * time.Second, 2 * time.Minute, 10 * time.Minute
	// slowLife is the largest age of the cached list of slow domains.
	slowLife = 500 * time.Millisecond
	// slowShare: if at least 1 of slowShare answers of a domain asks for fewer mails, all mails
	// to the domain wait. Below that share only the refused mail waits, unless slowInRow answers
	// in a row ask for fewer mails.
	slowShare, slowInRow = 4, 8
	// answersHalve is the half-life of a domain's answers: after it an answer counts half.
	answersHalve = 30 * time.Second
)

// DomainPacer keeps all workers together below the mail rates that recipients' domains accept.
// Pauses are on the workers' clocks.
type DomainPacer struct {
	client goredis.UniversalClient
	// perSecond are the limits by domain.
	perSecond map[string]int
	now       func() time.Time
	// at replaces the clock of Redis in tests.
	at func() time.Time

	mu      sync.Mutex
	slow    map[string]pause
	answers map[route]answers
	// pruneNext is when answers are forgotten that hardly count any more.
	pruneNext time.Time
	// reading: a call is reading the slow domains, which is due at readNext.
	reading  bool
	readNext time.Time
	alone    *Alone
}

// A pause is until when mails to a domain are kept back.
type pause struct {
	until time.Time
	times int
}

// A route is the way of mails to a domain: by a mail server.
type route struct{ server, domain string }

// answers counts the replies to this worker's mails on a route. Older replies count less.
type answers struct {
	taken, asked float64
	at           time.Time
	// inRow counts the replies that asked for fewer mails since taking, the instant at which the
	// last mail was accepted.
	inRow  int
	taking time.Time
}

// now returns the answers as they count now.
func (a answers) now(now time.Time) answers {
	if past := now.Sub(a.at); past > 0 {
		part := math.Exp2(-past.Seconds() / answersHalve.Seconds())
		a.taken, a.asked, a.at = a.taken*part, a.asked*part, now
	}
	return a
}

// NewDomainPacer returns a pacer with the limits by domain, in mails per second. If alone is nil
// only the pacer's States can be read.
func NewDomainPacer(client goredis.UniversalClient, perSecond map[string]int, now func() time.Time, alone *Alone) *DomainPacer {
	return &DomainPacer{client: client, perSecond: perSecond, now: now, alone: alone, slow: map[string]pause{}, answers: map[route]answers{}}
}

// Admit takes mails out of the domain's budget. It returns how many mails may go now, and when
// the other mails may go. Mails with a nearer deadline go first; with the same deadline, mails
// that have waited go first. limited is false if nothing limits the domain. While Redis does not
// answer, this worker keeps to its part of the limit and serves calls in their order.
func (p *DomainPacer) Admit(ctx context.Context, domain string, m Mails) (t Turns, limited bool) {
	if until := p.paused(ctx)[domain].until; p.now().Before(until) {
		return Turns{Wait: until.Sub(p.now()), Given: m.All}, true
	}
	rate := p.perSecond[domain]
	if rate <= 0 {
		return Turns{Now: m.All}, false
	}
	if !p.alone.away() {
		t, err := p.turns(ctx, domain, rate, m)
		if p.alone.answered(ctx, err); err == nil {
			return t, true
		}
	}
	n, wait, each := p.alone.admit(ctx, part{limitDomain, "domain:" + domain, delivery.Email, float64(rate)}, m.All, false)
	return Turns{Now: n, Wait: max(wait, time.Duration(n)*each), Every: each, Given: m.All - n}, true
}

// Taken notes that the server took a mail to the domain.
func (p *DomainPacer) Taken(server, domain string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[route{server, domain}].now(p.now())
	a.taken, a.inRow, a.taking = a.taken+1, 0, p.now()
	p.answers[route{server, domain}] = a
}

// Slow records that the domain asked for fewer mails in reply to a mail sent by the server. It
// returns how long this mail waits, and whether all other mails to the domain wait too: they do
// not while the domain accepts most mails. The pause doubles if no mail was accepted since the
// last pause.
func (p *DomainPacer) Slow(ctx context.Context, server, domain string) (wait time.Duration, others bool) {
	p.paused(ctx)
	next, length, others := p.note(route{server, domain})
	if next.until.IsZero() {
		return length, others
	}
	if p.alone.away() { // the other workers get such replies themselves
		return length, true
	}
	ctx = context.WithoutCancel(ctx)
	telling, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	_, err := p.client.Pipelined(telling, func(all goredis.Pipeliner) error {
		all.HSet(telling, slowKey, domain, strconv.FormatInt(next.until.UnixMilli(), 10)+" "+strconv.Itoa(next.times))
		all.PExpire(telling, slowKey, slowMost+slowForget)
		return nil
	})
	p.alone.answered(ctx, err)
	return length, true
}

// note counts a reply that asked for fewer mails. next is the pause that begins now, zero if
// none begins; wait is how long the mail waits; others reports whether all other mails wait too.
func (p *DomainPacer) note(on route) (next pause, wait time.Duration, others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	before := p.slow[on.domain]
	if now.Before(before.until) { // calls that began before say nothing new
		return pause{}, before.until.Sub(now), true
	}
	a := p.answers[on].now(now)
	a.asked++
	a.inRow++
	p.answers[on] = a
	if a.asked*slowShare < a.asked+a.taken && a.inRow < slowInRow {
		return pause{}, slowFirst, false
	}
	times := before.times + 1
	if !a.taking.Before(before.until) || now.Sub(before.until) > slowForget {
		times = 1
	}
	wait = min(slowMost, slowFirst<<min(times-1, 10))
	next = pause{now.Add(wait), times}
	p.slow[on.domain] = next
	return next, wait, true
}

// paused returns the slow domains, at most [slowLife] old while Redis answers. One call reads
// the list; concurrent calls get the cached list.
func (p *DomainPacer) paused(ctx context.Context) map[string]pause {
	p.mu.Lock()
	due := !p.reading && !p.now().Before(p.readNext) && !p.alone.away()
	p.reading = p.reading || due
	p.mu.Unlock()
	if due {
		fresh, err := p.read(ctx)
		p.alone.answered(ctx, err)
		p.learn(fresh)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.slow)
}

// learn merges the list that was read into the cached list; fresh is nil if reading failed. A
// pause that began meanwhile, or that Redis has lost, stays.
func (p *DomainPacer) learn(fresh map[string]pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading, p.readNext = false, p.now().Add(slowLife)
	for domain, one := range fresh {
		if !one.until.Before(p.slow[domain].until) {
			p.slow[domain] = one
		}
	}
	maps.DeleteFunc(p.slow, func(_ string, one pause) bool { return p.forgotten(one) })
	if now := p.now(); !now.Before(p.pruneNext) {
		p.pruneNext = now.Add(time.Minute)
		maps.DeleteFunc(p.answers, func(_ route, a answers) bool { return now.Sub(a.at) > slowForget })
	}
}

func (p *DomainPacer) forgotten(one pause) bool { return p.now().Sub(one.until) > slowForget }

// read returns the slow domains that Redis knows, and removes domains whose pause is long over.
func (p *DomainPacer) read(ctx context.Context) (map[string]pause, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	all, err := p.client.HGetAll(ctx, slowKey).Result()
	if err != nil {
		return nil, err
	}
	fresh := make(map[string]pause, len(all))
	var old []string
	for domain, text := range all {
		until, times, _ := strings.Cut(text, " ")
		ms, _ := strconv.ParseInt(until, 10, 64)
		n, _ := strconv.Atoi(times)
		if one := (pause{time.UnixMilli(ms), n}); p.forgotten(one) {
			old = append(old, domain)
		} else {
			fresh[domain] = one
		}
	}
	if len(old) > 0 {
		_ = p.client.HDel(ctx, slowKey, old...).Err()
	}
	return fresh, nil
}
