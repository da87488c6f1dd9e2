package hook_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/domain/seal"
)

// fakeOutbound leases each delivery once and records its result.
type fakeOutbound struct {
	mu       sync.Mutex
	due      []hook.Due
	secrets  [][]byte
	recorded map[int64]hook.Answer
	released []int64
	// stopAfter makes Record say that the endpoint does not go on; 0 = it does.
	stopAfter int
	fail      error
}

func (f *fakeOutbound) Lease(_ context.Context, id int64, limit int, _ time.Duration) (hook.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(limit, len(f.due))
	l := hook.Lease{Endpoint: hook.Endpoint{ID: id, Input: hook.Input{URL: "u"}, Secrets: f.secrets}, Token: "t", Due: f.due[:n]}
	f.due = f.due[n:]
	return l, nil
}

func (f *fakeOutbound) Record(_ context.Context, _ hook.Lease, results []hook.Result, _ func(int, hook.Answer) time.Duration) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return false, f.fail
	}
	for _, r := range results {
		f.recorded[r.DeliveryID] = r.Answer
		if (r.Again == nil) != r.Answer.OK() {
			return false, errors.New("a failure without another attempt, or a success with one")
		}
	}
	return f.stopAfter == 0 || len(f.recorded) < f.stopAfter, nil
}

func (f *fakeOutbound) Release(_ context.Context, _ hook.Lease, ids []int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, ids...)
	return nil
}

// posts answers by function.
type posts func(id string, keys [][]byte) hook.Answer

func (p posts) Post(_ context.Context, _, id string, _ time.Time, _ []byte, keys [][]byte) hook.Answer {
	return p(id, keys)
}

func deliverer(t *testing.T, n int, answer posts) (*hook.Deliverer, *fakeOutbound) {
	t.Helper()
	box, err := seal.New(hook.SealPurpose, "a key with at least thirty-two bytes")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeOutbound{recorded: map[int64]hook.Answer{}, secrets: [][]byte{box.Seal("hook_endpoints:1", []byte("new")), box.Seal("hook_endpoints:1", []byte("old"))}}
	for i := range n {
		f.due = append(f.due, hook.Due{ID: int64(i + 1), EventID: int64(1000 + i)})
	}
	return &hook.Deliverer{Store: f, Poster: answer, Box: box, Now: time.Now}, f
}

// TestDrainSendsEverything, each once, with both secrets.
func TestDrainSendsEverything(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]int{}
	d, f := deliverer(t, 300, func(id string, keys [][]byte) hook.Answer {
		mu.Lock()
		defer mu.Unlock()
		if sent[id]++; len(keys) != 2 || string(keys[0]) != "new" || string(keys[1]) != "old" {
			t.Errorf("keys %q", keys)
		}
		return hook.Answer{Status: 200}
	})
	if more, err := d.Drain(t.Context(), 1); more || err != nil {
		t.Fatal(more, err)
	}
	if len(sent) != 300 || len(f.recorded) != 300 || len(f.released) != 0 || sent["msg_1000"] != 1 {
		t.Errorf("%d sent, %d recorded, %d released", len(sent), len(f.recorded), len(f.released))
	}
}

// TestDrainLeavesAFailingEndpointAlone: the results of the sent events are recorded,
// leased events that were not sent are given back, and no more are leased.
func TestDrainLeavesAFailingEndpointAlone(t *testing.T) {
	d, f := deliverer(t, 65, func(string, [][]byte) hook.Answer { return hook.Answer{Status: 500} })
	f.stopAfter = hook.Tolerated
	if more, err := d.Drain(t.Context(), 1); more || err != nil {
		t.Fatal(more, err)
	}
	if len(f.recorded) < hook.Tolerated || len(f.recorded)+len(f.released) != 64 || len(f.due) != 1 {
		t.Errorf("%d recorded, %d released of 64, %d of the next one left", len(f.recorded), len(f.released), len(f.due))
	}
	for id := range f.recorded {
		if slices.Contains(f.released, id) {
			t.Errorf("%d was sent and given back", id)
		}
	}
}

// TestDrainEndsWithTheWorker: requests under way are completed and recorded, and
// all other deliveries are given back.
func TestDrainEndsWithTheWorker(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	d, f := deliverer(t, 64, func(string, [][]byte) hook.Answer { stop(); return hook.Answer{Status: 200} })
	if _, err := d.Drain(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if len(f.recorded) == 0 || len(f.recorded)+len(f.released) != 64 {
		t.Errorf("%d recorded, %d released of 64", len(f.recorded), len(f.released))
	}
}

// TestDrainReportsWhatCannotBeRecorded: an error of Record is reported. Without a
// secret nothing is sent, and nothing is tried again before the lease has run out.
func TestDrainReportsWhatCannotBeRecorded(t *testing.T) {
	d, f := deliverer(t, 64, func(string, [][]byte) hook.Answer { return hook.Answer{Status: 200} })
	f.fail = errors.New("away")
	if _, err := d.Drain(t.Context(), 1); !errors.Is(err, f.fail) {
		t.Error(err)
	}
	d, f = deliverer(t, 3, func(string, [][]byte) hook.Answer { t.Error("sent"); return hook.Answer{} })
	d.Box, _ = seal.New(hook.SealPurpose, "another key with at least thirty-two bytes")
	if _, err := d.Drain(t.Context(), 1); !errors.Is(err, seal.ErrSealed) || len(f.released) != 0 {
		t.Errorf("%v, %d released", err, len(f.released))
	}
}
