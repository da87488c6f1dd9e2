package delivery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// ready stores n app batches of ten users each, with deadlines after the given time.
func (w *fixture) ready(n int, deadline time.Duration) {
	w.Helper()
	for range n {
		from := user.ID(1 + 10*w.Number(`select count(*) from batches`))
		var ids []user.ID
		for i := range user.ID(10) {
			ids = append(ids, from+i)
		}
		w.Insert("batches", pgtest.Row{"from_user": from, "to_user": from + 9, "due": pgtest.Bitmap(ids...), "due_count": 10,
			"worthless_after": time.Now().Add(deadline)})
	}
}

// stores are the two stores that deliver: with separate statements, and with groups.
func (w *fixture) stores() map[string]interface {
	LeaseNext(context.Context, delivery.Channel, time.Duration) (delivery.Lease, error)
} {
	return map[string]interface {
		LeaseNext(context.Context, delivery.Channel, time.Duration) (delivery.Lease, error)
	}{"alone": deliverydb.NewBatches(w.DB), "grouped": w.Batches}
}

func TestManyAtOnceTakeEachBatchOnce(t *testing.T) {
	w := newFixture(t)
	for name, store := range w.stores() {
		t.Run(name, func(t *testing.T) {
			w.Exec(`truncate batches, exceptions, outbox, dead_letter_groups cascade`)
			w.ready(150, time.Minute)
			var mu sync.Mutex
			taken := map[int64]int{}
			var workers sync.WaitGroup
			for range 16 {
				workers.Go(func() {
					for {
						l, err := store.LeaseNext(t.Context(), delivery.App, time.Minute)
						if errors.Is(err, delivery.ErrNoWork) {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						b := l.Batch()
						mu.Lock()
						taken[b.ID]++
						mu.Unlock()
						// Nine messages of each batch are sent, in two steps. The tenth
						// recipient is dead in every third batch, and skipped in all other
						// batches.
						if _, err := l.Checkpoint(t.Context(), delivery.Progress{Sent: b.Left[:5]}); err != nil {
							t.Error(err)
						}
						e := delivery.Exception{UserID: b.Left[9], Outcome: delivery.Skipped, Reason: "opted_out", FirstAt: pgtest.Clock(), LastAt: pgtest.Clock()}
						if b.ID%3 == 0 {
							e.Outcome, e.Reason, e.Fingerprint, e.Detail = delivery.Dead, "permanent", "gone", "no such user"
						}
						if _, err := l.Checkpoint(t.Context(), delivery.Progress{Sent: b.Left[5:9], Exceptions: []delivery.Exception{e}, Done: true}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			workers.Wait()
			for id, n := range taken {
				if n != 1 {
					t.Errorf("batch %d was leased %d times", id, n)
				}
			}
			dead := w.Number(`select count(*) from batches where id % 3 = 0`)
			for what, want := range map[string]int64{
				`select count(*) from batches where state = 'done' and sent_count = 9 and lease_token is null and finished_at is not null`: 150,
				`select sum(skipped_count) from batches`:                            150 - dead,
				`select sum(dead_count) from batches`:                               dead,
				`select dead from dead_letter_groups where fingerprint = 'gone'`:    dead,
				`select count(*) from exceptions`:                                   150,
				`select count(*) from outbox where topic = 'batch.finished.v1'`:     150,
				`select count(distinct payload->>'batch_id') from outbox`:           150,
				`select sum(n) from batches, unnest(late) as n where n is not null`: 9 * 150,
			} {
				if got := w.Number(what); got != want {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
		})
	}
}

// TestOneOfAGroupFails: a lost lease, or a value that the database refuses, does not affect
// other checkpoints of the group.
func TestOneOfAGroupFails(t *testing.T) {
	w := newFixture(t)
	for name, store := range w.stores() {
		t.Run(name, func(t *testing.T) {
			w.Exec(`truncate batches, exceptions cascade`)
			w.ready(12, time.Minute)
			var leases []delivery.Lease
			for range 12 {
				l, err := store.LeaseNext(t.Context(), delivery.App, time.Minute)
				w.Must(err)
				leases = append(leases, l)
			}
			lost, refused := leases[3].Batch().ID, leases[7].Batch().ID
			w.Exec(`update batches set lease_token = gen_random_uuid() where id = $1`, lost)
			var together sync.WaitGroup
			for _, l := range leases {
				together.Go(func() {
					id := l.Batch().ID
					p := delivery.Progress{Sent: l.Batch().Left, Done: true}
					if id == refused {
						p.Exceptions = []delivery.Exception{{UserID: l.Batch().Left[0], Outcome: "nonsense"}}
					}
					switch _, err := l.Checkpoint(t.Context(), p); {
					case id == lost && !errors.Is(err, delivery.ErrLeaseLost):
						t.Errorf("the lost one: %v", err)
					case id == refused && (err == nil || errors.Is(err, delivery.ErrLeaseLost)):
						t.Errorf("the refused one: %v", err)
					case id != lost && id != refused && err != nil:
						t.Errorf("batch %d: %v", id, err)
					}
				})
			}
			together.Wait()
			if n := w.Number(`select count(*) from batches where state = 'done'`); n != 10 {
				t.Errorf("%d of 10 are done", n)
			}
		})
	}
}

// TestMoreUrgentBatchIsSeen: leases start after the last place, but only for so long that a
// batch with a nearer deadline does not wait for all other batches.
func TestMoreUrgentBatchIsSeen(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1000, 4000) n", pgtest.Row{"from_user": pgtest.SQL("n * 10"), "to_user": pgtest.SQL("n * 10"), "due": pgtest.Bitmap(1)})
	next := func() *delivery.Batch {
		l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
		w.Must(err)
		return l.Batch()
	}
	next()
	w.ready(1, time.Minute)
	for next().WorthlessAfter.After(pgtest.Clock().Add(10 * time.Minute)) {
		if w.Number(`select count(*) from batches where state = 'ready'`) == 1 {
			t.Fatal("it came last")
		}
	}
}

// TestPlansForNoValues: leases and checkpoints find their batches by the right indexes with a
// generic plan, whatever the statistics are.
func TestPlansForNoValues(t *testing.T) {
	w := newFixture(t)
	w.Exec(`vacuum analyze slots`) // without any
	settings, lease, checkpoint, err := deliverydb.Planned()
	w.Must(err)
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{settings, `prepare taking as ` + lease, `prepare recording as ` + checkpoint} {
		_, err := tx.Exec(t.Context(), sql)
		w.Must(err)
	}
	const token = `6ba7b810-9dad-11d1-80b4-00c04fd430c8`
	for round := range 2 {
		for execution, indexes := range map[string]map[string]int{
			`execute taking (0, '` + token + `', '1 minute', 8, -32768, null, 0, 4, 16, 1000)`: {"batches_runnable": 1, "batches_pkey": 1, "slots_pkey": 1, "(s.id = b.owner_id)": 0,
				"users_opt_outs": 1, "Seq Scan": 0},
			`execute recording ('{0,1}', '{1}', '{` + token + `}', '{null}', '{1}', '{0}', '{0}', '{0}', '{0}', '{null}', '{null}', '{f}', '{null}', '{1 minute}', '{null}', 0)`: {
				"batches_pkey": 2, "batches_leased": 0, "Seq Scan": 0},
		} {
			rows, err := tx.Query(t.Context(), `explain `+execution, pgx.QueryExecModeSimpleProtocol)
			w.Must(err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			w.Must(err)
			for name, times := range indexes {
				if text := strings.Join(plan, "\n"); strings.Count(text, name) != times {
					t.Errorf("%s: %s not %d times in\n%s", execution, name, times, text)
				}
			}
		}
		if round == 1 {
			break
		}
		rows.Fill(t, tx, "batches", "generate_series(1, 20000) n", rows.Row{"owner_id": round, "from_user": rows.SQL("n * 10"), "to_user": rows.SQL("n * 10"),
			"due": pgtest.Bitmap(1), "state": rows.SQL("case when n % 2 = 0 then 'done' else 'ready' end")})
		_, err = tx.Exec(t.Context(), `analyze batches`)
		w.Must(err)
	}
}

// TestCheckpointFindsBatchesByTheirKey: batches that have run stay in the index of running
// batches until a vacuum, so a checkpoint must not use that index to find its batch.
func TestCheckpointFindsBatchesByTheirKey(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1, 3000) n", pgtest.Row{"from_user": pgtest.SQL("n * 10"), "to_user": pgtest.SQL("n * 10"), "due": pgtest.Bitmap(1)})
	for range 2 { // also with statistics that say hardly any are running
		l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
		w.Must(err)
		sql, args := deliverydb.ExplainCheckpoint(l.Batch().ID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
		rows, err := w.SQL.Query(t.Context(), sql, args...)
		w.Must(err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.Must(err)
		if text := strings.Join(plan, "\n"); strings.Contains(text, "batches_leased") || strings.Count(text, "batches_pkey") != 2 {
			t.Errorf("planned as\n%s", text)
		}
		w.Exec(`analyze batches`)
	}
}

// TestSmallBatchesAreLeasedTogether: after small batches a lease returns several batches,
// after large batches one at a time. The most urgent batches come first, and each batch goes
// to one caller.
func TestSmallBatchesAreLeasedTogether(t *testing.T) {
	w := newFixture(t)
	lease := func(want int) (ids []int64) {
		t.Helper()
		leases, err := w.Batches.LeaseSome(t.Context(), delivery.App, time.Minute, 16)
		w.Must(err)
		for _, l := range leases {
			ids = append(ids, l.Batch().ID)
		}
		if len(ids) != want || !slices.IsSorted(ids) {
			t.Errorf("leased %v, want %d", ids, want)
		}
		return ids
	}
	w.ready(40, time.Minute)
	first, second := lease(1), lease(16) // nothing was known of batches before the first
	if first[0] >= second[0] {
		t.Errorf("%d was more urgent than %d", second[0], first[0])
	}
	var mu sync.Mutex
	var rest []int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			leases, err := w.Batches.LeaseSome(t.Context(), delivery.App, time.Minute, 16)
			if err != nil && !errors.Is(err, delivery.ErrNoWork) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, l := range leases {
				rest = append(rest, l.Batch().ID)
			}
		})
	}
	callers.Wait()
	slices.Sort(rest)
	if len(slices.Compact(slices.Clone(rest))) != 23 || len(rest) != 23 {
		t.Errorf("four callers leased %v, want the other 23, each once", rest)
	}
	if _, err := w.Batches.LeaseSome(t.Context(), delivery.App, time.Minute, 16); !errors.Is(err, delivery.ErrNoWork) {
		t.Errorf("none was left: %v", err)
	}
	w.Exec(`truncate batches, exceptions, outbox cascade`)
	// The last leased batches were small. Of the following batches every second one is full.
	w.ready(20, time.Minute)
	w.Exec(`update batches set due_count = case when id / 64 % 2 = 0 then $1 else due_count end`, delivery.BatchSize)
	w.Exec(`update batches set due_count = due_count + 900 where id = (select min(id) from batches) and due_count = 10`)
	lease(1)
	w.Exec(`update batches set due_count = 125 where state = 'ready'`) // two parts each
	lease(1)                                                           // the previous batch was nearly full
	lease(8)
}
