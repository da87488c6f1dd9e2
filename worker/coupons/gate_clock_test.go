package coupons_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/worker/commands"
	"dropbell/worker/coupons"
)

// opening is a drop that opens after so long, with its shards.
func (r *gateFixture) opening(after time.Duration) template.Template {
	r.Helper()
	return r.Open(10, 1, func(s *template.Spec) {
		s.OpensAt = s.OpensAt.Add(time.Minute + after)
		s.ClosesAt = s.OpensAt.Add(time.Hour)
	})
}

func (r *gateFixture) setShards(drop int64, fields ...any) {
	r.Helper()
	for shard := range r.shards {
		r.must(r.client.HSet(r.Context(), fmt.Sprintf("gate:{%d:%d}", drop, shard), fields...).Err())
	}
}

// TestClaimsBeforeTheOpeningAreRefusedWhenTheyAreWritten: the clock of Redis is 90 minutes
// ahead, so a shard accepts claims before the opening. The writers use the database's clock and
// refuse the claims: no coupon is issued, stock and counts are as before, and users and
// operators are told the reason.
func TestClaimsBeforeTheOpeningAreRefusedWhenTheyAreWritten(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.opening(time.Hour)
	early := 0
	r.writers[0].Early = func(id int64, claims int) {
		if id == drop.ID {
			early += claims
		}
	}
	r.setShards(drop.ID, "ahead", -(90 * time.Minute).Milliseconds())
	ids := r.accepted(drop.ID, 1, 2, 3)
	r.writeAll()
	for i, id := range ids {
		if c := r.outcome(userID(int64(i+1)), id); c.State != claim.Failed || c.Reason != claim.ErrNotStarted.Code {
			t.Errorf("user %d is told %+v", i+1, c)
		}
	}
	if early != 3 {
		t.Errorf("%d claims were reported as early, want 3", early)
	}
	var audited bytes.Buffer
	r.must(commands.Do(t.Context(), []string{"audit", fmt.Sprint(drop.ID)}, func(name string) string { return map[string]string{"DATABASE_URL": r.sql.Config().ConnString()}[name] }, &audited))
	if !strings.Contains(audited.String(), "3 claims were accepted before the opening") {
		t.Errorf("the audit says %s", audited.String())
	}
	told := 0
	r.keepers[0].Skewed = func(id int64, by time.Duration) {
		if told++; id != drop.ID || by < time.Hour {
			t.Errorf("gate %d is told to be off by %v", id, by)
		}
	}
	r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
	if l, err := r.ledger(drop.ID); err != nil || told != 1 || l != (gate.Ledger{Total: 10, OnSale: 10}) {
		t.Errorf("%+v %v, told %d times", l, err, told)
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "again")); !errors.Is(err, claim.ErrNotStarted) {
		t.Errorf("once the clock is right: %v", err)
	}
	r.exec(`update templates set opens_at = $2, version = version + 1 where id = $1`, drop.ID, time.Now().Add(-time.Minute).Truncate(time.Second))
	r.tend(drop.ID)
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "again")); err != nil {
		t.Errorf("a user who was refused claims after the opening: %v", err)
	}
}

// TestAnotherServerDoesNotOpenTheDrop: a replica takes over before the opening, and its clock is
// five seconds ahead of the former primary's clock. No claim is accepted or refused by this
// clock before a keeper has compared it with the database's clock.
func TestAnotherServerDoesNotOpenTheDrop(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	hasty := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Patience: 30 * time.Millisecond})
	for name, drop := range map[string]struct {
		template.Template
		ahead time.Duration
		want  error
	}{
		"ahead, before the opening": {r.opening(20 * time.Second), -30 * time.Second, claim.ErrNotStarted},
		"behind, after the opening": {r.opening(-5 * time.Second), 30 * time.Second, nil},
	} {
		ask := func() error {
			_, err := hasty.Claim(t.Context(), claimtest.Tap(drop.Template, 1, "k"))
			return err
		}
		// The shard was compared on a server whose clock was drop.ahead ahead of this server's
		// clock.
		r.setShards(drop.ID, "ahead", drop.ahead.Milliseconds(), "server", "f00d")
		if err := ask(); !errors.Is(err, claim.ErrOverloaded) {
			t.Errorf("%s, by the clock of the other server: %v", name, err)
		}
		r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
		if err := ask(); !errors.Is(err, drop.want) {
			t.Errorf("%s, once the clocks were compared: %v", name, err)
		}
	}
}

// TestAHaltedRedisDoesNotMoveTheOpening: Redis halts while a keeper sets the terms. The drop
// opens at its opening time, not later by the length of the halt.
func TestAHaltedRedisDoesNotMoveTheOpening(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(10, 1, nil)
	for range 3 {
		r.must(r.client.Do(t.Context(), "CLIENT", "PAUSE", 600, "ALL").Err())
		r.must(r.keepers[0].ApplyNow(t.Context(), drop.ID))
		for shard := range r.shards {
			ahead, err := r.client.HGet(t.Context(), fmt.Sprintf("gate:{%d:%d}", drop.ID, shard), "ahead").Int64()
			if err != nil || max(ahead, -ahead) > 250 {
				t.Errorf("shard %d: the opening is %d ms off, %v", shard, ahead, err)
			}
		}
	}
}

// TestAnotherRedisHasAllGatesLookedAt: another process of Redis answers than before. The worker
// checks all its gates at once and compares the clocks, also for a gate whose opening is hours
// away.
func TestAnotherRedisHasAllGatesLookedAt(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 2)
	drop := r.opening(9 * time.Hour)
	g := coupons.WatchRedis(redisgate.NewMembers(r.client, "w"), r.keepers[0])
	r.must(g.Beat(t.Context()))
	r.must(g.Beat(t.Context()))
	if id, ok := g.Missing(); ok {
		t.Errorf("gate %d is looked at although nothing has changed", id)
	}
	r.must(server.Kill())
	r.must(server.Restart(context.Background(), false))
	r.eventually("Redis answers", func() error { return g.Beat(t.Context()) })
	if id, ok := g.Missing(); !ok || id != drop.ID {
		t.Fatalf("gate %d is looked at, %v", id, ok)
	}
	r.must(r.keepers[0].Rescue(t.Context(), drop.ID))
	clocks, err := redisgate.NewShards(r.client).Clocks(t.Context(), drop.ID, []int{1})
	r.must(err)
	if known := r.client.HGet(t.Context(), fmt.Sprintf("gate:{%d:1}", drop.ID), "server").Val(); known == "" || known != clocks[0].Server {
		t.Errorf("the clock is that of %q, the server is %q", known, clocks[0].Server)
	}
}
