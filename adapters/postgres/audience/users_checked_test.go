package audience_test

import (
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/user"
)

// A check finds the last row of a user before the part that it is reading. It finds no row that
// an attempt of the same part has stored.
func TestCheckedRows(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Exec(`insert into jobs (kind, title, needs, state, actor, created_by) select 'users.check', 'x', 'manage_users', 'running', '{}', 'a' from generate_series(1, 2)`)
	remember := func(job, before int64, rows ...user.CheckedRow) []user.CheckedRow {
		t.Helper()
		known, err := users.RememberRows(t.Context(), job, rows, before)
		w.Must(err)
		return known
	}
	for range 2 { // the second time the first answer was lost
		if known := remember(1, 2, user.CheckedRow{ID: 7, Line: 2, Digest: -1}, user.CheckedRow{ID: 8, Line: 3, Digest: 5}); len(known) != 0 {
			t.Errorf("known at first: %+v", known)
		}
	}
	remember(1, 10, user.CheckedRow{ID: 7, Line: 12, Digest: 9})
	for range 2 {
		known := remember(1, 20, user.CheckedRow{ID: 9, Line: 20, Digest: 1}, user.CheckedRow{ID: 7, Line: 25, Digest: 3})
		if len(known) != 1 || known[0] != (user.CheckedRow{ID: 7, Line: 12, Digest: 9}) {
			t.Errorf("known later: %+v", known)
		}
	}
	if known := remember(65, 20, user.CheckedRow{ID: 7, Line: 20}); len(known) != 0 {
		t.Errorf("known from another table: %+v", known)
	}
	for _, want := range []int{3, 2, 0} {
		if n, err := users.ForgetRows(t.Context(), 1, 3); err != nil || n != want {
			t.Errorf("forgot %d, want %d: %v", n, want, err)
		}
	}
	w.Exec(`delete from jobs where id = 65`)
	if n := w.Number(`select count(*) from checked_rows`); n != 0 {
		t.Errorf("%d rows outlive their job", n)
	}
}
