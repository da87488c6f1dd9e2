package drops_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// under returns a change with an idempotency key.
func under(key string, t template.Template, by user.ID, bits int64) reminder.Change {
	return reminder.Change{TemplateID: t.ID, UserID: by, Bits: reminder.StoredBitmap(bits),
		Once: &reminder.Once{Actor: "user:" + by.String(), Key: key, Hash: fmt.Append(nil, bits), Terms: []byte{1, 2}}}
}

func (w *fixture) reserve(c reminder.Change) reminder.Decision {
	w.Helper()
	d, err := w.Reservations.Reserve(w.Context(), c)
	w.Must(err)
	return d
}

// found returns the decision that is stored with a key, and the slots that the user has
// reserved; nil and 0 if there are none.
func (w *fixture) found(key string, by user.ID) (decision []int64, slots int64) {
	w.Helper()
	w.Must(w.SQL.QueryRow(w.Context(), `select (select found from idempotency_keys where key = $1 and status is null and locked_until = 'infinity'),
		coalesce((select slots from reservations where user_id = $2), 0)`, key, by).Scan(&decision, &slots))
	return decision, slots
}

// TestTheKeyIsStoredWithTheDecision: reservations and refusals are stored with their keys. A
// request with a known key changes nothing, even if the request differs.
func TestTheKeyIsStoredWithTheDecision(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	if d := w.reserve(under("a", tpl, 7, 3)); !d.Applied || !d.Created || d.Repeated {
		t.Fatalf("the first: %+v", d)
	}
	if d := w.reserve(under("b", tpl, 7, 2)); d.Applied || d.Repeated || d.Before.Int64() != 3 {
		t.Fatalf("a refusal: %+v", d)
	}
	for key, bits := range map[string]int64{"a": 3, "b": 2} {
		if d := w.reserve(under(key, tpl, 7, bits)); !d.Repeated {
			t.Errorf("%s again: %+v", key, d)
		}
		if d := w.reserve(under(key, tpl, 7, 16)); !d.Repeated {
			t.Errorf("%s with another request: %+v", key, d)
		}
	}
	open := int64(1<<60 - 1)
	for key, want := range map[string][]int64{"a": {3, 3, 0, open}, "b": {0, 0, 3, open}} {
		if got, slots := w.found(key, 7); fmt.Sprint(got) != fmt.Sprint(want) || slots != 3 {
			t.Errorf("%s: stored %v beside slots %d, want %v", key, got, slots, want)
		}
	}
	if n := w.Number(`select count(*) from outbox where topic = 'reservations.changed.v1'`); n != 1 {
		t.Errorf("%d events", n)
	}
	// The same key of another user is another key.
	if d := w.reserve(under("a", tpl, 8, 1)); !d.Applied {
		t.Errorf("of another user: %+v", d)
	}
	// A key held by an attempt of the general idempotency store is known too.
	w.Exec(`insert into idempotency_keys (actor, key, request_hash, locked_until) values ('user:9', 'a', '', now() - interval '1 hour')`)
	if d := w.reserve(under("a", tpl, 9, 1)); !d.Repeated {
		t.Errorf("held by an attempt: %+v", d)
	}
}

// TestManyAtOnceWithOneKey sends requests with one key and different reminders to two
// processes, among requests of other users. Only one of them is decided.
func TestManyAtOnceWithOneKey(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	second := dropsdb.NewReservations(w.DB, postgres.Grouping{})
	t.Cleanup(second.Close)
	for round := range int64(10) {
		key := fmt.Sprint("k", round)
		var all sync.WaitGroup
		var mu sync.Mutex
		var decided []int64
		for i := range int64(40) {
			store := []*dropsdb.Reservations{w.Reservations, second}[i%2]
			all.Go(func() {
				bit := int64(1) << i
				d, err := store.Reserve(context.Background(), under(key, tpl, user.ID(round+1), bit))
				if err != nil {
					t.Error(err)
				}
				if !d.Repeated {
					mu.Lock()
					decided = append(decided, bit)
					mu.Unlock()
				}
			})
			all.Go(func() {
				if d, err := store.Reserve(context.Background(), under(key, tpl, user.ID(1000+100*round+i), 1)); err != nil || !d.Applied {
					t.Errorf("another user: %+v %v", d, err)
				}
			})
		}
		all.Wait()
		if len(decided) != 1 {
			t.Fatalf("decided: %v", decided)
		}
		if n := w.Number(`select slots from reservations where user_id = $1`, round+1); n != decided[0] {
			t.Errorf("slots %d, decided was %d", n, decided[0])
		}
	}
	if n := w.Number(`select count(*) from reservations`); n != 410 {
		t.Errorf("%d reservations", n)
	}
}

// TestAKeyThatIsStoredMeanwhile: a group waits for another process that has stored one of its
// keys and not committed. All other requests of the group are stored, whether that process
// commits or not.
func TestAKeyThatIsStoredMeanwhile(t *testing.T) {
	for _, end := range []string{"commit", "rollback"} {
		w := newFixture(t)
		tpl := w.Published(2 * time.Hour)
		other, err := w.SQL.Begin(t.Context())
		w.Must(err)
		_, err = other.Exec(t.Context(), `insert into idempotency_keys (actor, key, request_hash, locked_until) values ('user:7', 'k', '', 'infinity')`)
		w.Must(err)
		var all sync.WaitGroup
		for _, by := range []user.ID{7, 8} {
			all.Go(func() {
				d, err := w.Reservations.Reserve(context.Background(), under("k", tpl, by, 1))
				if repeated := by == 7 && end == "commit"; err != nil || d.Repeated != repeated || d.Applied == repeated {
					t.Errorf("%s, user %d: %+v %v", end, by, d, err)
				}
			})
		}
		w.blocked()
		w.Must(map[string]func(context.Context) error{"commit": other.Commit, "rollback": other.Rollback}[end](t.Context()))
		all.Wait()
	}
}

// blocked returns once a group waits for another transaction.
func (w *fixture) blocked() (pid int32) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if err := w.SQL.QueryRow(w.Context(), `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
			and query like '%with asked as%' limit 1`).Scan(&pid); err == nil {
			return pid
		}
	}
	w.Fatal("no group waits")
	return 0
}

// TestDeathWithAKey: a process dies while its group is stored, or after it. If the process
// dies before the commit, neither key nor reservation is stored; after the commit both are.
func TestDeathWithAKey(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	c := under("k", tpl, 7, 1)
	other, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = other.Rollback(context.Background()) }() // the pool cannot be closed before
	_, err = other.Exec(t.Context(), `insert into idempotency_keys (actor, key, request_hash, locked_until) values ('user:7', 'k', '', 'infinity')`)
	w.Must(err)
	dies := make(chan error)
	go func() {
		_, err := w.Reservations.Reserve(context.Background(), c)
		dies <- err
	}()
	// All other parts of the statement are done when it reaches the key.
	w.Exec(`select pg_terminate_backend($1)`, w.blocked())
	if err := <-dies; err == nil {
		t.Fatal("answered by a session that was ended")
	}
	w.Must(other.Rollback(t.Context()))
	if decision, slots := w.found("k", 7); decision != nil || slots != 0 {
		t.Fatalf("stored: %v, slots %d", decision, slots)
	}
	if d := w.reserve(c); !d.Applied || !d.Created {
		t.Fatalf("the repetition: %+v", d)
	}
	// The answer to a stored decision may be lost; the next process finds the decision.
	next := dropsdb.NewReservations(w.DB, postgres.Grouping{})
	t.Cleanup(next.Close)
	d, err := next.Reserve(t.Context(), c)
	w.Must(err)
	if decision, slots := w.found("k", 7); !d.Repeated || decision == nil || slots != 1 {
		t.Fatalf("after the commit: %+v, stored %v, slots %d", d, decision, slots)
	}
}

// TestAGroupThatIsBegunAgain: PostgreSQL fails the statement with a serialization failure
// after all its work is done. The second attempt stores everything once.
func TestAGroupThatIsBegunAgain(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Exec(`create sequence tries;
		create function fail_once() returns trigger language plpgsql as $$
		begin
			if nextval('tries') = 1 then raise exception 'once' using errcode = '40001'; end if;
			return null;
		end $$;
		create trigger fail_once after insert on idempotency_keys for each statement execute function fail_once()`)
	if d := w.reserve(under("k", tpl, 7, 5)); !d.Applied || !d.Created {
		t.Fatalf("%+v", d)
	}
	var rows pgtype.Array[int64]
	w.Must(w.SQL.QueryRow(t.Context(), `select array[(select count(*) from reservations where slots = 5), (select count(*) from idempotency_keys
		where found is not null), (select count(*) from outbox where topic = 'reservations.changed.v1'), (select last_value from tries)]`).Scan(&rows))
	if fmt.Sprint(rows.Elements) != "[1 1 1 2]" {
		t.Errorf("reservations, keys, events, tries: %v", rows.Elements)
	}
}
