package chaos_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"dropbell/killpoint"
)

// atOnce is how many failings happen in one evening.
const atOnce = 8

// TestKillPointsShort runs a calm evening and an evening with a random choice of failures. Every
// point that the sources name must be passed. Then there is a night (see [walk.night]), and at last a draw is
// made while Redis is emptied between its steps.
func TestKillPointsShort(t *testing.T) {
	t.Parallel()
	k := newWalk(t)
	points := k.calmEvening()
	list := everyFailing(points)
	k.random(5).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	some := list[:atOnce]
	k.hold(some)
	k.print(some)
	k.passedAll()
	if len(k.hit) < atOnce/2 {
		t.Errorf("only %d of %d failings happened", len(k.hit), atOnce)
	}
	k.night()
	k.drawWithoutRedis()
}

// drawWithoutRedis holds a draw whose steps are each interrupted right before their commit: a worker stands there while Redis is emptied, and
// then goes on or is killed. The seal that was first shown stays, everybody recomputes the same draw, and each winner has one coupon.
func (k *walk) drawWithoutRedis() {
	k.t.Helper()
	k.evening++
	d := k.c.publishDraw("Draw without Redis", k.invite(), 0)
	d.enter()
	d.strike(d.users[0])
	k.c.open(d.template)
	over := make(chan struct{})
	var all sync.WaitGroup
	var list []failing
	for i, step := range []string{"CloseDue", "Seal", "Decide", "SaveIssued"} {
		f := failing{"drops.Draws." + step, killpoint.BeforeIt, killpoint.Halt}
		list = append(list, f)
		all.Go(func() {
			pid := haltedAt(filepath.Join(k.dir, killpoint.Hit(f.point, f.phase, f.failure)), over)
			if pid == 0 {
				k.t.Errorf("no worker has stood at %v", f)
				return
			}
			k.emptyRedis()
			_ = syscall.Kill(pid, []syscall.Signal{syscall.SIGCONT, syscall.SIGKILL}[i%2])
		})
	}
	k.arm(list)
	d.until("done", func() {
		if p, _ := d.published(d.template); d.seal == "" {
			d.seal = p.Seal
		}
	})
	close(over)
	all.Wait()
	k.disarm(list)
	d.account()
}

func (k *walk) emptyRedis() {
	client, err := k.stack.RedisClient()
	if err == nil {
		err = client.FlushAll(k.ctx).Err()
		_ = client.Close()
	}
	if err != nil {
		k.t.Error(err)
	}
}

// calmEvening returns the points that an evening without failures passes, and the points that
// the sources name.
func (k *walk) calmEvening() []string {
	k.t.Helper()
	k.hold(nil)
	passed := reachedPoints(k.t, k.dir)
	k.say("the calm evening is over; %d points were passed", len(passed))
	points := append(passed, eveningPoints(k.t)...)
	slices.Sort(points)
	return slices.Compact(points)
}

// passedAll fails if the sources name a point that no evening has passed.
func (k *walk) passedAll() {
	k.t.Helper()
	passed := reachedPoints(k.t, k.dir)
	for _, p := range eveningPoints(k.t) {
		if !slices.Contains(passed, p) {
			k.t.Errorf("no evening has passed the point %q", p)
		}
	}
}

// walkAll injects every possible failure at the points, several failures per evening, in a
// random order. A failure that did not occur is tried again.
func (k *walk) walkAll(points []string) {
	k.t.Helper()
	list := everyFailing(points)
	left := slices.Clone(list)
	rng := rand.New(rand.NewPCG(k.seed, 6))
	for round := 0; round < 3 && len(left) > 0; round++ {
		rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		var missed []failing
		for some := range slices.Chunk(left, atOnce) {
			// Some points are passed at the start of a program alone.
			k.restarts = round > 0
			missed = append(missed, k.hold(some)...)
			k.say("evening %d is over; %d of %d failings have happened", k.evening, len(k.hit), len(list))
		}
		left = missed
	}
	k.print(list)
	k.passedAll()
	for _, f := range left {
		if seldom[f.point] == "" {
			k.t.Errorf("did not happen: %v", f)
		}
	}
}

// seldom are points that the sources do not name and that an evening need not pass, each with
// the reason.
var seldom = map[string]string{
	"delivery.DeadLetters.RecountDeadLetters": "a task of every ten minutes",
	"drops.Counters.Recount":                  "only figures that differ are replaced",
	"coupons.CouponTallies.Recount":           "only figures that differ are replaced",
	"work.HookEvents.Correct":                 "once for each history of the database",
	"work.Housekeeping.briefly":               "a task of every ten minutes",
}

// restart kills one process of each kind and starts it again.
func (k *walk) restart() {
	for _, m := range []*member{k.fleet.webs[0], k.fleet.workers[0]} {
		if _, ok := k.fleet.kill(m); ok {
			k.fleet.start(m)
		}
	}
}
