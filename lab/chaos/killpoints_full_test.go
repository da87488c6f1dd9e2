//go:build chaos

package chaos_test

import (
	"slices"
	"strings"
	"testing"
)

// TestKillPointsFull lets every failure happen at every point.
func TestKillPointsFull(t *testing.T) {
	k := newWalk(t)
	k.walkAll(k.calmEvening())
	k.night()
}

// TestRehearsalsFull kills rehearsals at every point that the sources name, and then at their transactions, all of which have been passed by then.
func TestRehearsalsFull(t *testing.T) {
	r := newRehearsals(t)
	for _, f := range r.kills(rehearsalPoints(t)) {
		r.killAt(f)
	}
	transactions := slices.DeleteFunc(reachedPoints(t, r.dir), func(p string) bool { return !strings.HasPrefix(p, "drops.Rehearsals.") })
	if len(transactions) < 3 {
		t.Errorf("only the transactions %v", transactions)
	}
	for _, f := range r.kills(transactions) {
		r.killAt(f)
	}
	r.undisturbed()
}
