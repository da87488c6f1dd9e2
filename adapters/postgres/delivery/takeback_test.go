package delivery_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
)

// TestALivingWorkerKeepsItsBatchAfterAnOutage: the database comes back after
// every lease has expired. A worker that extends its lease in time keeps its
// batch, although a sweep has run before. A worker that does not extend its lease
// soon loses its batch.
func TestALivingWorkerKeepsItsBatchAfterAnOutage(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 100, pgtest.Reminders(delivery.App, 5)...)
	w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), w.DueNow(tpl, 1).ID))
	lease, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	runOut := func() {
		w.Exec(`update batches set next_run_at = now() - interval '2 minutes', lease_until = now() - interval '1 second'`)
	}
	takeBack := func() int {
		n, err := w.Batches.TakeBack(t.Context())
		w.Must(err)
		return n
	}

	runOut()
	if takeBack()+takeBack() != 0 {
		t.Fatal("a worker lost its batch at first sight")
	}
	extended := func(want string) {
		t.Helper()
		if stop, err := lease.Extend(t.Context()); stop != want || err != nil {
			t.Fatalf("a living worker lost its batch, or was told %q: %v", stop, err)
		}
	}
	extended("")
	w.Exec(`update batches set held = true`)
	extended(delivery.Held)
	w.Exec(`update batches set stop_reason = 'drop_cancelled'`)
	extended("drop_cancelled")
	w.Exec(`update batches set held = false, stop_reason = null`)
	if takeBack() != 0 {
		t.Fatal("a worker lost a batch that it had extended")
	}

	runOut()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for takeBack() == 0 {
		if time.Since(began) > 20*time.Second {
			t.Fatal("a silent worker keeps its batch")
		}
		<-tick.C
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("a silent worker lost its batch after %v", took)
	}
	if idle, err := w.Batches.Overdue(t.Context(), 1500*time.Millisecond); err != nil || len(idle) != 1 {
		t.Errorf("nobody would be woken for the batch: %v %v", idle, err)
	}
	if _, err := lease.Checkpoint(t.Context(), delivery.Progress{}); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("the silent worker could still record: %v", err)
	}
}

// TestTakingBackReadsEndedLeases: the index of leases is bounded by the time, so the sweep reads no
// batch whose lease lasts.
func TestTakingBackReadsEndedLeases(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1, 3000) n", pgtest.Row{"from_user": pgtest.SQL("n * 10"), "to_user": pgtest.SQL("n * 10"), "due": pgtest.Bitmap(1),
		"state": "running", "lease_until": pgtest.SQL("now() + (n - 10) * interval '1 second'")})
	w.Exec(`analyze batches`)
	sql, args := deliverydb.ExplainTakeBack()
	rows, err := w.SQL.Query(t.Context(), sql, args...)
	w.Must(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "Index Cond: (lease_until < statement_timestamp())") {
		t.Errorf("planned as\n%s", text)
	}
}
