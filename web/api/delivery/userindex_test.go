package delivery

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dropbell/domain/user"
)

// TestUserIndexAgreesWithASortedSlice over random insertions and removals.
func TestUserIndexAgreesWithASortedSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x userIndex
	var model []user.ID
	for step := range 20_000 {
		id := user.ID(r.IntN(6000))
		at, found := slices.BinarySearch(model, id)
		// It grows first and shrinks later.
		if r.IntN(10) < 3+4*min(1, 10_000/(step+1)) {
			x.insert(id)
			if !found {
				model = slices.Insert(model, at, id)
			}
		} else {
			x.remove(id)
			if found {
				model = slices.Delete(model, at, at+1)
			}
		}
		if step%100 != 0 {
			continue
		}
		from := user.ID(r.IntN(6000))
		to := from + user.ID(r.IntN(2000))
		var want, got []user.ID
		for _, id := range model {
			if from <= id && id <= to {
				want = append(want, id)
			}
		}
		x.within(from, to, func(id user.ID) bool { got = append(got, id); return true })
		if !slices.Equal(got, want) || x.count(from, to, 1<<30) != len(want) || x.count(from, to, 5) != min(5, len(want)) {
			t.Fatalf("step %d, %d to %d: %d ids, counted %d, want %d", step, from, to, len(got), x.count(from, to, 1<<30), len(want))
		}
	}
	for _, id := range model {
		x.remove(id)
	}
	if len(x.blocks) != 0 {
		t.Errorf("%d blocks are left of nothing", len(x.blocks))
	}
}
