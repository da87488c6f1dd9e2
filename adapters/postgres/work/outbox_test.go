package work_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func (w *fixture) fillOutbox(n int) {
	w.Helper()
	w.Exec(`insert into outbox (topic, payload) select 't', jsonb_build_object('n', n) from generate_series(1, $1) n`, n)
}

func waitingIn(t *testing.T, o workdb.Outbox) int64 {
	t.Helper()
	n, _, err := o.Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRelayForgetsWhatWasPublished(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	if n, err := o.Relay(t.Context(), 10, func(context.Context, []workdb.Announcement) error { return errors.New("called") }); n != 0 || err != nil {
		t.Errorf("nothing waits: %d %v", n, err)
	}
	w.fillOutbox(25)
	var got []workdb.Announcement
	for _, want := range []int{10, 10, 5, 0} {
		n, err := o.Relay(t.Context(), 10, func(_ context.Context, list []workdb.Announcement) error {
			got = append(got, list...)
			return nil
		})
		if n != want || err != nil {
			t.Errorf("%d %v, want %d", n, err, want)
		}
	}
	seen := map[string]bool{}
	for _, a := range got {
		if a.Topic != "t" || len(a.ID) != 36 || !json.Valid(a.Payload) {
			t.Errorf("%+v", a)
		}
		seen[a.ID] = true
	}
	if len(seen) != 25 || waitingIn(t, o) != 0 {
		t.Errorf("%d of 25 published, %d wait", len(seen), waitingIn(t, o))
	}
}

func TestRelayKeepsWhatCouldNotBePublished(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	w.fillOutbox(5)
	broken := errors.New("connection refused")
	var first, second []string
	if _, err := o.Relay(t.Context(), 10, func(_ context.Context, list []workdb.Announcement) error {
		for _, a := range list {
			first = append(first, a.ID)
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := o.Relay(ctx, 10, func(context.Context, []workdb.Announcement) error { cancel(); return nil }); err == nil {
		t.Error("the process was stopped before it could commit, and all is well")
	}
	if n, age, err := o.Backlog(t.Context()); n != 5 || age < 0 || err != nil {
		t.Errorf("%d wait for %v s, %v", n, age, err)
	}
	// The server may hold the events for a moment after their transaction was given up.
	for began := time.Now(); len(second) < 5 && time.Since(began) < localstack.Patience(t); runtime.Gosched() {
		_, err := o.Relay(t.Context(), 10, func(_ context.Context, list []workdb.Announcement) error {
			for _, a := range list {
				second = append(second, a.ID)
			}
			return nil
		})
		w.Must(err)
	}
	for _, id := range first {
		if !bytes.Contains([]byte(joined(second)), []byte(id)) {
			t.Errorf("%s was published once in vain and never again under its id", id)
		}
	}
}

func joined(ids []string) string { b, _ := json.Marshal(ids); return string(b) }

// A relay selects its events once, not once per event, also if PostgreSQL's statistics describe an
// empty outbox.
func TestRelayChoosesOnce(t *testing.T) {
	w := newFixture(t)
	for _, n := range []int{0, 3000} {
		w.fillOutbox(n)
		w.Exec(`analyze outbox`)
		rows, err := w.SQL.Query(t.Context(), workdb.ExplainRelay(), 100, []string{"summed"}, 0)
		w.Must(err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.Must(err)
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Join") || !strings.Contains(text, "InitPlan") {
			t.Errorf("planned as\n%s", text)
		}
	}
}

// TestSeveralRelays deliver every event, fail now and then, and leave none.
func TestSeveralRelays(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	const events, limit = 3000, 50
	w.fillOutbox(events)
	var mu sync.Mutex
	published := map[string]int{}
	failed := errors.New("now and then")
	for _, err := range pgtest.Together(4, func(int) error {
		for idle := 0; idle < 3; {
			n, err := o.Relay(context.Background(), limit, func(_ context.Context, list []workdb.Announcement) error {
				if len(list) > limit {
					t.Errorf("%d at once, at most %d", len(list), limit)
				}
				if rand.IntN(10) == 0 {
					return failed
				}
				mu.Lock()
				defer mu.Unlock()
				for _, a := range list {
					published[a.ID]++
				}
				return nil
			})
			if err != nil && !errors.Is(err, failed) {
				return err
			}
			if n == 0 {
				idle++
			}
		}
		return nil
	}) {
		w.Must(err)
	}
	// A relay that failed while the other relays had found no more events.
	_, err := o.Relay(t.Context(), events, func(_ context.Context, list []workdb.Announcement) error {
		for _, a := range list {
			published[a.ID]++
		}
		return nil
	})
	w.Must(err)
	if len(published) != events || waitingIn(t, o) != 0 {
		t.Errorf("%d of %d published, %d wait", len(published), events, waitingIn(t, o))
	}
	for id, n := range published {
		if n != 1 {
			t.Errorf("%s was published %d times although nothing died", id, n)
		}
	}
}

// TestARelayThatIsSlowHoldsUpNobody: other relays take the events that the slow relay has not
// taken.
func TestARelayThatIsSlowHoldsUpNobody(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	w.fillOutbox(20)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	slow, err := o.Relay(ctx, 10, func(ctx context.Context, _ []workdb.Announcement) error {
		quick, err := o.Relay(ctx, 100, func(context.Context, []workdb.Announcement) error { return nil })
		if quick != 10 {
			t.Errorf("the quick one took %d", quick)
		}
		return err
	})
	if slow != 10 || err != nil || waitingIn(t, o) != 0 {
		t.Errorf("the slow one took %d (%v)", slow, err)
	}
}

// TestWhatIsAnnouncedIsAnEvent: several payloads are built by SQL, and must have the fields of
// the domain's event structs.
func TestWhatIsAnnouncedIsAnEvent(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Reserve(tpl, 7, pgtest.Reminders(delivery.App, 5, 10)...)
	w.Reserve(tpl, 8, pgtest.Reminders(delivery.App, 5)...)
	w.Cancel(tpl, 7, pgtest.Reminders(delivery.App, 10)...)
	w.Must(w.Users.Upsert(t.Context(), []user.Change{{ID: 7, Name: new("Ann")}, {ID: 9, Name: new("Bob")}}, staff.Entry{}))
	sl, q := w.DueNow(tpl, 1), &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	w.Must(w.Deliverer(q, pgtest.NewSink(delivery.App, 100)).Drain(t.Context(), delivery.App))
	if _, err := w.Slots.FinishSlots(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Move(tpl, tpl.OpensAt.Add(time.Hour))
	w.Do(tpl, template.Cancelling)
	w.Do(w.Published(time.Hour), template.Closing)

	payloads := map[string]func() any{}
	for _, name := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		payloads[name] = func() any { return new(event.Template) }
	}
	payloads[event.ReservationsChanged] = func() any { return new(event.Reservations) }
	payloads[event.SlotFired] = func() any { return new(event.Slot) }
	payloads[event.SlotFinished] = func() any { return new(event.Slot) }
	payloads[event.BatchFinished] = func() any { return new(event.Batch) }
	payloads[event.UsersChanged] = func() any { return new(event.Users) }
	found := map[string][]any{}
	_, err := workdb.NewOutbox(w.DB).Relay(t.Context(), 1000, func(_ context.Context, list []workdb.Announcement) error {
		for _, a := range list {
			if payloads[a.Topic] == nil {
				t.Errorf("%s is not an event", a.Topic)
				continue
			}
			p := payloads[a.Topic]()
			strict := json.NewDecoder(bytes.NewReader(a.Payload))
			strict.DisallowUnknownFields()
			if err := strict.Decode(p); err != nil {
				t.Errorf("%s: %v in %s", a.Topic, err, a.Payload)
			}
			found[a.Topic] = append(found[a.Topic], p)
		}
		return nil
	})
	w.Must(err)
	for name := range payloads {
		if len(found[name]) == 0 {
			t.Errorf("%s was never announced", name)
		}
	}
	checkPayloads(t, tpl, found)
}

// checkPayloads checks one value of each kind. An unknown field would have failed before; a
// missing field fails here.
func checkPayloads(t *testing.T, tpl template.Template, found map[string][]any) {
	t.Helper()
	if f := found[event.SlotFired][0].(*event.Slot); f.SlotID == 0 || f.TemplateID != tpl.ID || f.Slot != 1 || f.DueAt.IsZero() || f.At.Before(f.DueAt) {
		t.Errorf("fired %+v", f)
	}
	if f := found[event.SlotFinished][0].(*event.Slot); f.SlotID == 0 || f.TemplateID != tpl.ID || f.Slot != 1 || f.At.IsZero() {
		t.Errorf("finished %+v", f)
	}
	if b := found[event.BatchFinished][0].(*event.Batch); b.BatchID == 0 || b.Kind != "reminder" || b.OwnerID == 0 || b.TemplateID != tpl.ID || b.Channel != 0 || b.Sent != 2 || b.At.IsZero() {
		t.Errorf("batch %+v", b)
	}
	if u := found[event.UsersChanged][0].(*event.Users); u.FromUser != 7 || u.ToUser != 9 {
		t.Errorf("users %+v", u)
	}
	var added, removed int64
	for _, p := range found[event.ReservationsChanged] {
		r := p.(*event.Reservations)
		if r.At.IsZero() {
			t.Errorf("reservations %+v", r)
		}
		for _, b := range r.Added {
			added += b.Bits * b.Users
		}
		for _, b := range r.Removed {
			removed += b.Bits * b.Users
		}
	}
	if added != 3+1 || removed != 2 {
		t.Errorf("added %d, removed %d", added, removed)
	}
}
