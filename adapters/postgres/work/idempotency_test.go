package work_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	workdb "dropbell/adapters/postgres/work"
)

func request(key, hash string) workdb.IdempotencyRequest {
	return workdb.IdempotencyRequest{Actor: "user:7", Key: key, Hash: []byte(hash)}
}

func TestIdempotencyKey(t *testing.T) {
	w := newFixture(t)
	s := workdb.NewIdempotency(w.DB)
	t.Cleanup(s.Close)
	begin := func(key, hash string) workdb.Recorded {
		t.Helper()
		r, err := s.Begin(t.Context(), request(key, hash), time.Minute)
		w.Must(err)
		return r
	}
	if r := begin("k", "a"); r.Answered || r.Busy || r.Conflict || r.Again {
		t.Fatalf("a new key: %+v", r)
	}
	if r := begin("k", "a"); !r.Busy {
		t.Fatalf("while the first runs: %+v", r)
	}
	if r := begin("k", "b"); !r.Conflict {
		t.Fatalf("another request: %+v", r)
	}
	if r, err := s.Begin(t.Context(), workdb.IdempotencyRequest{Actor: "user:8", Key: "k", Hash: []byte("b")}, time.Minute); err != nil || r.Conflict || r.Busy {
		t.Fatalf("somebody else's: %+v %v", r, err)
	}
	answer := workdb.Recorded{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte{0, 1, 255}}
	w.Must(s.Finish(t.Context(), request("k", "a"), answer))
	if err := s.Finish(t.Context(), request("k", "a"), workdb.Recorded{Status: 500}); !errors.Is(err, workdb.ErrAttemptLost) {
		t.Fatalf("a second answer: %v", err)
	}
	if r := begin("k", "a"); !r.Answered || r.Status != 201 || string(r.Body) != "\x00\x01\xff" || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("answered: %+v", r)
	}
	if r := begin("k", "b"); !r.Conflict {
		t.Fatalf("another request after the answer: %+v", r)
	}
}

func TestCrashedAttempt(t *testing.T) {
	w := newFixture(t)
	s := workdb.NewIdempotency(w.DB)
	t.Cleanup(s.Close)
	_, err := s.Begin(t.Context(), request("k", "a"), time.Minute)
	w.Must(err)
	w.Exec(`update idempotency_keys set locked_until = now() - interval '1 second'`)
	if r, err := s.Begin(t.Context(), request("k", "b"), time.Minute); err != nil || !r.Conflict {
		t.Fatalf("another request must not take over: %+v %v", r, err)
	}
	second := request("k", "a")
	r, err := s.Begin(t.Context(), second, time.Minute)
	if err != nil || !r.Again || r.Attempt == 0 {
		t.Fatalf("after a crash: %+v %v", r, err)
	}
	second.Attempt = r.Attempt
	if r, err := s.Begin(t.Context(), request("k", "a"), time.Minute); err != nil || !r.Busy {
		t.Fatalf("while the second attempt runs: %+v %v", r, err)
	}
	w.Must(s.Fail(t.Context(), second))
	if r, err := s.Begin(t.Context(), request("k", "a"), time.Minute); err != nil || !r.Again {
		t.Fatalf("after a failure: %+v %v", r, err)
	}
	// A day later the key is free for anything.
	w.Exec(`update idempotency_keys set created_at = now() - interval '25 hours'`)
	if r, err := s.Begin(t.Context(), request("k", "c"), time.Minute); err != nil || r.Again || r.Conflict || r.Busy || r.Answered {
		t.Fatalf("after its life: %+v %v", r, err)
	}
}

// TestAnAttemptThoughtDead: an attempt that was silent for too long can neither answer nor end
// nor renew a key that another attempt has taken over.
func TestAnAttemptThoughtDead(t *testing.T) {
	w := newFixture(t)
	s := workdb.NewIdempotency(w.DB)
	t.Cleanup(s.Close)
	begin := func() workdb.IdempotencyRequest {
		t.Helper()
		q := request("k", "a")
		r, err := s.Begin(t.Context(), q, time.Minute)
		w.Must(err)
		if r.Busy || r.Answered || r.Conflict {
			t.Fatalf("not let through: %+v", r)
		}
		q.Attempt = r.Attempt
		return q
	}
	busy := func(when string) {
		t.Helper()
		if r, err := s.Begin(t.Context(), request("k", "a"), time.Minute); err != nil || !r.Busy {
			t.Fatalf("%s: %+v %v", when, r, err)
		}
	}
	first := begin()
	w.Exec(`update idempotency_keys set locked_until = clock_timestamp() - interval '1 second'`)
	w.Must(s.Renew(t.Context(), first, time.Minute)) // late, but not taken over
	busy("renewed")
	w.Exec(`update idempotency_keys set locked_until = clock_timestamp() - interval '1 second'`)
	second := begin()
	for what, err := range map[string]error{
		"renewal": s.Renew(t.Context(), first, time.Hour),
		"failure": s.Fail(t.Context(), first),
		"answer":  s.Finish(t.Context(), first, workdb.Recorded{Status: 409}),
	} {
		if !errors.Is(err, workdb.ErrAttemptLost) {
			t.Errorf("%s of the first: %v", what, err)
		}
	}
	busy("the second goes on")
	w.Must(s.Fail(t.Context(), second))
	if err := s.Renew(t.Context(), second, time.Hour); !errors.Is(err, workdb.ErrAttemptLost) {
		t.Errorf("renewal after the end: %v", err)
	}
	third := begin()
	w.Must(s.Finish(t.Context(), third, workdb.Recorded{Status: 201}))
	if r, err := s.Begin(t.Context(), request("k", "a"), time.Minute); err != nil || !r.Answered || r.Status != 201 {
		t.Fatalf("the third's answer: %+v %v", r, err)
	}
}

// Of many concurrent attempts exactly one is executed, also when the first attempt has crashed.
func TestIdempotencyKeyRace(t *testing.T) {
	w := newFixture(t)
	s := workdb.NewIdempotency(w.DB)
	t.Cleanup(s.Close)
	for round := range 3 {
		var taken atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r, err := s.Begin(t.Context(), request("k", "a"), time.Minute)
				if err != nil {
					t.Error(err)
				}
				if !r.Busy && !r.Conflict && !r.Answered {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		if taken.Load() != 1 {
			t.Fatalf("round %d: %d requests were let through", round, taken.Load())
		}
		w.Exec(`update idempotency_keys set locked_until = now() - interval '1 second'`)
	}
}
