package coupons_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/worker/program"
)

// TestAWorkerKeepsTheGate runs a whole worker. Publishing builds the gate, accepted claims are
// written, and an emptied Redis is filled again, without any call of the test.
func TestAWorkerKeepsTheGate(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 1) // looks on; its keepers and writers do nothing
	env := map[string]string{"DATABASE_URL": r.sql.Config().ConnString(), "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- program.Run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	drop := r.published(5, 1)
	for by := int64(1); by <= 5; by++ {
		if by == 3 {
			r.settled(drop.ID)
			r.must(r.client.FlushAll(t.Context()).Err())
		}
		r.eventually("the claim is accepted", func() error {
			_, err := r.Claim(t.Context(), claimtest.Tap(drop, userID(by), "k"))
			if err != nil && fault.KindOf(err) != fault.Unavailable && !errors.Is(err, claim.ErrNotStarted) {
				t.Fatal(err)
			}
			return err
		})
	}
	claimtest.Holds(t, r, drop.ID, 5, 1)
	plan, err := r.store.Plan(t.Context(), drop.ID)
	if err != nil || plan.Epoch < 2 || plan.Reason != gate.ReasonLost {
		t.Errorf("%+v %v", plan, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
