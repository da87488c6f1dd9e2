package program

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/redis"
)

// TestAWorkerThatFailsLeavesTheRelay: a worker that fails leaves the relay to another worker,
// even if it reaches Redis. So does a worker that ends.
func TestAWorkerThatFailsLeavesTheRelay(t *testing.T) {
	p, sql := assembled(t)
	other := redis.NewLeader(p.Redis, "relay", "another worker")
	leads := func(want bool) func() error {
		return func() error {
			lasting := time.Hour
			if !want {
				lasting = time.Millisecond
				// A worker without events to relay does not ask for the lead.
				if _, err := sql.Exec(t.Context(), `insert into outbox (topic, payload) values ('test', '{}')`); err != nil {
					return err
				}
			}
			if leads, err := other.Lead(t.Context(), lasting); err != nil || leads != want {
				return errors.New("it does not")
			}
			return nil
		}
	}
	relay := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() {
			if err := p.relay.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return func() { cancel(); loop.Wait() }
	}
	stop := relay()
	poll(t, "the worker leads", leads(false))
	if _, err := sql.Exec(t.Context(), `alter table outbox rename to outbox_away`); err != nil {
		t.Fatal(err)
	}
	poll(t, "another one leads after the failure", leads(true))
	stop()
	if _, err := sql.Exec(t.Context(), `alter table outbox_away rename to outbox`); err != nil {
		t.Fatal(err)
	}
	other.Resign(t.Context())
	stop = relay()
	poll(t, "the worker leads again", leads(false))
	stop()
	if leads, err := other.Lead(t.Context(), time.Hour); err != nil || !leads {
		t.Error("the worker that ended keeps the lead")
	}
}
