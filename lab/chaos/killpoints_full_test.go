//go:build chaos

package chaos_test

import "testing"

// TestKillPointsFull lets every failure happen at every point.
func TestKillPointsFull(t *testing.T) {
	k := newWalk(t)
	k.walkAll(k.calmEvening())
	k.night()
}

// TestRehearsalsFull kills rehearsals at every point.
func TestRehearsalsFull(t *testing.T) {
	r := newRehearsals(t)
	for _, f := range r.kills() {
		r.killAt(f)
	}
	r.undisturbed()
}
