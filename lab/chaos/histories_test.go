package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
)

// A history is the sequence of operations that concurrent clients made on one object, with the
// answers.
type history struct {
	name  string
	model porcupine.NondeterministicModel
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

func newHistory(name string, model porcupine.NondeterministicModel) *history {
	return &history{name: name, model: model, began: time.Now()}
}

// do records one operation of a client; ask carries it out. An attempt without an answer that
// had to be repeated may have taken effect as well, before the last answer, so it counts as an
// operation of its own. (The attempts of a claim have one key and are one operation, as are those of steps of a waitlist.) stale is
// the age of the data on which a refusal may be based: the operation may have taken place that
// much before its request.
func (h *history) do(client int, in any, stale time.Duration, ask func() reported) reported {
	call := time.Since(h.began)
	told := ask()
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: told, Return: int64(time.Since(h.began))}
	if told.code == "" {
		op.Return = unanswered
	}
	if told.code != okay && told.code != "" {
		op.Call -= int64(stale)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	switch in.(type) {
	case claimStep, waitStep: // a repetition has the same effect
		return told
	}
	if told.repeated {
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: reported{}, Return: op.Return})
	}
	return told
}

// patienceOfChecker bounds the search for an order of a history.
const patienceOfChecker = 2 * time.Minute

// check searches for an order of the operations in which each answer follows from the model. A
// history without such an order is saved as a page that shows it.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	model := h.model.ToModel()
	result, info := porcupine.CheckOperationsVerbose(model, h.ops, patienceOfChecker)
	if result == porcupine.Ok {
		return
	}
	dir := filepath.Join("..", "..", ".local", "histories")
	path := filepath.Join(dir, strings.ReplaceAll(h.name, " ", "-")+".html")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = porcupine.VisualizePath(model, info, path)
	}
	t.Errorf("%s: %d operations: %s; the history is kept in %s (%v)", h.name, len(h.ops), result, path, err)
}

// summary counts a history's answers.
func (h *history) summary() string {
	n := map[string]int{}
	for _, op := range h.ops {
		code := op.Output.(reported).code
		if code == "" {
			code = "no answer"
		}
		n[code]++
	}
	return answersOf(n)
}

// TestHistoriesShort records the answers to concurrent clients about claims at both gates,
// single reservations and single coupons, entries of draws and waits for stock, while web and worker processes are killed. Each
// history must be linearizable: there is one order of its operations, each between its request
// and its answer, in which every answer follows from the rules.
func TestHistoriesShort(t *testing.T) {
	t.Parallel()
	checkHistories(t, rush{webKills: 2, workerKills: 1, storm: 10 * time.Second, patience: 20 * time.Second}, 8)
}

func checkHistories(t *testing.T, r rush, perHistory int) {
	h := &histories{claims: newClaims(t, r, func(f *fleet) { f.env = append(f.env, drawKey) }), clients: 4, reservations: perHistory, coupons: perHistory}
	sales := []*openSale{h.openSale("durable"), h.openSale("gate")}
	runs := append(h.openReservations(), h.openCoupons()...)
	for n := range 1 + perHistory/25 {
		runs = append(runs, h.openDraw(n), h.openWaits("durable", "issue", n), h.openWaits("gate", "issue", n), h.openWaits("durable", "offer", n))
	}
	for _, s := range sales {
		wait(time.Until(s.opensAt.Add(2*time.Second)), h.ctx.Done())
	}
	end := h.begin(r.storm, h.webTroubles, h.workerTroubles)
	var all sync.WaitGroup
	for _, s := range sales {
		all.Go(s.run)
	}
	for _, run := range runs {
		all.Go(run)
	}
	all.Wait()
	end()
	for _, x := range h.list {
		x.check(t)
	}
	h.print()
}

// histories is everything that takes part.
type histories struct {
	*claims
	clients               int // of each reservation and coupon
	reservations, coupons int
	list                  []*history
}

func (h *histories) record(name string, model porcupine.NondeterministicModel) *history {
	x := newHistory(fmt.Sprintf("%s seed %d", name, h.seed), model)
	h.list = append(h.list, x)
	return x
}

func (h *histories) print() {
	sums := map[string]map[string]int{}
	for _, x := range h.list {
		kind, _, _ := strings.Cut(x.name, " ")
		if sums[kind] == nil {
			sums[kind] = map[string]int{}
		}
		for _, op := range x.ops {
			sums[kind][op.Output.(reported).code]++
		}
	}
	for kind, n := range sums {
		if n[okay] == 0 || len(n) < 2 {
			h.t.Errorf("%s: the answers tell nothing: %s", kind, answersOf(n))
		}
		h.say("%s: %s", kind, answersOf(n))
	}
	h.say("%d histories are linearizable; %d requests were repeated", len(h.list), h.crowd.repeats.Load())
}

// ask sends a call, repeats it under one key until there is an answer, and returns the answer. A
// call without a key is sent once.
func (h *histories) ask(q call, read func(body []byte) uint64) reported {
	r, final := h.answer(q)
	switch {
	case !final:
		return reported{}
	case r.ok():
		return reported{code: okay, value: read(r.body), repeated: r.repeated}
	}
	return reported{code: r.code, repeated: r.repeated}
}

// answer sends a call as [histories.ask] does. final is false if there is no answer.
func (h *histories) answer(q call) (r reply, final bool) {
	if q.method == "POST" {
		return h.crowd.send(h.ctx, q)
	}
	var payload []byte
	if q.body != nil {
		payload, _ = json.Marshal(q.body)
	}
	r, err := h.crowd.once(h.ctx, q, "", payload)
	return r, err == nil && r.status < 500
}

func nothingToRead([]byte) uint64 { return 0 }

// An openSale is a drop whose claims are recorded.
type openSale struct {
	*histories
	history  *history
	mode     string
	template int64
	opensAt  time.Time
	stock    int
}

// knownWithin is the greatest age of the data on which a refusal may be based. Every process
// sees a change of a template within a second (SPEC 4); the remaining time is for a busy
// machine.
const knownWithin = 3 * time.Second

func (h *histories) openSale(mode string) *openSale {
	s := &openSale{histories: h, mode: mode, stock: 8}
	s.template = h.publishDrop("History "+mode, mode, "claim", int64(s.stock), 2, 5*time.Second)
	s.opensAt = time.Now().Add(5 * time.Second)
	s.history = h.record("claims "+mode, claimModel(s.stock, 2))
	return s
}

// run lets every user claim now and then, while staff raise the stock twice and pause and resume
// the drop.
func (s *openSale) run() {
	var all sync.WaitGroup
	all.Go(s.staff)
	for user := range buyers {
		all.Go(func() {
			rng := s.random(uint64(100 + user))
			for range 8 {
				wait(time.Duration(rng.Int64N(int64(s.rush.storm/4))), s.ctx.Done())
				s.history.do(user, claimStep{verb: "claim", user: user}, knownWithin, func() reported { return s.claim(int64(1 + user)) })
			}
		})
	}
	all.Wait()
}

// claim claims and waits until the claim is decided.
func (s *openSale) claim(user int64) reported {
	r, final := s.crowd.sendAs(s.ctx, call{method: "POST", path: "/claims", user: user,
		body: map[string]any{"template_id": strconv.FormatInt(s.template, 10)}}, uuid.NewString())
	switch {
	case !final:
		return reported{}
	case !r.ok():
		return reported{code: r.code}
	}
	var a told
	a.read(r.body)
	a.status = r.status
	if a.state == "accepted" {
		if a = s.became(user, a); a.state != "issued" {
			s.t.Errorf("%s: an accepted claim of user %d ended as %s %s", s.mode, user, a.state, a.reason)
			return reported{}
		}
	}
	return reported{code: okay}
}

func (s *openSale) staff() {
	for i, in := range []claimStep{{verb: "raise", stock: 12}, {verb: "pause"}, {verb: "resume"}, {verb: "raise", stock: 17}} {
		wait(s.rush.storm/6, s.ctx.Done())
		s.history.do(buyers+i, in, 0, func() reported { return s.step(in) })
	}
}

func (s *openSale) step(in claimStep) reported {
	path := fmt.Sprintf("/admin/templates/%d", s.template)
	if in.verb != "raise" {
		return s.ask(call{method: "POST", path: path + "/" + in.verb, body: map[string]any{"reason": "history"}}, nothingToRead)
	}
	(&sale{claims: s.claims, mode: s.mode, template: s.template}).edit(func(now map[string]any) map[string]any {
		if now["stock"] == float64(in.stock) {
			return nil
		}
		return map[string]any{"stock": in.stock}
	})
	return reported{code: okay}
}

// openReservations prepares users whose reservations of one drop are recorded.
func (h *histories) openReservations() (runs []func()) {
	template := h.publishDrop("History of reservations", "durable", "claim", 10, 1, 24*time.Hour)
	for i := range h.reservations {
		user, rec := int64(50_000+i), h.record(fmt.Sprint("reservation ", i), bitmapModel())
		runs = append(runs, func() {
			h.together(uint64(200+i), func(client int, rng *rand.Rand) { h.reservationStep(rec, template, user, client, rng) })
		})
	}
	return runs
}

// together lets the clients of one history act a number of times each.
func (h *histories) together(purpose uint64, act func(client int, rng *rand.Rand)) {
	var all sync.WaitGroup
	for client := range h.clients {
		all.Go(func() {
			rng := h.random(purpose*100 + uint64(client))
			for range 10 {
				wait(time.Duration(rng.Int64N(int64(h.rush.storm/6))), h.ctx.Done())
				act(client, rng)
			}
		})
	}
	all.Wait()
}

func (h *histories) reservationStep(rec *history, template, user int64, client int, rng *rand.Rand) {
	slot := 1 + rng.IntN(3)
	in := bitmapStep{verb: "reserve", bits: 1 << (slot - 1)}
	id := strconv.FormatInt(template, 10)
	q := call{method: "POST", path: "/reservations", user: user, body: map[string]any{"template_id": id, "shop_number": fmt.Sprint(shopNumber),
		"reminders": []map[string]any{{"channel": "app", "minutes": 5 * slot}}}}
	switch rng.IntN(10) {
	case 0, 1, 2:
		in.verb, q = "cancel", call{method: "DELETE", path: fmt.Sprintf("/reservations/%s?channel=app&minutes=%d", id, 5*slot), user: user}
	case 3:
		in, q = bitmapStep{verb: "cancel all"}, call{method: "DELETE", path: "/reservations/" + id, user: user}
	case 4, 5:
		in, q = bitmapStep{verb: "read"}, call{method: "GET", path: "/reservations/" + id, user: user}
	}
	rec.do(client, in, 0, func() reported { return h.ask(q, slotsOf) })
}

func slotsOf(body []byte) uint64 {
	var v struct {
		Slots uint64 `json:"slots,string"`
	}
	_ = json.Unmarshal(body, &v)
	return v.Slots
}

// openCoupons claims coupons whose steps of payment are recorded.
func (h *histories) openCoupons() (runs []func()) {
	template := h.publishDrop("History of coupons", "durable", "claim", 100, 1, 2*time.Second)
	wait(3*time.Second, h.ctx.Done())
	for i := range h.coupons {
		user, rec := int64(60_000+i), h.record(fmt.Sprint("coupon ", i), couponModel())
		var a struct {
			Coupon string `json:"coupon_id"`
		}
		h.crowd.mustAs(h.ctx, call{method: "POST", path: "/claims", user: user, body: map[string]any{"template_id": strconv.FormatInt(template, 10)}}, &a)
		runs = append(runs, func() {
			h.together(uint64(300+i), func(client int, rng *rand.Rand) {
				in := couponStep{[]string{"lock", "lock", "confirm", "release", "refund"}[rng.IntN(5)], 1 + rng.IntN(3)}
				body := map[string]any{"order_id": fmt.Sprintf("%d-%d", i, in.order)}
				if in.verb == "lock" {
					body["order_amount"] = 5000
				}
				rec.do(client, in, 0, func() reported {
					return h.ask(call{method: "POST", path: "/coupons/" + a.Coupon + "/" + in.verb, body: body}, nothingToRead)
				})
			})
		})
	}
	return runs
}

// mustAs is must for a call that may be answered "not yet" for a moment.
func (c *client) mustAs(ctx context.Context, q call, into any) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; wait(200*time.Millisecond, ctx.Done()) {
		r, final := c.send(ctx, q)
		if final && r.ok() {
			if err := json.Unmarshal(r.body, into); err != nil {
				c.t.Fatal(err)
			}
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s %s: answer %d %s", q.method, q.path, r.status, r.body)
		}
	}
}
