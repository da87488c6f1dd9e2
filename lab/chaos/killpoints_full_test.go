//go:build chaos

package chaos_test

import "testing"

// TestKillPointsFull lets every failure happen at every point.
func TestKillPointsFull(t *testing.T) {
	k := newWalk(t)
	k.walkAll(k.calmEvening())
}
