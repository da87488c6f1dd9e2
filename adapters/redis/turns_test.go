package redis_test

import (
	"slices"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// A letter is a mail of the simulation: it asks at an instant, and again when it is told to.
type letter struct {
	at, until time.Time
	yield     bool
	asked     int
	sent      time.Time
}

// post simulates sending letters to one domain, as batches do. Due letters ask in calls of at
// most fifty letters of one deadline, the nearest deadline first. Refused letters ask again
// after waits that are rounded up to two seconds. A letter whose turn is after its deadline asks
// again half-way. change, if set, is called before each instant.
func post(t *testing.T, p *redis.DomainPacer, now *time.Time, letters *[]*letter, change func()) {
	t.Helper()
	for {
		if change != nil {
			change()
		}
		var due []*letter
		var next time.Time
		for _, l := range *letters {
			switch {
			case !l.sent.IsZero() || !l.at.Before(l.until):
			case !l.at.After(*now):
				due = append(due, l)
			case next.IsZero() || l.at.Before(next):
				next = l.at
			}
		}
		if len(due) == 0 {
			if next.IsZero() {
				return
			}
			*now = next
			continue
		}
		slices.SortStableFunc(due, func(a, b *letter) int {
			if a.yield != b.yield {
				return map[bool]int{true: 1, false: -1}[a.yield]
			}
			return a.until.Compare(b.until)
		})
		for len(due) > 0 {
			n := 1
			for n < len(due) && n < 50 && due[n].until.Equal(due[0].until) && due[n].yield == due[0].yield {
				n++
			}
			call := due[:n]
			due = due[n:]
			slices.SortStableFunc(call, func(a, b *letter) int { return map[bool]int{true: -1}[a.asked > 0 && b.asked == 0] })
			m := redis.Mails{All: n, Until: call[0].until, Yield: call[0].yield}
			for _, l := range call {
				if l.asked > 0 {
					m.Waited++
				}
			}
			turns, limited := p.Admit(t.Context(), "qq.com", m)
			if !limited {
				t.Fatal("nothing limits")
			}
			for i, l := range call {
				l.asked++
				if i < turns.Now {
					l.sent = *now
					continue
				}
				wait := turns.Wait + time.Duration(i-turns.Now)*turns.Every
				if i-turns.Now >= turns.Given {
					wait = turns.Again
				}
				wait = max(2*time.Second, (wait+1999*time.Millisecond)/(2*time.Second)*(2*time.Second))
				if left := l.until.Sub(*now); wait >= left {
					if wait = left / 2; wait < time.Second {
						l.until = *now // expired
						continue
					}
				}
				l.at = now.Add(wait)
			}
		}
	}
}

// fastest fails if more letters went within a second than the rate plus the two seconds' worth
// that may go at once.
func fastest(t *testing.T, letters []*letter, rate int) {
	t.Helper()
	bySecond := map[int64]int{}
	for _, l := range letters {
		if !l.sent.IsZero() {
			bySecond[l.sent.Unix()]++
		}
	}
	for at, n := range bySecond {
		if n > 3*rate {
			t.Errorf("%d mails in the second %d", n, at)
		}
	}
}

func newPost(t *testing.T, rate int) (*redis.DomainPacer, *time.Time) {
	t.Helper()
	p, now, _ := newPostAt(t, rate)
	return p, now
}

// newPostAt also returns a function that empties Redis.
func newPostAt(t *testing.T, rate int) (p *redis.DomainPacer, now *time.Time, empty func()) {
	t.Helper()
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	t.Cleanup(func() { _ = client.Close() })
	instant := time.Date(2026, 11, 11, 11, 0, 0, 0, time.UTC)
	clock := func() time.Time { return instant }
	p = redis.NewDomainPacer(client, map[string]int{"qq.com": rate}, clock, redis.AloneFor(1, clock))
	p.SetClock(clock)
	return p, &instant, func() {
		musttest.OK(t, client.FlushAll(t.Context()).Err())
	}
}

func letters(n int, at, until time.Time, yield bool) (list []*letter) {
	for range n {
		list = append(list, &letter{at: at, until: until, yield: yield})
	}
	return list
}

// 20,000 mails to a domain that accepts 50 mails a second wait for their turns. Each mail asks a
// few times, not every two seconds for seven minutes, and the mails use the whole rate.
func TestMailsAskAgainWhenItIsTheirTurn(t *testing.T) {
	p, now := newPost(t, 50)
	start := *now
	all := letters(20_000, start, start.Add(time.Hour), false)
	post(t, p, now, &all, nil)
	fastest(t, all, 50)
	asked, last := 0, start
	for _, l := range all {
		asked += l.asked
		if l.sent.IsZero() {
			t.Fatal("a mail was not sent")
		}
		if l.sent.After(last) {
			last = l.sent
		}
	}
	if took := last.Sub(start); asked > 4*len(all) || took > 440*time.Second {
		t.Errorf("%d mails asked %d times and took %s", len(all), asked, took)
	}
}

// Reminders of a near opening go before reminders of a later opening and before a campaign, both
// of which have turns already. A message that cannot go before its opening is not sent. Such
// messages take no more turns from other messages than there are before that opening.
func TestANearerDeadlineGoesFirst(t *testing.T) {
	p, now := newPost(t, 50)
	start := *now
	campaign := letters(5_000, start, start.Add(3*time.Minute), true)
	later := letters(5_000, start, start.Add(time.Hour), false)
	soon := letters(2_500, start.Add(20*time.Second), start.Add(80*time.Second), false)
	tooMany := letters(4_000, start.Add(100*time.Second), start.Add(130*time.Second), false)
	all := slices.Concat(campaign, later, soon, tooMany)
	post(t, p, now, &all, nil)
	fastest(t, all, 50)
	sent := func(list []*letter) (n int, last time.Duration) {
		for _, l := range list {
			if !l.sent.IsZero() {
				n++
				last = max(last, l.sent.Sub(start))
			}
		}
		return n, last
	}
	if n, last := sent(soon); n != 2_500 || last > 80*time.Second {
		t.Errorf("%d of 2,500 were sent before their opening, the last after %s", n, last)
	}
	if n, last := sent(tooMany); n < 1_200 || last >= 130*time.Second {
		t.Errorf("%d went out in half a minute, the last after %s", n, last)
	}
	if n, last := sent(later); n != 5_000 || last > 220*time.Second {
		t.Errorf("%d of 5,000, the last after %s", n, last)
	}
	if n, _ := sent(campaign); n > 1_000 {
		t.Errorf("%d mails of the campaign overtook reminders", n)
	}
}

// Unused turns, of cancelled mails or because Redis was emptied, delay other mails for a limited
// time: the next mails go once the unused turns are over.
func TestTurnsThatAreNotUsed(t *testing.T) {
	p, now := newPost(t, 50)
	start := *now
	all := letters(3_000, start, start.Add(time.Hour), false)
	cancelled := false
	post(t, p, now, &all, func() {
		if !cancelled && now.Sub(start) >= 10*time.Second {
			cancelled = true
			all = letters(100, *now, start.Add(2*time.Hour), true)
		}
	})
	for _, l := range all {
		if took := l.sent.Sub(start); l.sent.IsZero() || took > 2*time.Minute || l.asked > 8 {
			t.Fatalf("sent after %s, asked %d times", took, l.asked)
		}
	}
}

// Mails that Redis never counted (they waited for the end of a pause, or Redis was emptied)
// still get turns before mails of a later opening, and each mail asks only a few times.
func TestMailsThatWereNeverCountedGoFirst(t *testing.T) {
	for name, pause := range map[string]bool{"after a pause": true, "after Redis was emptied": false} {
		t.Run(name, func(t *testing.T) {
			p, now, empty := newPostAt(t, 50)
			start := *now
			soon := letters(5_000, start, start.Add(time.Hour), false)
			later := letters(2_000, start.Add(20*time.Second), start.Add(2*time.Hour), false)
			all := slices.Concat(soon, later)
			if pause {
				p.Slow(t.Context(), "relay", "qq.com")
			}
			emptied, most := pause, int64(0)
			post(t, p, now, &all, func() {
				if !emptied && now.Sub(start) >= 10*time.Second {
					emptied = true
					empty()
				}
				states, err := p.States(t.Context())
				if err != nil || len(states) != 1 {
					t.Fatal(states, err)
				}
				if now.Sub(start) > 60*time.Second {
					most = max(most, states[0].Waiting)
				}
			})
			fastest(t, all, 50)
			asked, through, overtook := 0, start, 0
			for _, l := range all {
				asked += l.asked
			}
			for _, l := range soon {
				if l.sent.After(through) {
					through = l.sent
				}
			}
			for _, l := range later {
				if l.sent.IsZero() {
					t.Fatal("a mail was not sent")
				}
				if l.sent.Before(through.Add(-5 * time.Second)) {
					overtook++
				}
			}
			if took := through.Sub(start); took > 135*time.Second || overtook > 100 || asked > 5*len(all) {
				t.Errorf("through after %s, %d mails overtook, asked %d times", took, overtook, asked)
			}
			// Mails that had turns when Redis was emptied are not counted until they are back.
			if least := map[bool]int64{true: 4_000, false: 2_000}[pause]; most < least || most > 5_500 {
				t.Errorf("after a minute %d wait", most)
			}
		})
	}
}

// Mails of a later opening that get no turn in the next minutes count as waiting until they ask
// again.
func TestMailsWithoutATurnAreCounted(t *testing.T) {
	p, now := newPost(t, 50)
	start := *now
	all := slices.Concat(letters(20_000, start, start.Add(time.Hour), false), letters(500, start.Add(time.Second), start.Add(2*time.Hour), false))
	looked := false
	post(t, p, now, &all, func() {
		if looked || now.Sub(start) < time.Minute {
			return
		}
		looked = true
		left := int64(0)
		for _, l := range all {
			if l.sent.IsZero() {
				left++
			}
		}
		states, err := p.States(t.Context())
		if err != nil || len(states) != 1 || states[0].Waiting != left {
			t.Errorf("%d wait: %+v, %v", left, states, err)
		}
	})
	fastest(t, all, 50)
	for _, l := range all {
		if l.sent.IsZero() || l.sent.After(start.Add(440*time.Second)) || l.asked > 12 {
			t.Fatalf("sent after %s, asked %d times", l.sent.Sub(start), l.asked)
		}
	}
}

// States counts the mails sent to a limited domain today and the waiting mails, and includes the
// domains that asked for fewer mails.
func TestStatesOfDomains(t *testing.T) {
	p, now := newPost(t, 50)
	if _, limited := p.Admit(t.Context(), "qq.com", redis.Mails{All: 80, Until: now.Add(time.Hour)}); !limited {
		t.Fatal("nothing limits")
	}
	p.Slow(t.Context(), "relay", "163.com")
	expect := func(want ...delivery.DomainPace) {
		t.Helper()
		got, err := p.States(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	expect(delivery.DomainPace{Domain: "163.com", PausedUntil: now.Add(15 * time.Second)}, delivery.DomainPace{Domain: "qq.com", PerSecond: 50, Today: 50, Waiting: 30})
	*now = now.Add(20 * time.Second)
	p.Admit(t.Context(), "qq.com", redis.Mails{All: 30, Waited: 30, Until: now.Add(time.Hour - 20*time.Second)})
	expect(delivery.DomainPace{Domain: "qq.com", PerSecond: 50, Today: 80})
	p.Unused(t.Context(), "qq.com", now.Add(-24*time.Hour), 10) // of another day
	p.Unused(t.Context(), "qq.com", *now, 30)
	expect(delivery.DomainPace{Domain: "qq.com", PerSecond: 50, Today: 50})
	*now = now.Add(24 * time.Hour)
	expect(delivery.DomainPace{Domain: "qq.com", PerSecond: 50})
}
