package claim_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/claim"
	"dropbell/domain/user"
)

func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := claim.NewID(rapid.Uint64().Draw(t, "random"))
		if id <= 0 {
			t.Fatalf("id %d is not positive", id)
		}
		if back, err := claim.ParseID(id.String()); err != nil || back != id {
			t.Fatalf("%v is read as %v, %v", id, back, err)
		}
	})
	for _, random := range []uint64{0, 1 << 63, math.MaxUint64} {
		if claim.NewID(random) <= 0 {
			t.Errorf("%#x makes an id that is not positive", random)
		}
	}
	for _, bad := range []string{"", "0", "-1", "01", "+1", "1.0", "x", "9223372036854775808"} {
		if _, err := claim.ParseID(bad); !errors.Is(err, claim.ErrNotFound) {
			t.Errorf("%q is read: %v", bad, err)
		}
	}
}

func TestTapKeys(t *testing.T) {
	long := strings.Repeat("k", 255)
	key := claim.TapKey(math.MaxInt64, long)
	if len(key) > claim.MaxKey || strings.Contains(key, long[:10]) {
		t.Errorf("key %q is too long or tells the client's key", key)
	}
	seen := map[string]bool{}
	for _, by := range []user.ID{1, 11} {
		for _, k := range []string{"a", "1", ":", "a:1"} {
			if seen[claim.TapKey(by, k)] {
				t.Errorf("user %d's key %q is somebody else's as well", by, k)
			}
			seen[claim.TapKey(by, k)] = true
		}
	}
}

func TestWindowed(t *testing.T) {
	for origin, want := range map[claim.Origin]bool{claim.ByTap: true, claim.ByCode: true, claim.ByGrant: false, claim.ByCampaign: false} {
		if origin.Windowed() != want {
			t.Errorf("%s windowed: %v, want %v", origin, !want, want)
		}
	}
}
