package redisgate

import (
	"context"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// unwritten is a database to which nothing has been written yet.
type unwritten struct{ terms template.Template }

func (unwritten) Shards(context.Context, int64) (int, error) { return 1, nil }
func (u unwritten) Active(context.Context) (map[int64]int, error) {
	return map[int64]int{u.terms.ID: 1}, nil
}
func (unwritten) Retired(context.Context, int64) (bool, error) { return false, nil }
func (u unwritten) Template(context.Context, int64) (template.Template, error) {
	return u.terms, nil
}
func (unwritten) Known(context.Context, claim.Request) (claim.Claim, error) {
	return claim.Claim{}, claim.ErrNotFound
}
func (unwritten) Held(context.Context, int64, []user.ID, []int64) ([]gate.UserCount, []gate.IdempotencyRecord, error) {
	return nil, nil, nil
}
func (unwritten) Household(context.Context, int64, user.ID) (int64, error) { return 0, nil }
func (unwritten) Ready(context.Context, int64) (time.Duration, error)      { return 0, nil }
func (unwritten) Decided(context.Context, user.ID, claim.ID) (claim.Claim, error) {
	return claim.Claim{}, claim.ErrNotFound
}

// TestAcceptedClaimKeepsItsInstant: until a claim is written, its repetition and a lookup of it
// return the instant at which it was accepted.
func TestAcceptedClaimKeepsItsInstant(t *testing.T) {
	client := newClient(t)
	newShards(t, NewShards(client), 1, 1, openTerms(5), 10)
	g := New(client, unwritten{template.Template{ID: 1}}, Options{})
	ask := func(id claim.ID) claim.Claim {
		t.Helper()
		c, err := g.Claim(t.Context(), claim.Request{ID: id, TemplateID: 1, UserID: 7, Origin: claim.ByTap, Key: "k"})
		must(t, err)
		return c
	}
	first := ask(1)
	clock := func() int64 {
		t.Helper()
		now, err := client.Time(t.Context()).Result()
		must(t, err)
		return now.UnixMilli()
	}
	for id := range claim.ID(3) {
		for now := clock(); clock() == now; { // until it is another instant for Redis
		}
		if again := ask(id + 2); again != first {
			t.Fatalf("the repetition is answered %+v, the first time %+v", again, first)
		}
	}
	seen, err := g.ByID(t.Context(), 7, first.ID)
	must(t, err)
	if seen != first {
		t.Fatalf("the claim is shown as %+v, it was answered as %+v", seen, first)
	}
}
