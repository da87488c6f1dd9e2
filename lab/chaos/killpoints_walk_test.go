package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/domain/delivery"
	"dropbell/killpoint"
	"dropbell/lab/bench/stack"
)

// A walk makes processes fail at named points during a series of small evenings. An evening has
// reservations that fire and are delivered, claims at both gates, redeem codes, coupons that are
// locked, confirmed and released, orders with two coupons, coupons that are suspended, drops with doors, two draws, a series with standing reservations, a campaign, and a recipe.
// After each evening the accounts must add up as
// if nothing had failed.
type walk struct {
	*system
	c       *claims
	p       *campaignRun
	dir     string // where points are armed
	evening int
	hit     map[failing]int // in which evening
	// restarts is set while evenings begin with a restart of two processes.
	restarts bool
}

const (
	guests   = 8 // users of an evening
	forSale  = 3 // coupons of each drop
	patience = 90 * time.Second
)

func newWalk(t *testing.T) *walk {
	w := &system{size: &size{}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	var err error
	if w.stack, err = stack.StartNew(w.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stack.Close)
	quick := size{hook: [2]time.Duration{time.Millisecond, 5 * time.Millisecond}, mail: [2]time.Duration{time.Millisecond, 2 * time.Millisecond}}
	w.sink = newSink(t, quick, newDeck(w.random(1), 1, nil), newDeck(w.random(2), 1, nil))
	dir := t.TempDir()
	w.fleet = launch(w.ctx, &fleet{t: t, stack: w.stack, sink: w.sink, killable: true,
		env: []string{"GATE_SHARDS=4", codeKeys, drawKey, killpoint.Variable + "=" + dir}}, 2, 2)
	w.crowd = &crowd{newClient(t, w.fleet, patience), &ledger{fates: map[reservation]reservationState{}}, w.random(3)}
	return &walk{system: w, dir: dir, hit: map[failing]int{},
		c: &claims{system: w, rush: rush{codes: forSale}}, p: &campaignRun{system: w}}
}

// arm makes the failings happen to the next process that passes each.
func (k *walk) arm(list []failing) {
	k.t.Helper()
	for _, f := range list {
		if err := os.WriteFile(filepath.Join(k.dir, killpoint.Armed(f.point, f.phase, f.failure)), nil, 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
}

// disarm takes back the failings that did not happen, and returns them.
func (k *walk) disarm(list []failing) (left []failing) {
	k.t.Helper()
	for _, f := range list {
		if os.Remove(filepath.Join(k.dir, killpoint.Armed(f.point, f.phase, f.failure))) == nil {
			left = append(left, f)
			continue
		}
		k.hit[f] = k.evening
		hit := filepath.Join(k.dir, killpoint.Hit(f.point, f.phase, f.failure))
		if f.failure == killpoint.Halt { // it may have happened just now
			goOnAfter(hit, 0, k.ctx.Done())
		}
		_ = os.Remove(hit)
	}
	return left
}

// standsFor is how long a process that is halted at a point stays halted: longer than PostgreSQL
// waits for the next statement of a transaction.
const standsFor = 6 * time.Second

// goOnAfter resumes the process that is halted at a point after the duration lasting. hit is the
// file of the point's [killpoint.Hit]. If no process is halted until over is closed, goOnAfter
// does nothing.
func goOnAfter(hit string, lasting time.Duration, over <-chan struct{}) {
	pid := haltedAt(hit, over)
	if pid == 0 {
		return
	}
	wait(lasting, over)
	_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been killed meanwhile
}

// haltedAt returns the id of the process that is halted at a point; 0 if no process is halted
// until over is closed.
func haltedAt(hit string, over <-chan struct{}) (pid int) {
	for ended := false; ; wait(20*time.Millisecond, over) {
		raw, _ := os.ReadFile(hit)
		if pid, _ = strconv.Atoi(string(raw)); pid > 0 || ended {
			return pid
		}
		select {
		case <-over:
			ended = true // one more look
		default:
		}
	}
}

// hold runs an evening with the failures of list, and returns the failures that did not occur.
func (k *walk) hold(list []failing) (left []failing) {
	k.t.Helper()
	k.evening++
	k.arm(list)
	if k.restarts {
		k.restart()
	}
	before, over := k.t.Failed(), make(chan struct{})
	var halts sync.WaitGroup
	for _, f := range list {
		if f.failure == killpoint.Halt {
			halts.Go(func() { goOnAfter(filepath.Join(k.dir, killpoint.Hit(f.point, f.phase, f.failure)), standsFor, over) })
		}
	}
	k.serve()
	close(over)
	halts.Wait()
	left = k.disarm(list)
	if k.t.Failed() && !before {
		k.t.Fatalf("evening %d does not add up; what happened in it: %v", k.evening, list)
	}
	return left
}

// serve runs one evening and accounts for each user.
func (k *walk) serve() {
	k.t.Helper()
	n, users := k.evening, k.invite()
	const later = time.Hour // the drops are opened when all of them are published
	sales := map[string]int64{}
	for mode, list := range map[string]string{"durable": "offer", "gate": "issue"} {
		sales[mode] = k.c.publishDrop(fmt.Sprint(mode, " ", n), mode, "claim", forSale, 1, later, map[string]any{"waitlist": list, "refund_to": "stock"})
	}
	reviewed := k.c.publishDrop(fmt.Sprint("Brakes ", n), "durable", "claim", forSale, 1, later)
	var byDoors []*doored
	for _, mode := range []string{"durable", "gate"} {
		byDoors = append(byDoors, k.c.publishDoors(fmt.Sprint("Doors ", mode, " ", n), mode, users, 4, forSale, 2, 1))
	}
	carts := []int64{k.c.publishDrop(fmt.Sprint("Cart ", n), "durable", "claim", forSale, 1, later, stackable), k.c.publishDrop(fmt.Sprint("Cart too ", n), "durable", "claim", forSale, 1, later, stackable)}
	raffle, offers := k.c.publishDraw(fmt.Sprint("Draw ", n), users, 0), k.c.publishDraw(fmt.Sprint("Offers ", n), users, 1)
	raffle.enter()
	offers.enter()
	raffle.strike(users[0])
	codes := []*codeSale{k.c.openCodes("durable", later), k.c.openCodes("gate", later)}
	d := k.reserveAll(fmt.Sprint("Evening ", n), users)
	k.remind()
	unclaimed := k.reserveAll(fmt.Sprint("Missed ", n), users)
	campaign := k.p.publish(promo{name: fmt.Sprint("Campaign ", n), channel: delivery.Webhook, audience: named(users), rate: 1000})
	k.move(d, time.Now().Add(3*time.Second).Truncate(time.Second))
	for _, template := range []int64{sales["durable"], sales["gate"], codes[0].template, codes[1].template, raffle.template, offers.template, reviewed, carts[0], carts[1], unclaimed.id} {
		k.c.open(template)
	}
	wait(soon+knownWithin, k.ctx.Done())
	var all sync.WaitGroup
	for mode, template := range sales {
		all.Go(func() { k.sell(mode, template, users) })
	}
	for _, s := range codes {
		all.Go(func() {
			k.c.inParallel(len(s.codes), func(code int) {
				for by := range triedBy {
					s.visit(holder(code, by), s.codes[code], 0)
				}
			})
		})
	}
	all.Wait()
	for _, template := range sales {
		all.Go(func() { k.waitAndFill(template, users) })
	}
	all.Go(func() { k.suspendAndDecide(reviewed, users) })
	for _, d := range byDoors {
		all.Go(func() { k.sellByDoors(d) })
	}
	all.Go(func() { k.payTogether(carts, users) })
	all.Go(func() { k.repeat(users, 0) })
	all.Go(func() { k.missed(unclaimed, users) })
	all.Wait()

	k.settled(d, 2*time.Minute)
	k.reminded(d)
	k.p.settle(campaign, 2*time.Minute)
	k.campaigned(campaign)
	for _, s := range codes {
		k.c.calm(s.template)
		s.lastAnswers()
		s.account()
	}
	raffle.account()
	offers.offers()
}

// invite makes the users of an evening known.
func (k *walk) invite() []int64 {
	k.t.Helper()
	users := make([]int64, 0, guests)
	for id := int64(1000 * k.evening); len(users) < guests; id++ {
		if k.p.unreachable(&promo{channel: delivery.Webhook}, id) == "" {
			users = append(users, id)
		}
	}
	k.crowd.tell(k.ctx, users)
	return users
}

// move moves the opening like staff that look again after an error.
func (k *walk) move(d *drop, dueAt time.Time) {
	d.dueAt, d.opensAt = dueAt.UTC(), dueAt.Add(5*time.Minute).UTC()
	(&sale{claims: k.c, mode: "move", template: d.id}).edit(func(now map[string]any) map[string]any {
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(now["opens_at"])); err == nil && at.Equal(d.opensAt) {
			return nil
		}
		return map[string]any{"opens_at": d.opensAt}
	})
}

// soon is when a drop opens that is opened now.
const soon = 5 * time.Second

// open moves the opening of a drop to a moment from now.
func (c *claims) open(template int64) {
	(&sale{claims: c, mode: "open", template: template}).edit(func(now map[string]any) map[string]any {
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(now["opens_at"])); err == nil && time.Until(at) < time.Minute {
			return nil
		}
		return map[string]any{"opens_at": time.Now().Add(soon).UTC().Truncate(time.Second)}
	})
}

// reminded checks that each user is in one batch of each channel, is recorded as sent and got
// the message. A message is repeated only if it was in flight at a failure.
func (k *walk) reminded(d *drop) {
	k.t.Helper()
	seen, s := k.seen(k.expected(d)), d.sending()
	for _, c := range channels {
		l := k.read(s, c)
		k.complete(d, c, l)
		k.outcomes(d, c, l, everybodySent)
		if c != delivery.App {
			k.compare(s, c, l, seen)
		}
	}
	k.few(s, seen)
	k.balance(d)
}

// campaigned checks a campaign in the same way.
func (k *walk) campaigned(x *promo) {
	k.t.Helper()
	s, l := x.sending(), k.read(x.sending(), x.channel)
	k.p.completeAudience(x, l)
	k.p.fates(x, l)
	keys := map[string]recipient{}
	about := &delivery.Subject{Kind: delivery.KindCampaign, OwnerID: x.id}
	for _, u := range x.audience.users {
		keys[keyAbout(about, u, x.channel)] = recipient{x.channel, u}
	}
	seen := k.seen(keys)
	k.compare(s, x.channel, l, seen)
	k.few(s, seen)
}

// mostRepeats bounds how often one message may arrive. The bound is the number of failures of an
// evening that can hide that the message was taken.
const mostRepeats = atOnce

// few checks that no message came more often than failures can explain.
func (k *walk) few(s sending, seen map[recipient][]arrival) {
	k.t.Helper()
	for to, list := range seen {
		if len(list) > 1+mostRepeats {
			k.t.Errorf("%s: user %d got the message %d times by %s", s.what, to.user, len(list), to.channel)
		}
	}
}

// sell lets every user claim, and uses some of the coupons.
func (k *walk) sell(mode string, template int64, users []int64) {
	var mu sync.Mutex
	issued := map[int64]told{}
	var all sync.WaitGroup
	for _, u := range users {
		all.Go(func() {
			if a := k.claim(mode, template, u); a.state == "issued" {
				mu.Lock()
				defer mu.Unlock()
				issued[u] = a
			}
		})
	}
	all.Wait()
	// A claim that failed gave its coupon back, so another user can get the coupon.
	for i := int64(0); len(issued) < forSale && i < 2*forSale; i++ {
		by := users[0] + 500 + i
		if a := k.claim(mode, template, by); a.state == "issued" {
			issued[by] = a
		}
	}
	k.c.calm(template)
	rows := k.c.rows(template)
	if len(rows) != forSale || len(issued) != forSale {
		k.t.Errorf("%s: %d coupons of %d are stored, %d users were told that they have one", mode, len(rows), forSale, len(issued))
	}
	var owned []string
	for _, r := range rows {
		if a, ok := issued[r.user]; !ok || a.coupon != r.coupon || a.claim != r.claim {
			k.t.Errorf("%s: user %d has %+v and was told %+v", mode, r.user, r, a)
		}
		owned = append(owned, r.coupon)
	}
	if len(owned) >= 2 {
		slices.Sort(owned)
		k.use(owned[0], "confirm", "used")
		k.use(owned[1], "release", "unused")
	}
}

// claim claims once, and again under the same key, which must be answered alike.
func (k *walk) claim(mode string, template, user int64) told {
	key := uuid.NewString()
	ask := func() (a told) {
		r, final := k.crowd.sendAs(k.ctx, call{method: "POST", path: "/claims", user: user,
			body: map[string]any{"template_id": strconv.FormatInt(template, 10)}}, key)
		if !final {
			k.t.Errorf("%s: the claim of user %d was not answered: %d %s", mode, user, r.status, r.body)
			return a
		}
		a.read(r.body)
		a.status, a.code = r.status, r.code
		if a.state == "accepted" {
			a = k.c.became(user, a)
		}
		return a
	}
	first := ask()
	if again := ask(); first.positive() && (again.claim != first.claim || again.coupon != first.coupon) {
		k.t.Errorf("%s: the claim of user %d was answered %+v, and repeated %+v", mode, user, first, again)
	}
	return first
}

// use locks a coupon for an order and ends the order.
func (k *walk) use(coupon, how, want string) {
	order := "order-" + coupon
	for _, step := range []string{"lock", how} {
		body := map[string]any{"order_id": order}
		if step == "lock" {
			body["order_amount"] = 5000
		}
		if r, final := k.crowd.send(k.ctx, call{method: "POST", path: "/coupons/" + coupon + "/" + step, body: body}); !final || !r.ok() {
			k.t.Errorf("%s of coupon %s: %d %s", step, coupon, r.status, r.body)
		}
	}
	var state string
	var steps int
	err := k.stack.SQL.QueryRow(k.ctx, `select c.state, (select count(*) from coupon_operations o where o.coupon_id = c.id) from coupons c where id = $1`, coupon).Scan(&state, &steps)
	if err != nil || state != want {
		k.t.Errorf("coupon %s is %s after %d steps, want %s: %v", coupon, state, steps, want, err)
	}
}

// print lists what happened at each point.
func (k *walk) print(list []failing) {
	var b strings.Builder
	for _, f := range list {
		if n, ok := k.hit[f]; ok {
			fmt.Fprintf(&b, "  %-55s evening %d: everything adds up\n", f, n)
		}
	}
	k.say("seed %d: %d of %d failings happened in %d evenings\n%s", k.seed, len(k.hit), len(list), k.evening, b.String())
}
