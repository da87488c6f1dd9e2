package delivery_test

import (
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/user"
)

// TestRecountingLocksNothing: checkpoints are stored during a recount, and their
// rows are counted once.
func TestRecountingLocksNothing(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return []string{"even", "odd"}[id%2] }
	m.Bury(1, 8, 3)
	m.Exec(`update dead_letter_groups set dead = dead + 3 where fingerprint = 'odd'`)
	m.Exec(`insert into dead_letter_groups select channel, 'gone', 9, first_at, last_at, '' from dead_letter_groups limit 1`)
	die := func(fingerprint string) string {
		return `with rows as (insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
			select batch_id, $1::bigint, channel, outcome, reason, detail, fingerprint, attempts from exceptions where fingerprint = '` + fingerprint + `' limit 1)
			update dead_letter_groups set dead = dead + 1 where fingerprint = '` + fingerprint + `'`
	}
	_, commit := m.Hold(die("odd"), 1001)
	counted := make(chan error, 1)
	go func() { counted <- m.Store.RecountDeadLetters(m.Context()) }()
	m.Blocked(1)
	tx, err := m.SQL.Begin(t.Context())
	m.Must(err)
	_, err = tx.Exec(t.Context(), `set local lock_timeout = '2s'`)
	m.Must(err)
	if _, err = tx.Exec(t.Context(), die("even"), 1002); err != nil {
		t.Errorf("a checkpoint waits for the recount: %v", err)
	}
	m.Must(tx.Commit(t.Context()))
	commit()
	m.Must(<-counted)
	m.CountersAgree("after a recount")
	if n := m.Number(`select count(*) from dead_letter_groups where fingerprint = 'gone'`); n != 0 {
		t.Error("a group without letters is still there")
	}
}

// TestTimesOfAGroup: a group's times are the times of its first and last death,
// in whatever order batches are stored. A recount does not change them.
func TestTimesOfAGroup(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "away" }
	m.Bury(1, 4, 1)
	m.Exec(`update exceptions set first_at = first_at - interval '2 hours'`) // tried long before
	agree := func(when string) {
		t.Helper()
		if n := m.Number(`select count(*) from dead_letter_groups where (first_at, last_at) = (select min(last_at), max(last_at) from exceptions)`); n != 1 {
			t.Errorf("%s the times of the group are others than those of its letters", when)
		}
	}
	agree("stored in order")
	m.Exec(`update exceptions set last_at = last_at + case when user_id = 1 then interval '1 hour' else -interval '1 hour' end where user_id < 3`)
	m.Exec(`update dead_letter_groups set (first_at, last_at) = (select min(last_at), max(last_at) from exceptions)`)
	m.Bury(5, 8, 1)
	agree("stored late")
	m.Must(m.Store.RecountDeadLetters(t.Context()))
	agree("counted again")
}
