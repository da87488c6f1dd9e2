package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// repeated fails unless again is the answer first once more.
func (r *fixture) repeated(first, again answer) {
	r.Helper()
	if again.Code != first.Code || again.Body.String() != first.Body.String() ||
		again.Header().Get("Content-Type") != first.Header().Get("Content-Type") || again.Header().Get(pipeline.ReplayedHeader) != "true" {
		r.Fatalf("%s: replayed %d %v %s, was %d %s", r.about, again.Code, again.Header(), again.Body, first.Code, first.Body)
	}
}

// TestRepetitionsOfReservations: a repetition gets the first answer to the byte, after any changes,
// although no answer is stored.
func TestRepetitionsOfReservations(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	lasting := sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "7", "exp": time.Now().Add(9 * time.Hour).Unix()})
	ask := func(key string, body any) answer {
		t.Helper()
		return r.call(as(lasting, "Idempotency-Key", key), "POST", "/reservations", body)
	}
	wishes := map[string]map[string]any{
		"created":  reserve(id, "app", 10, "email", 60),
		"added":    reserve(id, "app", 15),
		"reserved": reserve(id, "email", 55, "app", 15, "app", 10),
		"channel":  reserve(id, "sms", 10), // refused before the store is asked
		"minutes":  reserve(id, "app", 7),
		"nothing":  reserve("404", "app", 10),
	}
	answers := map[string]answer{}
	for _, name := range []string{"created", "added", "reserved", "channel", "minutes", "nothing"} {
		answers[name] = ask(name, wishes[name])
	}
	r.want(answers["created"], 201, "")
	r.want(answers["added"], 200, "")
	r.want(answers["reserved"], 409, "already_reserved")
	if n := r.number(`select count(*) from idempotency_keys where body is null and found is not null`); n != 3 {
		t.Fatalf("%d answers are not stored as text", n)
	}
	check := func(when string) {
		t.Helper()
		for name, wish := range wishes {
			r.about = when + ", " + name
			r.repeated(answers[name], ask(name, wish))
		}
	}
	check("at once")
	r.want(r.call(as(token(7)), "DELETE", "/reservations/"+id+"?channel=app&minutes=10", nil), 200, "")
	check("after a cancellation")
	r.exec(`update templates set name = 'Renamed'`)
	check("under another name")
	r.late.Store(int64(119 * time.Minute))
	check("after the instants")
	r.late.Store(int64(3 * time.Hour))
	check("after the opening")
	r.late.Store(0)
	r.exec(`update slots set state = 'cancelled'`)
	r.exec(`update templates set state = 'closed', ended_at = now()`)
	check("after the end")
	r.about = "in another process"
	second := r.second()
	r.repeated(answers["created"], second.call(as(token(7), "Idempotency-Key", "created"), "POST", "/reservations", wishes["created"]))

	// The key is one for all ways and operations.
	r.about = ""
	for _, body := range []any{roundabout(wishes["created"]), wishes["added"], reserve(id, "app", 10), "{"} {
		a := r.call(as(token(7), "Idempotency-Key", "created"), "POST", "/reservations", body)
		if a.code() != "idempotency_conflict" && a.code() != "malformed_json" {
			t.Errorf("%v: %d %s", body, a.Code, a.Body)
		}
	}
	r.want(r.call(as(token(7), "Idempotency-Key", "created"), "POST", "/inbox/read", `{"through":"2026-01-01T00:00:00Z"}`), 422, "idempotency_conflict")
	r.want(r.call(as(token(7), "Idempotency-Key", "read"), "POST", "/inbox/read", `{"through":"2026-01-01T00:00:00Z"}`), 200, "")
	r.want(r.call(as(token(7), "Idempotency-Key", "read"), "POST", "/reservations", wishes["created"]), 422, "idempotency_conflict")
	r.about = "said to be JSON in another way"
	r.repeated(answers["created"], r.call(as(token(7), "Idempotency-Key", "created", "Content-Type", "application/json;charset=utf-8"), "POST", "/reservations", wishes["created"]))

	// It belongs to the caller: to key and user.
	r.about = ""
	id = r.drop(2 * time.Hour)
	service := r.keys[staff.ScopeActAsUser]
	for _, who := range []string{"7", "8"} {
		r.want(r.call(as(service, "X-User-ID", who, "Idempotency-Key", "created"), "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	}
	// A day later it is free for anything.
	r.exec(`update idempotency_keys set created_at = now() - interval '25 hours' where key = 'created'`)
	r.want(ask("created", reserve(id, "app", 20)), 200, "")
	again := ask("created", reserve(id, "app", 20))
	if again.Code != 200 || again.Header().Get(pipeline.ReplayedHeader) != "true" {
		t.Errorf("after a life of the key: %d %s", again.Code, again.Body)
	}
}

// TestReservationsAtOnceWithOneKey: while the first request is being stored, its repetition is
// answered that it is in progress, and another request with the key that the key is taken.
func TestReservationsAtOnceWithOneKey(t *testing.T) {
	r, h := newHeld(t)
	id, who := r.drop(2*time.Hour), as(token(7), "Idempotency-Key", "k")
	first := make(chan answer, 1)
	go func() { first <- r.call(who, "POST", "/reservations", reserve(id, "app", 10)) }()
	<-h.begun
	busy := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 409, "idempotency_in_progress")
	if busy.Header().Get("Retry-After") == "" {
		t.Error("nothing says when to come back")
	}
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 15)), 422, "idempotency_conflict")
	r.want(r.call(as(token(8), "Idempotency-Key", "k"), "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	// Another process may decide it first; then that is the answer to both.
	second := r.second()
	decided := r.want(second.call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	close(h.goOn)
	r.repeated(decided, <-first)
	r.repeated(decided, r.call(who, "POST", "/reservations", reserve(id, "app", 10)))
}

// lossy carries reservations out and loses the answer.
type lossy struct {
	reminder.Store
	lose atomic.Bool
}

func (s *lossy) Reserve(ctx context.Context, c reminder.Change) (reminder.Decision, error) {
	d, err := s.Store.Reserve(ctx, c)
	if s.lose.Load() {
		return reminder.Decision{}, fault.ErrOutcomeUnknown
	}
	return d, err
}

// TestALostAnswerToAReservation: the process dies, or gives up, after the reservation was stored.
// The repetition gets the lost answer, as for a new reservation.
func TestALostAnswerToAReservation(t *testing.T) {
	l := &lossy{}
	r := newFixture(t, func(d *api.Deps) {
		l.Store = d.Drops.Reminders.Store
		d.Drops.Reminders.Store = l
	})
	id, who := r.drop(2*time.Hour), as(token(7), "Idempotency-Key", "k")
	l.lose.Store(true)
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 503, "overloaded")
	for range 2 {
		a := r.want(r.second().call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
		if a.Header().Get(pipeline.ReplayedHeader) != "true" || a.at("slots") != "2" {
			t.Errorf("%v %s", a.Header(), a.Body)
		}
	}
	// Nothing was stored before the store was asked.
	r.about = "a store that is away"
	away := &sometimes{Store: l.Store}
	away.err.Store(true)
	l.lose.Store(false)
	l.Store = away
	who = as(token(8), "Idempotency-Key", "k")
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 503, "overloaded")
	if n := r.number(`select count(*) from idempotency_keys where actor = 'user:8'`); n != 0 {
		t.Errorf("%d keys", n)
	}
	away.err.Store(false)
	r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
}

// TestAnAttemptThatDiedIsTakenOver: an attempt of the general way has died, with or without its
// effect, and a repetition takes over.
func TestAnAttemptThatDiedIsTakenOver(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	for user, effect := range map[int]bool{7: true, 8: false} {
		r.about = fmt.Sprint("with its effect: ", effect)
		who := as(token(user), "Idempotency-Key", "k")
		r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 201, "")
		r.exec(`update idempotency_keys set known = null, found = null, locked_until = clock_timestamp() + interval '1 hour',
			created_at = created_at - interval '1 second' where actor = $1`, fmt.Sprint("user:", user))
		if !effect {
			r.exec(`delete from reservations where user_id = $1`, user)
		}
		r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 409, "idempotency_in_progress")
		r.exec(`update idempotency_keys set locked_until = clock_timestamp() where actor = $1`, fmt.Sprint("user:", user))
		status := map[bool]int{true: 200, false: 201}[effect]
		a := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), status, "")
		r.repeated(a, r.call(who, "POST", "/reservations", reserve(id, "app", 10)))
	}
}

// TestRefusalsQuoteTheFirstRequest: the repetition of a refusal names the id of the refused
// request, like the first answer.
func TestRefusalsQuoteTheFirstRequest(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(id, "app", 10)), 201, "")
	who := as(token(7), "Idempotency-Key", "k", "X-Request-ID", "the-first")
	first := r.want(r.call(who, "POST", "/reservations", reserve(id, "app", 10)), 409, "already_reserved")
	who.Set("X-Request-ID", "the-second")
	again := r.call(who, "POST", "/reservations", reserve(id, "app", 10))
	r.repeated(first, again)
	if s, _ := again.at("instance").(string); !strings.HasSuffix(s, ":the-first") || again.Header().Get("X-Request-ID") != "the-second" {
		t.Errorf("%s in an answer to %s", s, again.Header().Get("X-Request-ID"))
	}
}
