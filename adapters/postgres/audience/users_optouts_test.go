package audience_test

import (
	"sync"
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func TestSetOptOuts(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Upsert(user.Change{ID: 1, Name: new("Ann"), OptOuts: new(uint8(0b00101))})
	for _, c := range []struct {
		id        user.ID
		mask, off uint8
		want      uint8
	}{
		{1, 0b00010, 0b00010, 0b00111}, // one channel more
		{1, 0b00010, 0b00010, 0b00111}, // again
		{1, 0b00011, 0b00010, 0b00110}, // the first on again
		{1, 0b00000, 0b11111, 0b00110}, // nothing is asked for
		{2, 0b00010, 0b11111, 0b00010}, // a new user
	} {
		got, err := users.SetOptOuts(t.Context(), c.id, c.mask, c.off, staff.Entry{})
		w.Must(err)
		u, err := users.User(t.Context(), c.id)
		w.Must(err)
		if got != c.want || u.OptOuts != c.want {
			t.Fatalf("%d %05b %05b: %05b, stored %05b, want %05b", c.id, c.mask, c.off, got, u.OptOuts, c.want)
		}
	}
	if u, err := users.User(t.Context(), 1); err != nil || u.Name != "Ann" {
		t.Fatalf("%+v %v", u, err)
	}
}

// Wishes about different channels that arrive together all count.
func TestConcurrentOptOuts(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	for round := range 10 {
		id := user.ID(round + 1)
		var all sync.WaitGroup
		for c := range 5 {
			all.Go(func() {
				if _, err := users.SetOptOuts(t.Context(), id, 1<<c, 1<<c, staff.Entry{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if u, err := users.User(t.Context(), id); err != nil || u.OptOuts != 0b11111 {
			t.Fatalf("%05b %v", u.OptOuts, err)
		}
	}
}

// Single attributes are changed and removed; a comparison reports beforehand which changes a
// patch would make.
func TestAttributePatches(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Upsert(user.Change{ID: 1, Attributes: &map[string]any{"tier": "gold", "score": 7.0, "empty": nil}}, user.Change{ID: 2, Name: new("Bob")})
	changes := []user.Change{
		{ID: 1, Patch: map[string]any{"tier": nil, "city": "Bern"}},
		{ID: 2, Name: new("Bob")},
		{ID: 3, Patch: map[string]any{"tier": "new", "city": nil}},
	}
	for round, want := range []struct{ fresh, changed int64 }{{1, 1}, {0, 0}} {
		fresh, changed, err := users.Compare(t.Context(), changes)
		w.Must(err)
		if fresh != want.fresh || changed != want.changed {
			t.Fatalf("round %d: %d new, %d changed, want %+v", round, fresh, changed, want)
		}
		w.Upsert(append([]user.Change{}, changes...)...)
	}
	for id, want := range map[user.ID]string{1: `{"city": "Bern", "score": 7}`, 2: `{}`, 3: `{"tier": "new"}`} {
		var got string
		w.Must(w.SQL.QueryRow(t.Context(), `select attributes::text from users where id = $1`, id).Scan(&got))
		if got != want {
			t.Errorf("user %d has %s, want %s", id, got, want)
		}
	}
}
