package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/lab/bench/stack"
)

// A rush says how much is claimed and how much is destroyed meanwhile.
type rush struct {
	users, visits int     // visits of all users at each drop
	stock         []int64 // at the opening, and after each raise
	limit         int     // per user
	codes         int     // redeem codes, each tried by three users

	storm                 time.Duration
	webKills, workerKills int
	redisRestarts         int
	redisEmptied          int
	tills                 int // that take coupons of each drop through payment
	troubles              []trouble
	pauses, moves         int
	pause                 [2]time.Duration
	patience              time.Duration                       // of a client
	servers               func(*system) (*stack.Stack, error) // nil = [stack.Start]
}

var shortRush = rush{
	users: 500, visits: 1500, stock: []int64{60, 90, 120}, limit: 2, codes: 30,
	storm: 14 * time.Second, webKills: 2, workerKills: 2, redisRestarts: 1, redisEmptied: 3, tills: 2,
	pauses: 1, moves: 2, pause: [2]time.Duration{500 * time.Millisecond, time.Second},
	patience: 20 * time.Second,
}

// TestClaimsChaosShort: a crowd claims from both gates and redeems codes, while the servers and
// processes behind the gates are destroyed.
func TestClaimsChaosShort(t *testing.T) { rushAndDestroy(t, shortRush) }

// rushShards is into how many parts each stock behind the gate is divided.
const rushShards = 8

// codeKeys are the keys of redeem codes.
const codeKeys = "CODE_KEYS=1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU="

// claims is everything that takes part in a rush.
type claims struct {
	*system
	rush  rush
	sales []*sale // durable, gate
	codes *codeSale
	doors []*doorRush
	lost  int // promises that Redis took with it
}

func rushAndDestroy(t *testing.T, r rush) {
	c := newClaims(t, r, func(f *fleet) { f.env = append(f.env, drawKey) })
	c.codes = c.openCodes("gate", 3*time.Second)
	for _, mode := range []string{"durable", "gate"} {
		c.sales, c.doors = append(c.sales, c.publish(mode)), append(c.doors, c.openDoors(mode))
	}
	entrants := make([]int64, guests)
	for i := range entrants {
		entrants[i] = int64(40_000_000 + i)
	}
	raffle := c.publishDraw("Rush by draw", entrants, 0)
	// Only now, so that the first requests come before the opening also where programs are slow.
	c.inParallel(len(c.sales), func(i int) { c.sales[i].openSoon() })
	c.storm(raffle)
	for _, s := range c.sales {
		c.calm(s.template)
		s.sellOut()
		s.lastAnswers()
		s.account()
	}
	c.calm(c.codes.template)
	c.codes.lastAnswers()
	c.codes.account()
	for _, d := range c.doors {
		d.judge()
	}
	raffle.account()
	c.print()
}

// newClaims starts three web and two worker processes. Each change is applied to the fleet
// before the processes start.
func newClaims(t *testing.T, r rush, change ...func(*fleet)) *claims {
	w := &system{size: &size{webKills: r.webKills, workerKills: r.workerKills, servers: r.servers}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.startServers()
	f := &fleet{t: t, stack: w.stack, env: append([]string{fmt.Sprint("GATE_SHARDS=", rushShards), codeKeys}, w.env...)}
	for _, apply := range change {
		apply(f)
	}
	w.fleet = launch(w.ctx, f, 3, 2)
	w.crowd = &crowd{client: newClient(t, w.fleet, r.patience)}
	w.say("three web and two worker processes are running")
	return &claims{system: w, rush: r}
}

// storm lets all users claim under faults and while staff change the drops. Meanwhile users enter a draw, which is made.
func (c *claims) storm(raffle *drawnDrop) {
	var plan []timedAction
	for i, s := range c.sales {
		plan = append(plan, s.actions(c.random(uint64(30+i)))...)
	}
	plan = append(plan, c.codes.actions(c.random(40))...)
	slices.SortFunc(plan, func(a, b timedAction) int { return a.at.Compare(b.at) })
	lanes := []lane{c.webTroubles, c.workerTroubles, c.redisTroubles, c.troubles(c.rush.troubles, 21)}
	for i, s := range c.sales {
		lanes = append(lanes, s.staff(uint64(50+10*i)), s.watch, s.watchRows)
		for n := range c.rush.tills {
			lanes = append(lanes, s.till(uint64(80+10*i+n)))
		}
	}
	for _, d := range c.doors {
		lanes = append(lanes, d.run)
	}
	lanes = append(lanes, c.codes.watch, c.planners, func(time.Duration, <-chan struct{}) {
		raffle.enter()
		raffle.strike(raffle.users[0])
		c.open(raffle.template)
	})
	end := c.begin(c.rush.storm, lanes...)
	c.runActions(plan)
	end()
	c.say("the storm is over")
}

// till is the payment service: it takes coupons of the drop through the steps of orders.
func (s *sale) till(purpose uint64) lane {
	return func(_ time.Duration, over <-chan struct{}) {
		rng := s.random(purpose)
		repeatedly(s.ctx, 20*time.Millisecond, over, func() {
			ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
			defer cancel()
			var coupon int64
			if s.stack.SQL.QueryRow(ctx, `select id from coupons where template_id = $1 and state = 'unused' order by random() limit 1`, s.template).Scan(&coupon) != nil {
				return // none is left, or the database is away
			}
			order := uuid.NewString()
			for _, step := range [][]string{{"lock", "release"}, {"lock", "confirm", "refund"}, {"lock", "confirm"}, {"lock"}}[rng.IntN(4)] {
				body := map[string]any{"order_id": order}
				if step == "lock" {
					body["order_amount"] = 5000
				}
				r, final := s.crowd.send(s.ctx, call{method: "POST", path: fmt.Sprintf("/coupons/%d/%s", coupon, step), body: body})
				if !final || !r.ok() {
					if final && r.status != http.StatusConflict { // another till has it
						s.t.Errorf("%s: %s of coupon %d: %d %s", s.mode, step, coupon, r.status, r.body)
					}
					return
				}
			}
		})
	}
}

// planners are users that reserve reminders of a later drop, cancel them and reserve again.
func (c *claims) planners(_ time.Duration, over <-chan struct{}) {
	d := c.crowd.publish(c.ctx, "Planned", 24*time.Hour)
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Go(func() {
			rng := c.random(41 + n)
			repeatedly(c.ctx, 10*time.Millisecond, over, func() { c.plan(d, rng) })
		})
	}
	all.Wait()
}

func (c *claims) plan(d *drop, rng *rand.Rand) {
	user, minutes := int64(1+rng.IntN(c.rush.users)), 5*(1+rng.IntN(12))
	q := call{method: "POST", path: "/reservations", user: user, body: map[string]any{"template_id": fmt.Sprint(d.id), "shop_number": fmt.Sprint(shopNumber),
		"reminders": []map[string]any{{"channel": "app", "minutes": minutes}}}}
	if rng.IntN(3) == 0 {
		q = call{method: "DELETE", path: fmt.Sprintf("/reservations/%d", d.id), user: user}
	}
	if r, final := c.crowd.send(c.ctx, q); final && !r.ok() && r.status != http.StatusConflict && r.status != http.StatusNotFound {
		c.t.Errorf("%s %s: %d %s", q.method, q.path, r.status, r.body)
	}
}

// redisTroubles kills Redis, which comes back with its data or empty.
func (c *claims) redisTroubles(storm time.Duration, _ <-chan struct{}) {
	rng := c.random(22)
	empty := make([]bool, c.rush.redisRestarts+c.rush.redisEmptied)
	for i := range c.rush.redisEmptied {
		empty[i] = true
	}
	rng.Shuffle(len(empty), func(i, j int) { empty[i], empty[j] = empty[j], empty[i] })
	for i, at := range moments(rng, storm, len(empty)) {
		wait(time.Until(at), c.ctx.Done())
		from := time.Now()
		c.say("Redis is killed and comes back%s", map[bool]string{true: " empty"}[empty[i]])
		err := c.stack.Redis.Kill()
		if err == nil {
			err = c.stack.Redis.Restart(c.ctx, empty[i])
		}
		if err != nil {
			c.t.Errorf("Redis: %v", err)
		}
		c.mu.Lock()
		c.redisAway = append(c.redisAway, span{from, time.Now()})
		if empty[i] {
			c.emptied = append(c.emptied, span{from, time.Now()})
		}
		c.mu.Unlock()
	}
}

// overlaps reports whether one of the spans has a moment in common with from … to.
func overlaps(spans []span, from, to time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from.Before(to) && from.Before(s.to) })
}

// A timedAction is one action of one user at an instant.
type timedAction struct {
	at time.Time
	do func()
}

// runActions runs the actions at their instants and returns after the last one.
func (c *claims) runActions(plan []timedAction) {
	queue := make(chan timedAction)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for e := range queue {
				wait(time.Until(e.at), c.ctx.Done())
				e.do()
			}
		})
	}
	for _, e := range plan {
		queue <- e
	}
	close(queue)
	all.Wait()
}

// inParallel calls do for every number below n.
func (c *claims) inParallel(n int, do func(i int)) {
	plan := make([]timedAction, n)
	for i := range plan {
		plan[i] = timedAction{do: func() { do(i) }}
	}
	c.runActions(plan)
}

// An account is the stock ledger as the API shows it.
type account struct {
	Balanced bool
	Stock    struct {
		Total, Shelf, Writing, Issued, Difference int64
		PerUser                                   int64 `json:"per_user"`
		OverLimit                                 int64 `json:"over_limit"`
	}
}

// calm waits until no claim of the drop is being written any more and the drop's ledger is
// exact.
func (c *claims) calm(template int64) {
	c.t.Helper()
	var a account
	for end := time.Now().Add(time.Minute); ; wait(100*time.Millisecond, c.ctx.Done()) {
		c.crowd.must(c.ctx, call{method: "GET", path: fmt.Sprintf("/admin/templates/%d/balance", template)}, &a)
		if a.Stock.Writing == 0 && a.Stock.Difference == 0 {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("template %d does not come to rest: %+v", template, a)
		}
	}
}

// print prints the results of the run.
func (c *claims) print() {
	for what, n := range map[string][2]int{"web": {c.fleet.kills("web"), c.rush.webKills}, "worker": {c.fleet.kills("worker"), c.rush.workerKills}} {
		if n[0] < n[1] {
			c.t.Errorf("only %d %s processes were killed", n[0], what)
		}
	}
	cells := []any{"kill -9 of web", c.fleet.kills("web"), "kill -9 of workers", c.fleet.kills("worker"), "Redis killed and back", c.rush.redisRestarts,
		"Redis killed and back empty", c.rush.redisEmptied, "other troubles", len(c.rush.troubles), "requests repeated by clients", c.crowd.repeats.Load(),
		"promises lost with an emptied Redis", c.lost}
	for _, s := range c.sales {
		cells = append(cells, s.cells()...)
	}
	cells = append(cells, c.codes.cells()...)
	c.say("seed %d\n%s", c.seed, table(cells...))
}

// answersOf lists how often each answer was given.
func answersOf(n map[string]int) string {
	var list []string
	for _, code := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%s %d", code, n[code]))
	}
	return strings.Join(list, ", ")
}

// repeatedly calls do until the lane is over.
func repeatedly(ctx context.Context, every time.Duration, over <-chan struct{}, do func()) {
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		default:
		}
		do()
		wait(every, over)
	}
}
