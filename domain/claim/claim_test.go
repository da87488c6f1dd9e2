package claim_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := rapid.Int64Min(1).Draw(t, "template")
		id := claim.NewID(rapid.Uint64().Draw(t, "random"), template)
		if !id.Names(template) || id.Names(template^1) || id.Names(template^0x100) {
			t.Fatalf("id %d names another template than %d", id, template)
		}
		if id <= 0 {
			t.Fatalf("id %d is not positive", id)
		}
		if back, err := claim.ParseID(id.String()); err != nil || back != id {
			t.Fatalf("%v is read as %v, %v", id, back, err)
		}
	})
	for _, random := range []uint64{0, 1 << 63, math.MaxUint64} {
		if claim.NewID(random, 1<<16) <= 0 {
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

// told is a gate that returns the first claim.
type told struct{ first claim.Claim }

func (g told) Claim(context.Context, claim.Request) (claim.Claim, error) { return g.first, nil }

// TestAFailedClaimIsARefusal: the repetition of a claim that was refused when
// it was written is answered as if the refusal had come at once.
func TestAFailedClaimIsARefusal(t *testing.T) {
	for _, want := range []*fault.Fault{claim.ErrSoldOut, claim.ErrLimit, claim.ErrIdempotency, claim.ErrEnded, template.ErrNotFound, template.ErrNotOpen,
		fault.New(fault.Conflict, "code_used", "")} {
		s := claim.Service{Gate: told{claim.Claim{ID: 5, State: claim.Failed, Reason: want.Code}}, Random: func() uint64 { return 6 }}
		if _, repeated, err := s.Tap(t.Context(), 7, 1, "k", ""); !errors.Is(err, want) || repeated || fault.KindOf(err) != want.Kind {
			t.Errorf("%s: %v, %v", want.Code, repeated, err)
		}
	}
	for _, state := range []claim.State{claim.Accepted, claim.Issued} {
		s := claim.Service{Gate: told{claim.Claim{ID: 5, State: state}}, Random: func() uint64 { return 6 }}
		if c, repeated, err := s.Tap(t.Context(), 7, 1, "k", ""); err != nil || !repeated || c.State != state {
			t.Errorf("%s: %+v, %v, %v", state, c, repeated, err)
		}
	}
}
