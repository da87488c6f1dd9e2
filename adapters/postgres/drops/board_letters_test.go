package drops_test

import (
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestBoardCountsTheDeadLettersThatAreLeft: the board does not count dead letters
// that were discarded or retried. The balance sheet still counts discarded
// letters as dead.
func TestBoardCountsTheDeadLettersThatAreLeft(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id <= 4] }
	tpl, _ := m.Bury(1, 10, 5)
	m.Bury(1, 4, 5) // dead letters of another drop
	known := cockpit(m, tpl).Settled()
	check := func(when string, want, dead int64) {
		t.Helper()
		board, err := m.Boards.Board(t.Context(), tpl.ID)
		m.Must(err)
		if got := board.Totals()[delivery.Webhook].Dead; board.DeadLetters != want || got != dead {
			t.Errorf("%s: %d letters and %d dead, want %d and %d", when, board.DeadLetters, got, want, dead)
		}
		if got := cockpit(m, tpl, known...).DeadLetters; got != want {
			t.Errorf("%s: %d letters in the cockpit, want %d", when, got, want)
		}
		m.Balanced(tpl)
	}
	check("at first", 4, 4)
	m.Work(delivery.Discard, delivery.DeadLetterFilter{TemplateID: tpl.ID, UserID: 1}, 0)
	check("after one was discarded", 3, 4)
	m.Cause = func(user.ID) string { return "" }
	m.Work(delivery.Replay, delivery.DeadLetterFilter{TemplateID: tpl.ID, UserID: 2}, 0)
	m.Drain()
	m.Finish(tpl)
	check("after one was delivered", 2, 3)
	m.Work(delivery.Discard, delivery.DeadLetterFilter{TemplateID: tpl.ID}, 0)
	check("after all were discarded", 0, 3)
}
