package chaos_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// atOnce is how many failings happen in one evening.
const atOnce = 8

// TestKillPointsShort holds a calm evening, in which every point that the
// sources name must be passed, and one in which a random choice of failings
// happens.
func TestKillPointsShort(t *testing.T) {
	k := newWalk(t)
	points := k.calmEvening()
	list := everyFailing(points)
	k.random(5).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	some := list[:atOnce]
	k.hold(some)
	k.print(some)
	if len(k.hit) < atOnce/2 {
		t.Errorf("only %d of %d failings happened", len(k.hit), atOnce)
	}
}

// calmEvening returns the points that an evening without failures passes.
func (k *walk) calmEvening() []string {
	k.t.Helper()
	k.hold(nil)
	points := reachedPoints(k.t, k.dir)
	for _, p := range namedPoints(k.t) {
		if !slices.Contains(points, p) && unwalked[p] == "" {
			k.t.Errorf("no evening passes the point %q", p)
		}
	}
	k.say("the calm evening is over; %d points were passed", len(points))
	return points
}

// unwalked are points that no evening passes, and why.
var unwalked = map[string]string{}

// walkAll lets everything happen that can happen at the points, several things in
// an evening, in a random order; what does not happen is tried again.
func (k *walk) walkAll(points []string) {
	k.t.Helper()
	list := everyFailing(points)
	left := slices.Clone(list)
	rng := rand.New(rand.NewPCG(k.seed, 6))
	for round := 0; round < 3 && len(left) > 0; round++ {
		rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		var missed []failing
		for some := range slices.Chunk(left, atOnce) {
			missed = append(missed, k.hold(some)...)
			k.say("evening %d is over; %d of %d failings have happened", k.evening, len(k.hit), len(list))
		}
		left = missed
	}
	k.print(list)
	for _, f := range left {
		k.t.Errorf("did not happen: %v", f)
	}
}
