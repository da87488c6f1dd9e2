package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
)

// callers is how many requests the crowd makes at once.
const callers = 48

// channels are the channels of every reservation.
var channels = []delivery.Channel{delivery.App, delivery.Email, delivery.Webhook}

// A reservationState is the last answer that a user got about one reminder.
type reservationState uint8

const (
	nothing   reservationState = iota
	accepted                   // acknowledged with 2xx
	refused                    // refused for good: must not exist
	withdrawn                  // cancelled, and that was acknowledged
	unknown                    // no answer came in time: may or may not exist
)

// A reservation is one reminder of one user.
type reservation struct {
	drop    int64
	user    int64
	channel delivery.Channel
}

// A ledger is the users' record of their requests and the answers.
type ledger struct {
	mu    sync.Mutex
	fates map[reservation]reservationState
}

func (l *ledger) note(d *drop, user int64, f reservationState, cs ...delivery.Channel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range cs {
		l.fates[reservation{d.id, user, c}] = f
	}
}

func (l *ledger) count(f reservationState) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.fates {
		if x == f {
			n++
		}
	}
	return n
}

// A visit is one user at one drop.
type visit struct {
	at     time.Time
	drop   *drop
	user   int64
	manner int
}

// The actions of a user.
const (
	allAtOnce  = iota // all channels in one request
	oneByOne          // a request for each
	cancelling        // all, then one is cancelled
	fickle            // all, then one is cancelled and reserved again
)

// manners of a hundred users.
func manner(n int) int {
	switch {
	case n < 84:
		return allAtOnce
	case n < 92:
		return oneByOne
	case n < 96:
		return cancelling
	}
	return fickle
}

// A crowd makes reservations and records the answers.
type crowd struct {
	*client
	ledger *ledger
	rng    *rand.Rand
}

// spread plans one visit of every user to every drop within the time given.
func (c *crowd) spread(drops []*drop, users []int64, within time.Duration) []visit {
	now := time.Now()
	var plan []visit
	for _, d := range drops {
		for _, u := range users {
			plan = append(plan, visit{now.Add(time.Duration(c.rng.Int64N(int64(within)))), d, u, manner(c.rng.IntN(100))})
		}
	}
	return plan
}

// carryOut makes the visits at their instants and returns after the last one.
func (c *crowd) carryOut(ctx context.Context, plan []visit) {
	slices.SortFunc(plan, func(a, b visit) int { return a.at.Compare(b.at) })
	queue := make(chan visit, len(plan))
	for _, v := range plan {
		queue <- v
	}
	close(queue)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for v := range queue {
				wait(time.Until(v.at), ctx.Done())
				c.visit(ctx, v)
			}
		})
	}
	all.Wait()
}

func (c *crowd) visit(ctx context.Context, v visit) {
	if v.manner == oneByOne {
		for _, channel := range channels {
			c.reserve(ctx, v.drop, v.user, channel)
		}
		return
	}
	// A repeated request may still be in flight; then the result of a further request would be
	// unknown.
	if !c.reserve(ctx, v.drop, v.user, channels...) || v.manner == allAtOnce {
		return
	}
	channel := channels[v.user%int64(len(channels))]
	if c.cancel(ctx, v.drop, v.user, channel) && v.manner == fickle {
		c.reserve(ctx, v.drop, v.user, channel)
	}
}

// reserve reports whether the first attempt was acknowledged.
func (c *crowd) reserve(ctx context.Context, d *drop, user int64, cs ...delivery.Channel) bool {
	var wishes []map[string]any
	for _, channel := range cs {
		wishes = append(wishes, map[string]any{"channel": channel.String(), "minutes": 5})
	}
	r, final := c.send(ctx, call{method: "POST", path: "/reservations", user: user, body: map[string]any{
		"template_id": fmt.Sprint(d.id), "shop_number": fmt.Sprint(shopNumber), "reminders": wishes}})
	switch {
	case !final:
		c.ledger.note(d, user, unknown, cs...)
	case r.ok():
		c.ledger.note(d, user, accepted, cs...)
		return !r.repeated
	case r.code == "already_due" && r.repeated: // its first attempt may have been in time
		c.ledger.note(d, user, unknown, cs...)
	case r.code == "already_due":
		c.ledger.note(d, user, refused, cs...)
	default:
		c.t.Errorf("reserve for user %d (repeated %v): answer %d %s", user, r.repeated, r.status, r.body)
	}
	return false
}

// cancel reports whether the first attempt was acknowledged.
func (c *crowd) cancel(ctx context.Context, d *drop, user int64, channel delivery.Channel) bool {
	r, final := c.send(ctx, call{method: "DELETE", path: fmt.Sprintf("/reservations/%d?channel=%s&minutes=5", d.id, channel), user: user})
	switch {
	case !final:
		c.ledger.note(d, user, unknown, channel)
	case r.ok(), r.repeated && r.status == http.StatusNotFound:
		c.ledger.note(d, user, withdrawn, channel)
		return !r.repeated
	default:
		c.t.Errorf("cancel for user %d (repeated %v): answer %d %s", user, r.repeated, r.status, r.body)
	}
	return false
}

// latecomers plans visits around the instant at which the drop's reminders become due.
// Acknowledged reservations must be reminded, refused reservations must not. Most users try in
// the last moment.
func (c *crowd) latecomers(d *drop, users []int64) []visit {
	var plan []visit
	for i, u := range users {
		early, span := 1500*time.Millisecond, 2*time.Second
		if i%4 != 0 {
			early, span = 40*time.Millisecond, 50*time.Millisecond
		}
		plan = append(plan, visit{d.dueAt.Add(-early + time.Duration(c.rng.Int64N(int64(span)))), d, u, allAtOnce})
	}
	return plan
}
