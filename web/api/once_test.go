package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/web/api"
)

func testIdempotencyReplay(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	who := as(token(7), "Idempotency-Key", "k-1")
	first := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	again := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	if again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" || first.Header().Get("Idempotency-Replayed") != "" {
		t.Fatalf("replayed %v %s, was %s", again.Header(), again.Body, first.Body)
	}
	if again.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Fatalf("replayed as %s", again.Header().Get("Content-Type"))
	}
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 15)), 422, "idempotency_conflict")
	r.want(r.call(who, "POST", "/inbox/read", reserve(id, "app", 10)), 422, "idempotency_conflict")
	// The same key of another client is another key.
	r.want(r.call(as(token(8), "Idempotency-Key", "k-1"), "POST", "/reservations", reserve(id, "app", 15)), 201, "")
	key := r.keys[staff.ScopeActAsUser]
	r.want(r.call(as(key, "X-User-ID", "9", "Idempotency-Key", "k-1"), "POST", "/reservations", reserve(id, "app", 15)), 201, "")
	r.want(r.call(as(key, "X-User-ID", "10", "Idempotency-Key", "k-1"), "POST", "/reservations", reserve(id, "app", 15)), 201, "")

	// A refusal is an answer as well.
	who = as(token(7), "Idempotency-Key", "k-2")
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 409, "already_reserved")
	r.want(r.call(as(token(7)), "DELETE", "/reservations/"+id, nil), 200, "")
	a := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 409, "already_reserved")
	if a.Header().Get("Idempotency-Replayed") != "true" {
		t.Fatal("the refusal was not replayed")
	}
	for _, bad := range []string{strings.Repeat("k", 256), "a\tb", "schlüssel"} {
		r.about = bad
		r.want(r.call(as(token(7), "Idempotency-Key", bad), "POST", "/reservations", reserve(id, "app", 10)), 422, "invalid_request")
	}
	r.about = "without a key nothing is kept"
	n := r.number(`select count(*) from idempotency_keys`)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(id, "app", 20)), 201, "")
	if m := r.number(`select count(*) from idempotency_keys`); m != n {
		t.Fatalf("%d keys after a request without one, %d before", m, n)
	}
}

// Of many copies of a request at once, exactly one is carried out.
func TestIdempotencyRace(t *testing.T) {
	r := newFixture(t, nil)
	var created, busy, replayed atomic.Int64
	var all sync.WaitGroup
	ids := sync.Map{}
	body := wish(time.Hour)
	for range 30 {
		all.Go(func() {
			a := r.call(r.admin("Idempotency-Key", "same"), "POST", "/admin/templates", body)
			switch {
			case a.Code == 201 && a.Header().Get("Idempotency-Replayed") == "true":
				replayed.Add(1)
			case a.Code == 201:
				created.Add(1)
			case a.Code == 409 && a.code() == "idempotency_in_progress" && a.Header().Get("Retry-After") != "":
				busy.Add(1)
			default:
				t.Errorf("%d %s", a.Code, a.Body)
			}
			if a.Code == 201 {
				ids.Store(a.at("id"), true)
			}
		})
	}
	all.Wait()
	if created.Load() != 1 || r.number(`select count(*) from templates`) != 1 {
		t.Fatalf("carried out %d times, %d templates", created.Load(), r.number(`select count(*) from templates`))
	}
	if created.Load()+busy.Load()+replayed.Load() != 30 {
		t.Fatalf("%d + %d + %d answers", created.Load(), busy.Load(), replayed.Load())
	}
}

// lostAnswer fails to store the answer, like a process that dies after the change.
type lostAnswer struct {
	workdb.Idempotency
	forget atomic.Bool
}

func (f *lostAnswer) Finish(ctx context.Context, q workdb.IdempotencyRequest, a workdb.Recorded) error {
	if f.forget.Load() {
		return nil
	}
	return f.Idempotency.Finish(ctx, q, a)
}

// crash makes the lock of the attempt that never ended run out.
func (r *fixture) crash() {
	r.exec(`update idempotency_keys set locked_until = now() - interval '1 second', created_at = created_at - interval '1 second' where status is null`)
}

func TestRecoveryAfterCrash(t *testing.T) {
	store := &lostAnswer{}
	r := newFixture(t, func(d *api.Deps) {
		store.Idempotency = d.Idempotency.(workdb.Idempotency)
		d.Idempotency = store
	})
	store.forget.Store(true)
	first := r.want(r.call(r.admin("Idempotency-Key", "create"), "POST", "/admin/templates", wishAt), 201, "")
	id := first.json["id"].(string)
	r.want(r.call(r.admin("Idempotency-Key", "create"), "POST", "/admin/templates", wishAt), 409, "idempotency_in_progress")
	r.want(r.call(r.admin("Idempotency-Key", "publish"), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	me := as(token(7), "Idempotency-Key", "reserve")
	wish := roundabout(reserve(id, "app", 10, "email", 5))
	r.want(r.call(me, "POST", "/reservations", wish), 201, "")
	r.crash()
	store.forget.Store(false)

	again := r.want(r.call(r.admin("Idempotency-Key", "create"), "POST", "/admin/templates", wishAt), 201, "")
	if again.json["id"] != id || r.number(`select count(*) from templates`) != 1 {
		t.Fatalf("creating again made %s", again.Body)
	}
	a := r.want(r.call(r.admin("Idempotency-Key", "publish"), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	if a.at("state") != "scheduled" {
		t.Fatalf("publishing again: %s", a.Body)
	}
	a = r.want(r.call(me, "POST", "/reservations", wish), 200, "")
	if a.at("slots") != "4098" {
		t.Fatalf("reserving again: %s", a.Body)
	}
	if b := r.want(r.call(me, "POST", "/reservations", wish), 200, ""); b.Header().Get("Idempotency-Replayed") != "true" {
		t.Fatal("the recovered answer was not kept")
	}
	// A request refused for another reason stays refused.
	r.exec(`insert into idempotency_keys (actor, key, request_hash, locked_until, created_at)
		select actor, 'other', request_hash, now(), now() - interval '1 minute' from idempotency_keys where key = 'reserve'`)
	r.want(r.call(as(token(7), "Idempotency-Key", "other"), "POST", "/reservations", reserve(id, "app", 10, "app", 15)), 422, "idempotency_conflict")
	r.want(r.call(r.admin("Idempotency-Key", "p2"), "POST", "/admin/templates/"+id+"/publish", nil), 409, "invalid_transition")
}

// The work that a request began in the background is begun once, too.
func TestRecoveryOfWhatPeopleMake(t *testing.T) {
	store := &lostAnswer{}
	r := newFixture(t, func(d *api.Deps) {
		store.Idempotency = d.Idempotency.(workdb.Idempotency)
		d.Idempotency = store
	})
	segment := r.want(r.call(r.admin(), "POST", "/admin/segments", `{"name":"All","rule":{"all":[]}}`), 201, "").at("id").(string)
	r.deadOnes(r.drop(2*time.Hour), 3)
	for _, c := range []struct {
		path, body, table, id string
		status                int
	}{
		{"/admin/segments", `{"name":"Gold","rule":{"all":[]}}`, "segments", "id", 201},
		{"/admin/lists", `{"name":"Fair"}`, "segments", "id", 201},
		{"/admin/segments/" + segment + "/count", "", "jobs", "job_id", 202},
		{"/admin/dead-letters/replay", `{"filter":{"channel":"email"}}`, "dead_letter_jobs", "job.id", 202},
		{"/admin/dead-letters/discard", `{"filter":{"channel":"email"}}`, "dead_letter_jobs", "job.id", 202},
	} {
		rows := func() int64 { return r.number(`select count(*) from ` + c.table) }
		ask := func(key string) string {
			return r.want(r.call(r.admin("Idempotency-Key", key), "POST", c.path, c.body), c.status, "").at(c.id).(string)
		}
		before := rows()
		store.forget.Store(true)
		first := ask("k " + c.path)
		r.crash()
		store.forget.Store(false)
		if again := ask("k " + c.path); again != first || rows() != before+1 {
			t.Errorf("%s: %s after %s, %d rows more", c.path, again, first, rows()-before)
		}
		if other := ask("l " + c.path); other == first {
			t.Errorf("%s: another request is answered with %s", c.path, other)
		}
	}
}

// wishAt is one body for all attempts.
var wishAt = wish(2 * time.Hour)

// An answer that says "later" is not kept.
func TestIdempotencyAfterFailure(t *testing.T) {
	away := &sometimes{}
	r := newFixture(t, func(d *api.Deps) {
		away.Store = d.Drops.Reminders.Store
		d.Drops.Reminders.Store = away
	})
	id, who := r.drop(2*time.Hour), as(token(7), "Idempotency-Key", "k")
	wish := roundabout(reserve(id, "app", 10))
	away.err.Store(true)
	r.want(r.call(who, "POST", "/reservations", wish), 503, "overloaded")
	r.want(r.call(who, "POST", "/reservations", wish), 503, "overloaded")
	away.err.Store(false)
	r.want(r.call(who, "POST", "/reservations", wish), 201, "")
	away.err.Store(true)
	r.want(r.call(who, "POST", "/reservations", wish), 201, "")
}

type sometimes struct {
	reminder.Store
	err atomic.Bool
}

func (s *sometimes) Reserve(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	if s.err.Load() {
		return reminder.Decision{}, postgres.ErrUnavailable
	}
	return s.Store.Reserve(ctx, c)
}

// held makes the first reservation wait until it is told to go on.
type held struct {
	reminder.Store
	first atomic.Bool
	begun chan struct{}
	goOn  chan struct{}
}

func (s *held) Reserve(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	if s.first.CompareAndSwap(false, true) {
		close(s.begun)
		<-s.goOn
	}
	return s.Store.Reserve(ctx, c)
}

var eventually = localstack.Eventually

// roundabout writes a wish in a form that is carried out the general way.
func roundabout(wish map[string]any) string {
	b, err := json.Marshal(wish)
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(b), `"app"`, `"\u0061pp"`, 1)
}

func newHeld(t *testing.T) (*fixture, *held) {
	h := &held{begun: make(chan struct{}), goOn: make(chan struct{})}
	return newFixture(t, func(d *api.Deps) {
		h.Store = d.Drops.Reminders.Store
		d.Drops.Reminders.Store = h
	}), h
}

// TestALivingAttemptKeepsItsKey: a request that takes long is not taken for dead.
func TestALivingAttemptKeepsItsKey(t *testing.T) {
	r, h := newHeld(t)
	id, who := r.drop(2*time.Hour), as(token(7), "Idempotency-Key", "k")
	wish := roundabout(reserve(id, "app", 10))
	first := make(chan answer, 1)
	go func() { first <- r.call(who, "POST", "/reservations", wish) }()
	<-h.begun
	left := func() int64 {
		return r.number(`select extract(epoch from locked_until - created_at)::bigint from idempotency_keys where key = 'k'`)
	}
	if n := left(); n > 5 {
		t.Errorf("a dead process would keep the key for %d s", n)
	}
	eventually(t, "the lease is renewed", func() bool { return left() > 5 })
	r.want(r.call(who, "POST", "/reservations", wish), 409, "idempotency_in_progress")
	close(h.goOn)
	r.want(<-first, 201, "")
	if a := r.want(r.call(who, "POST", "/reservations", wish), 201, ""); a.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("the answer was not kept")
	}
}

// TestAnAttemptThoughtDeadIsNotBelieved: a paused process resumes after another process has carried
// out the repetition. The answer to the repetition stays the answer.
func TestAnAttemptThoughtDeadIsNotBelieved(t *testing.T) {
	r, h := newHeld(t)
	id, who := r.drop(2*time.Hour), as(token(7), "Idempotency-Key", "k")
	wish := roundabout(reserve(id, "app", 10))
	first := make(chan answer, 1)
	go func() { first <- r.call(who, "POST", "/reservations", wish) }()
	<-h.begun
	r.exec(`update idempotency_keys set locked_until = clock_timestamp() - interval '1 second'`)
	r.want(r.call(who, "POST", "/reservations", wish), 201, "")
	close(h.goOn)
	// It found the reminder reserved, which is no answer to its own request.
	r.want(<-first, 409, "idempotency_in_progress")
	if a := r.want(r.call(who, "POST", "/reservations", wish), 201, ""); a.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("the second attempt's answer was not kept")
	}
}
