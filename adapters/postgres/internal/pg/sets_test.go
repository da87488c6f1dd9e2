package pg

import (
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/user"
)

// A stored set and its decoded form contain the same users. Bytes that are not a
// set return an error and cause no panic.
func TestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, 1<<62))).Draw(t, "ids")
		asked := user.ID(rapid.OneOf(rapid.SampledFrom(append(ids, 1)), rapid.Int64Range(1, 200)).Draw(t, "asked"))
		set, _ := DecodeSet(nil)
		for _, id := range ids {
			set.Add(uint64(id))
		}
		if rapid.Bool().Draw(t, "runs") {
			set.RunOptimize()
		}
		stored, err := set.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := SetHolds(stored, asked); err != nil || got != set.Contains(uint64(asked)) {
			t.Fatalf("holds %d: %v %v", asked, got, err)
		}
		cut := stored[:rapid.IntRange(1, len(stored)-1).Draw(t, "cut")]
		if _, err := SetHolds(cut, asked); err == nil {
			t.Fatalf("%d of %d bytes are no set", len(cut), len(stored))
		}
	})
	if got, err := SetHolds(nil, 1); got || err != nil {
		t.Errorf("nothing holds somebody: %v %v", got, err)
	}
}
