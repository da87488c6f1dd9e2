package redis

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"
)

// turnsAhead is how far into the future mails to a limited domain get turns. Mails without a
// turn ask again before turnsAhead is over. Turns of cancelled mails stay unused, for at most
// turnsAhead.
const turnsAhead = 5 * time.Minute

// afterAll is added to the deadlines of mails that yield to all others.
const afterAll = 1 << 40

//go:embed domain.lua
var domainSource string

var domainScript = goredis.NewScript(domainSource)

//go:embed unused.lua
var unusedSource string

var unusedScript = goredis.NewScript(unusedSource)

// Mails are the mails of one call to one domain. They have one deadline, Until.
type Mails struct {
	// All counts the mails; Waited counts the mails among them that got a turn before.
	All, Waited int
	Until       time.Time
	// Yield says that the mails go after all that do not yield, whatever the deadline.
	Yield bool
}

// Turns say how many mails of a call may go Now. Mails that waited go first.
type Turns struct {
	Now int
	// Wait is the delay before the first of the remaining mails may go; Every is the time
	// between two mails. Given counts the remaining mails that have a turn; mails without a turn
	// ask again after Again.
	Wait, Every time.Duration
	Given       int
	Again       time.Duration
}

// turns asks Redis.
func (p *DomainPacer) turns(ctx context.Context, domain string, rate int, m Mails) (t Turns, err error) {
	left, deadline := turnsAhead*2, int64(afterAll)-1
	if !m.Until.IsZero() {
		left, deadline = m.Until.Sub(p.now()), m.Until.Unix()
	}
	if m.Yield {
		deadline += afterAll
	}
	at := int64(0)
	if p.at != nil {
		at = p.at().UnixMicro()
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	reply, err := domainScript.Run(ctx, p.client, []string{turnsKey(domain)}, rate, m.Waited, m.All-m.Waited, strconv.FormatInt(deadline, 10),
		milliseconds(left), turnsAhead.Milliseconds(), at).Int64Slice()
	if err != nil {
		return t, err
	}
	if len(reply) != 4 {
		return t, errors.New("unexpected reply about turns of mails")
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	every := time.Second / time.Duration(rate)
	return Turns{Now: int(reply[0]), Wait: max(ms(reply[1]), every), Every: every, Given: int(reply[2]), Again: max(ms(reply[3]), every)}, nil
}

// Unused subtracts mails that were admitted and not sent from the domain's count of the day of
// at (UTC). The turns of these mails stay used up. If Redis does not answer, the mails stay
// counted.
func (p *DomainPacer) Unused(ctx context.Context, domain string, at time.Time, mails int) {
	if p.perSecond[domain] <= 0 || p.alone.away() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	telling, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	p.alone.answered(ctx, unusedScript.Run(telling, p.client, []string{turnsKey(domain)}, at.Unix()/86400, mails).Err())
}

func turnsKey(domain string) string { return "pace:mail:turns:" + domain }

// turnsGrace is how long mails of a deadline still count as waiting after the last turn of the
// deadline, or after the instant at which mails without a turn ask again.
const turnsGrace = 10 * time.Second

// States returns, in order, the domains that have a limit or are paused because they asked for
// fewer mails. Each state has the number of mails sent today (UTC) and of waiting mails.
func (p *DomainPacer) States(ctx context.Context) ([]delivery.DomainPace, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	slow, err := p.read(ctx)
	if err != nil {
		return nil, redisclient.Unavailable("pace", err)
	}
	found := map[string]*goredis.MapStringStringCmd{}
	if _, err := p.client.Pipelined(ctx, func(all goredis.Pipeliner) error {
		for domain := range p.perSecond {
			found[domain] = all.HGetAll(ctx, turnsKey(domain))
		}
		return nil
	}); err != nil {
		return nil, redisclient.Unavailable("pace", err)
	}
	now := p.now()
	states := map[string]delivery.DomainPace{}
	for domain, rate := range p.perSecond {
		s := delivery.DomainPace{Domain: domain, PerSecond: rate}
		for field, text := range found[domain].Val() {
			countTurns(&s, field, text, now)
		}
		states[domain] = s
	}
	for domain, one := range slow {
		if one.until.After(now) {
			s := states[domain]
			s.Domain, s.PausedUntil = domain, one.until.UTC()
			states[domain] = s
		}
	}
	list := make([]delivery.DomainPace, 0, len(states))
	for _, domain := range slices.Sorted(maps.Keys(states)) {
		list = append(list, states[domain])
	}
	return list, nil
}

// countTurns adds a field of a domain's hash.
func countTurns(s *delivery.DomainPace, field, text string, now time.Time) {
	var n [4]int64 // see domain.lua
	for i, word := range strings.SplitN(text, " ", len(n)) {
		n[i], _ = strconv.ParseInt(word, 10, 64)
	}
	switch {
	case field == "filled":
	case field == "used":
		if n[0] == now.Unix()/86400 {
			s.Today = n[1]
		}
	case !time.UnixMicro(max(n[1], n[3])).Add(turnsGrace).Before(now):
		s.Waiting += n[0]
	}
}
