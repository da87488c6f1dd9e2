package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/killpoint"
)

const (
	// answersWithin is how long a request may take: REQUEST_TIMEOUT, plus a margin for a busy
	// machine.
	answersWithin = 3 * time.Second
	// leastUsual is the least that counts as the usual p99: below it the machine decides.
	leastUsual = 50 * time.Millisecond
	// slowShare is the share of requests about other drops that may take longer than twice the
	// usual p99. Usually this share is at most a hundredth. It is checked only if nothing else
	// runs on the machine.
	slowShare = 0.1
	// endedWithin is how long PostgreSQL keeps a session that idles in a transaction, plus a
	// second until the end is noticed. The locks of a halted process end with its sessions.
	endedWithin = 6 * time.Second
	// writtenInTime is how long an accepted claim of another gate may wait for its coupon.
	writtenInTime = 3 * time.Second
)

// A halting is one thing that stands still for a while.
type halting struct {
	name  string
	lasts time.Duration
	// settles is how long after its beginning other drops may still fail.
	settles time.Duration
	// writers is set if the accepted claims of another gate must be written meanwhile.
	writers bool
	begin   func(*haltRun) (end func())
}

// A haltRun sends requests about many drops at a steady rate while holders of locks of drop A
// are halted, and counts the answers to requests about the other drops.
type haltRun struct {
	*claims
	dir   string // of halt points; a folder for each process
	alone bool   // nothing else runs on the machine, so that slow answers are failures
	every time.Duration
	flows []*flow
	// newcomer is the last user of requests that belong to no flow.
	newcomer int64
	// The rows of drop A that users and writers of the gate ask for.
	held []string

	mu        sync.Mutex
	reachable []string
	stalls    []window
}

// A flow is one kind of request about one drop. Requests are sent whether or not earlier
// requests were answered.
type flow struct {
	what, drop string
	mode       string // of claims
	template   int64
	ask        func(n int64) call

	mu      sync.Mutex
	timings []timing
}

// A timing is one request.
type timing struct {
	at     time.Time
	took   time.Duration
	status int    // 0 = there was no answer
	after  string // the header Retry-After
}

func (m timing) answered() bool { return m.status != 0 && m.status < 500 }

// A window is a part of a run.
type window struct{ from, to time.Time }

// in returns the requests that were sent in the window.
func (f *flow) in(w window) (list []timing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.timings {
		if !m.at.Before(w.from) && m.at.Before(w.to) {
			list = append(list, m)
		}
	}
	return list
}

// p99 is the time that one of a hundred requests exceeds.
func p99(list []timing) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b timing) int { return int(a.took - b.took) })
	return sorted[(len(sorted)-1)*99/100].took
}

// The time between two requests of a flow, for a test that is alone on the machine, and beside other
// tests: requests that the machine cannot answer as fast as they come say nothing about locks.
const (
	aloneEvery  = 60 * time.Millisecond
	besideEvery = 150 * time.Millisecond
)

var shortHalts = []halting{
	{"a session holds rows of drop A", 4 * time.Second, 0, true, holdAll},
	{"a worker stands that grants coupons of drop A", 5 * time.Second, 0, false, haltGranting},
	{"a web process stands, and another one loses PostgreSQL", 8 * time.Second, endedWithin, false, haltWebAndSilence},
}

// TestHaltsShort: while a holder of the locks of one drop is halted, requests about other drops
// are answered as before. A process that is halted, or whose network is silent, delays the other
// processes only as long as PostgreSQL keeps its sessions.
func TestHaltsShort(t *testing.T) { standStill(t, shortHalts, 3*time.Second, false) }

// standStill runs the haltings one after another. alone says that nothing else runs on the
// machine.
func standStill(t *testing.T, list []halting, baseline time.Duration, alone bool) {
	// The stock of one drop ends while the first holder stands.
	every := besideEvery
	if alone {
		every = aloneEvery
	}
	r := newHaltRun(t, int64((baseline+3*time.Second)/every))
	r.alone, r.every = alone, every
	over := make(chan struct{})
	var all sync.WaitGroup
	if !alone {
		all.Go(func() { r.watchMachine(over) })
	}
	for _, f := range r.flows {
		all.Go(func() { r.send(f, over) })
	}
	r.flowing(time.Now())
	usual := window{from: time.Now()}
	wait(baseline, r.ctx.Done())
	usual.to = time.Now()
	for _, h := range list {
		r.endure(h, usual)
	}
	close(over)
	all.Wait()
	r.settleClaims()
}

func newHaltRun(t *testing.T, fewCoupons int64) *haltRun {
	r := &haltRun{dir: t.TempDir(), newcomer: 8_000_000}
	points := func(process string) []string {
		dir := filepath.Join(r.dir, process)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Error(err)
		}
		return []string{killpoint.Variable + "=" + dir}
	}
	r.claims = newClaims(t, rush{codes: 20, patience: 20 * time.Second}, func(f *fleet) { f.killable, f.proxied, f.providers = true, true, points })
	r.reachable = r.crowd.webs
	const opensIn = 3 * time.Second
	r.claims.codes = r.openCodes("durable", opensIn)
	for i, drop := range []string{"A", "B", "C"} {
		sale := r.publishDrop("Sale "+drop, "durable", "claim", 1_000_000, 1, opensIn)
		gate := r.publishDrop("Gate "+drop, "gate", "claim", 1_000_000, 1, opensIn)
		later := r.crowd.publish(r.ctx, "Later "+drop, 24*time.Hour).id
		if drop == "A" {
			r.held = []string{
				fmt.Sprintf(`select from templates where id in (%d, %d) for update`, sale, gate),
				fmt.Sprintf(`select from gates where template_id = %d for update`, gate),
				fmt.Sprintf(`select from gate_shards where template_id = %d for update`, gate),
				fmt.Sprintf(`select from slots where template_id = %d for update`, later),
				fmt.Sprintf(`select from coupons where template_id = %d for update`, sale),
			}
		}
		first := int64(1_000_000 * (i + 1))
		r.flows = append(r.flows, claiming("durable", drop, sale, first), claiming("gate", drop, gate, first), reserving(drop, later, first))
	}
	r.flows = append(r.flows, claiming("durable", few, r.publishDrop("Few", "durable", "claim", fewCoupons, 1, opensIn), 4_000_000))
	wait(opensIn, r.ctx.Done())
	for _, f := range slices.Clone(r.flows) {
		if f.mode == "durable" && f.drop != few {
			r.flows = append(r.flows, paying(f.drop, f.template, r.buy(f.template)))
		}
	}
	return r
}

// few is the drop whose stock ends.
const few = "with few coupons"

// owners is the first user with a coupon of each drop.
const owners = 7_000_000

// buy claims a few coupons of the drop.
func (r *haltRun) buy(template int64) (coupons []string) {
	for n := range int64(20) {
		var a struct {
			Coupon string `json:"coupon_id"`
		}
		r.crowd.mustAs(r.ctx, call{method: "POST", path: "/claims", user: owners + n, body: map[string]any{"template_id": strconv.FormatInt(template, 10)}}, &a)
		coupons = append(coupons, a.Coupon)
	}
	return coupons
}

func claiming(mode, drop string, template, first int64) *flow {
	return &flow{what: "claims", mode: mode, drop: drop, template: template, ask: func(n int64) call {
		return call{method: "POST", path: "/claims", user: first + n, body: map[string]any{"template_id": strconv.FormatInt(template, 10)}}
	}}
}

func reserving(drop string, template, first int64) *flow {
	return &flow{what: "reservations", drop: drop, template: template, ask: func(n int64) call {
		return call{method: "POST", path: "/reservations", user: first + n, body: map[string]any{"template_id": strconv.FormatInt(template, 10),
			"shop_number": fmt.Sprint(shopNumber), "reminders": []map[string]any{{"channel": "app", "minutes": 10}}}}
	}}
}

// paying locks each coupon for an order and releases it, over and over.
func paying(drop string, template int64, coupons []string) *flow {
	return &flow{what: "payments", drop: drop, template: template, ask: func(n int64) call {
		coupon, step := coupons[n%int64(len(coupons))], n/int64(len(coupons))
		body := map[string]any{"order_id": fmt.Sprint("order-", step/2)}
		verb := "release"
		if step%2 == 0 {
			verb, body["order_amount"] = "lock", 5000
		}
		return call{method: "POST", path: "/coupons/" + coupon + "/" + verb, body: body}
	}}
}

// send sends the requests of a flow to the web processes that can be reached.
func (r *haltRun) send(f *flow, over <-chan struct{}) {
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for n := int64(0); ; n++ {
		select {
		case <-over:
			return
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		web := r.reachable[n%int64(len(r.reachable))]
		r.mu.Unlock()
		all.Go(func() {
			q := f.ask(n)
			q.at = web
			payload, _ := json.Marshal(q.body)
			at := time.Now()
			a, _ := r.crowd.once(r.ctx, q, uuid.NewString(), payload) // without an answer its status is 0
			if a.status == 500 {
				r.t.Errorf("%s of drop %s: 500 %s", f.what, f.drop, a.body)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.timings = append(f.timings, timing{at, time.Since(at), a.status, a.retryAfter})
		})
	}
}

// flowing waits until the requests of all flows that were sent since are answered.
func (r *haltRun) flowing(since time.Time) {
	const steady = 10
	for end := time.Now().Add(30 * time.Second); ; wait(50*time.Millisecond, r.ctx.Done()) {
		f := slices.IndexFunc(r.flows, func(f *flow) bool {
			list := f.in(window{since, time.Now()})
			tail := list[max(0, len(list)-steady):]
			return len(tail) < steady || slices.ContainsFunc(tail, func(m timing) bool { return !m.answered() })
		})
		if f < 0 {
			return
		}
		if time.Now().After(end.Add(r.stalled(window{since, time.Now()}))) {
			r.t.Errorf("%s of drop %s are not answered 30 s later", r.flows[f].what, r.flows[f].drop)
			return
		}
	}
}

// endure lets one thing stand still, and judges how the requests were answered.
func (r *haltRun) endure(h halting, usual window) {
	r.say("%s for %v", h.name, h.lasts)
	began := time.Now()
	end := sync.OnceFunc(h.begin(r))
	r.t.Cleanup(end) // also if the test ends before
	stood := window{from: time.Now().Add(h.settles)}
	wait(time.Until(began.Add(h.lasts)), r.ctx.Done())
	stood.to = time.Now()
	if h.writers {
		r.written(stood.to)
	}
	end()
	ended := time.Now()
	r.mu.Lock()
	r.reachable = r.crowd.webs
	r.mu.Unlock()
	r.flowing(ended)
	lines := ""
	for _, f := range r.flows {
		lines += r.judge(h, f, usual, stood)
	}
	r.say("%s: everything is answered again after %.1f s\n%s", h.name, time.Since(ended).Seconds(), lines)
}

// judge counts the answers of one flow. It fails the test if the flow is about another drop than
// A and was disturbed, or if it is about drop A and was answered too late or refused without a
// Retry-After.
func (r *haltRun) judge(h halting, f *flow, usual, stood window) string {
	was, is := f.in(usual), f.in(stood)
	p, failed, slow, unsaid, spared := max(p99(was), leastUsual), 0, 0, 0, 0
	var slowest time.Duration
	for _, m := range is {
		if r.stalled(window{m.at, m.at.Add(m.took)}) > 0 && (!m.answered() || m.took > answersWithin) {
			spared++
			continue
		}
		slowest = max(slowest, m.took)
		if !m.answered() {
			failed++
		}
		if m.took > 2*p {
			slow++
		}
		if m.status != 503 && !m.answered() || m.status == 503 && m.after == "" {
			unsaid++
		}
	}
	if !stood.from.Before(stood.to) { // the halt ended before other drops must be answered again
		return ""
	}
	text := fmt.Sprintf("        %-15s of drop %-17s %4d asked, %4d not answered, p99 %5d ms, usually %4d ms: times %5.1f; slower than twice the usual %4d, slowest %5d ms, spared %d\n",
		f.what+" "+f.mode, f.drop, len(is), failed, p99(is).Milliseconds(), p99(was).Milliseconds(), float64(p99(is))/float64(max(1, p99(was))), slow, slowest.Milliseconds(), spared)
	switch {
	case len(is) == 0:
		r.t.Errorf("%s: no %s of drop %s were asked for", h.name, f.what, f.drop)
	case f.drop == "A":
		if unsaid > 0 || slowest > answersWithin {
			r.t.Errorf("%s: %d %s of drop A were refused without a Retry-After, the slowest answer took %v", h.name, unsaid, f.what, slowest)
		}
	case failed > 0 || slowest > answersWithin || r.alone && float64(slow) > slowShare*float64(len(is)):
		r.t.Errorf("%s: of %d %s of drop %s %d were not answered and %d took more than twice the usual %v, the slowest %v", h.name, len(is), f.what, f.drop, failed,
			slow, p.Round(time.Millisecond), slowest.Round(time.Millisecond))
	}
	return text
}

// written waits until the claims of other gates that were accepted before the instant have their
// coupons.
func (r *haltRun) written(before time.Time) {
	for _, f := range r.flows {
		accepted := 0
		for _, m := range f.in(window{to: before}) {
			if m.status == 202 {
				accepted++
			}
		}
		if accepted == 0 || f.drop == "A" {
			continue
		}
		coupons := 0
		for end := before.Add(writtenInTime); ; wait(50*time.Millisecond, r.ctx.Done()) {
			err := r.stack.SQL.QueryRow(r.ctx, `select count(*) from coupons where template_id = $1`, f.template).Scan(&coupons)
			if err == nil && coupons >= accepted {
				break
			}
			if time.Now().After(end.Add(r.stalled(window{before, time.Now()}))) {
				r.t.Errorf("drop %s: %d of %d accepted claims are written %v later", f.drop, coupons, accepted, writtenInTime)
				break
			}
		}
	}
}

// settleClaims checks that the ledgers are exact, and that each claim whose answer was its
// coupon has a coupon.
func (r *haltRun) settleClaims() {
	for _, f := range r.flows {
		if f.what != "claims" {
			continue
		}
		r.calm(f.template)
		issued := 0
		for _, m := range f.timings {
			if m.status == 201 {
				issued++
			}
		}
		if n := len(r.rows(f.template)); n < issued {
			r.t.Errorf("drop %s: %d coupons, %d claims were answered with one", f.drop, n, issued)
		}
	}
}
