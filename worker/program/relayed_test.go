package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/worker/work"
	"dropbell/worker/workertest"
)

// A relayFixture is a worker whose events are relayed step by step, and a shop whose server
// subscribes to all events.
type relayFixture struct {
	*pgtest.Fixture
	p      *program
	outbox workdb.Outbox
	drop   template.Template
}

func newRelayFixture(t *testing.T, database, redisURL string) *relayFixture {
	t.Helper()
	f := &relayFixture{Fixture: pgtest.On(t, database)}
	f.p, _ = assembledOn(t, database, redisURL)
	f.outbox = f.p.Stores.Outbox
	f.outbox.Summed = slices.Sorted(maps.Keys(work.Sums))
	f.Reservations.Listed = func(context.Context, bool) bool { return true }
	return f
}

// begin adds the shop's endpoint and a drop with n coupons, of the users 1 to n.
func (f *relayFixture) begin(n int) {
	f.Helper()
	f.drop = f.Published(2 * time.Hour)
	f.Exec(`insert into hook_endpoints (shop_number, url, secret, created_by) select shop_number, 'https://shop.example/hooks', '', 'test' from templates where id = $1`, f.drop.ID)
	f.Exec(`update templates set issued = $2, stock = greatest(stock, $2) where id = $1`, f.drop.ID, n)
	f.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		select $1, n, n, 'claim', now(), now() + interval '1 day' from generate_series(1, $2) n`, f.drop.ID, n)
}

func (f *relayFixture) couponOf(user int) (id int64) {
	return f.Number(`select id from coupons where user_id = $1 order by id limit 1`, user)
}

// lock and use are steps of payment.
func (f *relayFixture) lock(user int) {
	f.Helper()
	s := &coupon.Service{Store: f.Payments, LockFor: time.Hour}
	_, err := s.Lock(f.Context(), "key:1", f.couponOf(user), coupon.Order{ID: fmt.Sprint("order-", user), Amount: 1_000_000})
	f.Must(err)
}

func (f *relayFixture) use(user int) {
	f.Helper()
	s := &coupon.Service{Store: f.Payments, LockFor: time.Hour}
	_, err := s.Confirm(f.Context(), "key:1", f.couponOf(user), fmt.Sprint("order-", user))
	f.Must(err)
}

// relayAll publishes what waits in the outbox.
func (f *relayFixture) relayAll() {
	f.Helper()
	for topic, sum := range work.Sums {
		f.Must(f.outbox.Merge(f.Context(), topic, 500, sum))
	}
	for n := 1; n > 0; {
		var err error
		n, err = f.outbox.Relay(f.Context(), 500, f.p.relay.Publish)
		f.Must(err)
	}
}

func (f *relayFixture) flush() { f.Helper(); f.Must(f.p.Redis.FlushAll(f.Context()).Err()) }

// handle runs the handlers of events until the test ends.
func (f *relayFixture) handle() {
	ctx, cancel := context.WithCancel(context.Background())
	var bus sync.WaitGroup
	bus.Go(func() { _ = f.p.bus.Run(ctx) })
	f.Cleanup(func() { cancel(); bus.Wait() })
	<-f.p.bus.Running()
}

// settle looks until every relayed event is known to be handled.
func (f *relayFixture) settle() {
	f.Helper()
	poll(f.T, "events are settled", func() error {
		if err := f.p.relay.Look(f.Context()); err != nil {
			return err
		}
		n, err := f.outbox.Unhandled(f.Context())
		if n > 0 {
			err = fmt.Errorf("%d are not", n)
		}
		return err
	})
}

func (f *relayFixture) again() float64 {
	n, _ := workertest.Value(f.T, f.p.Registry, "dropbell_events_republished_total")
	return n
}

// TestNoEventIsForgottenWithRedis: Redis is emptied several times between the relay of events
// and their handling. Every event becomes exactly one event for the shop's server, and the
// figures that event handlers keep equal the sums of the rows.
func TestNoEventIsForgottenWithRedis(t *testing.T) {
	const users = 12
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(users)
	for user := 1; user <= users; user++ {
		f.Reserve(f.drop, userID(int64(user)), pgtest.Reminders(delivery.App, 5)...)
		f.lock(user)
		if user%2 == 0 {
			f.use(user)
		}
		f.relayAll()
		if user%3 != 0 {
			f.flush()
		}
		if user%4 == 0 { // some losses are noticed, before the next one
			f.Must(f.p.relay.Look(t.Context()))
		}
	}
	f.handle()
	f.flush()
	f.settle()
	for kind, want := range map[string]int64{"coupon.locked": users, "coupon.used": users / 2, "reservation.made": users} {
		if n := f.Number(`select coalesce(sum(v.items), 0) from hook_deliveries d join hook_events v on v.id = d.event_id where v.type = $1`, kind); n != want {
			t.Errorf("%d of %d %s are sent to the endpoint", n, want, kind)
		}
	}
	tally, err := f.Tallies.Tally(t.Context(), f.drop.ID)
	if err != nil || tally.Locked != users/2 || tally.Used != users/2 || tally.Unused() != 0 {
		t.Errorf("%+v %v", tally, err)
	}
	if n := f.Number(`select sum(booked) from bookings where template_id = $1`, f.drop.ID); n != users {
		t.Errorf("%d of %d reservations are counted", n, users)
	}
	if n := f.Number(`select sum(delta) from booking_growth where template_id = $1`, f.drop.ID); n != users {
		t.Errorf("%d of %d reservations are in the growth", n, users)
	}
	// Handled events are not published again when Redis forgets them.
	before := f.again()
	f.flush()
	f.Must(f.p.relay.Look(t.Context()))
	if n := f.again() - before; n != 0 {
		t.Errorf("%v handled events were published again", n)
	}
}

// TestAReplicaThatLacksEvents: a replica that lacks the last events takes over, or Redis is
// restored from an older copy. The streams exist without the last events, and their marks are
// too old.
func TestAReplicaThatLacksEvents(t *testing.T) {
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(2)
	f.Must(f.p.relay.Look(t.Context())) // continues in this history of the database
	f.Must(f.p.relay.Look(t.Context())) // marks the streams
	f.lock(1)
	f.relayAll()
	f.Must(f.p.relay.Look(t.Context()))
	if n := f.again(); n != 0 {
		t.Fatalf("%v events were published again although Redis forgot none", n)
	}
	f.lock(2)
	f.relayAll()
	entries, err := f.p.Redis.XRevRangeN(t.Context(), "coupons.changed.v1", "+", "-", 1).Result()
	f.Must(err)
	f.Must(f.p.Redis.XDel(t.Context(), "coupons.changed.v1", entries[0].ID).Err())
	mark, err := f.p.Redis.Get(t.Context(), "events:mark:{coupons.changed.v1}").Result()
	f.Must(err)
	run, _, _ := strings.Cut(mark, " ")
	for name, old := range map[string]string{"another run": "another-run " + strings.TrimPrefix(mark, run+" "), "an older number": run + " 0"} {
		before := f.again()
		f.Must(f.p.Redis.Set(t.Context(), "events:mark:{coupons.changed.v1}", old, 0).Err())
		f.Must(f.p.relay.Look(t.Context()))
		if n := f.again() - before; n < 2 {
			t.Errorf("%s: %v events were published again", name, n)
		}
	}
	f.handle()
	f.settle()
	if n := f.Number(`select count(*) from hook_events where type = 'coupon.locked'`); n != 2 {
		t.Errorf("the shop is told of %d of 2 locks", n)
	}
}

// TestAPaidCouponLeavesNothingInRedis compares the keys of Redis before and after payments. The
// events about coupons are gone once every handler has acknowledged them, unless a shop is told
// of them: corrections after a loss of the database are made of the events.
func TestAPaidCouponLeavesNothingInRedis(t *testing.T) {
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(12)
	f.Exec(`delete from hook_endpoints`)
	pay := func(user int) {
		f.lock(user)
		f.use(user)
		f.relayAll()
	}
	entries := func() int64 {
		n, err := f.p.Redis.XLen(t.Context(), "coupons.changed.v1").Result()
		f.Must(err)
		return n
	}
	keys := func() []string {
		list, err := f.p.Redis.Keys(t.Context(), "*").Result()
		f.Must(err)
		slices.Sort(list)
		return list
	}
	f.handle()
	pay(1)
	f.settle()
	before := keys()
	for user := 2; user <= 11; user++ {
		pay(user)
	}
	f.lock(12) // and is never confirmed
	f.relayAll()
	if n := entries(); n < 21 { // events may be published more than once
		t.Errorf("%d events of 21 steps", n)
	}
	f.settle()
	poll(t, "events are removed", func() error {
		if err := f.p.relay.Look(t.Context()); err != nil {
			return err
		}
		if n := entries(); n != 0 {
			return fmt.Errorf("%d events are left", n)
		}
		return nil
	})
	if diff := cmp.Diff(before, keys()); diff != "" {
		t.Errorf("keys of Redis (-before +after):\n%s", diff)
	}
	if n := f.Number(`select used + locked from coupon_tallies where template_id = $1`, f.drop.ID); n != 12 {
		t.Errorf("%d of 12 coupons are counted", n)
	}
	told := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	told.begin(1)
	told.handle()
	told.lock(1)
	told.relayAll()
	told.settle()
	if n, err := told.p.Redis.XLen(t.Context(), "coupons.changed.v1").Result(); err != nil || n == 0 {
		t.Errorf("%d events are left for corrections, %v", n, err)
	}
}

// TestAStreamThatWasDeletedAlone, with its mark left behind, is noticed by its end.
func TestAStreamThatWasDeletedAlone(t *testing.T) {
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(1)
	f.Must(f.p.relay.Look(t.Context()))
	f.Must(f.p.relay.Look(t.Context()))
	f.lock(1)
	f.relayAll()
	f.Must(f.p.relay.Look(t.Context()))
	f.Must(f.p.Redis.Del(t.Context(), "coupons.changed.v1").Err())
	f.handle()
	f.settle()
	if n := f.Number(`select count(*) from hook_events where type = 'coupon.locked'`); n != 1 {
		t.Errorf("the shop is told of %d locks", n)
	}
}

// TestARelayUnderWayIsPublishedAgain: a relay has not ended when the loss of Redis is noticed.
// Its events are published again together with the earlier events.
func TestARelayUnderWayIsPublishedAgain(t *testing.T) {
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(1)
	f.Must(f.p.relay.Look(t.Context()))
	f.Must(f.p.relay.Look(t.Context()))
	f.lock(1)
	waiting := f.Number(`select count(*) from outbox`)
	tx, err := f.SQL.Begin(t.Context())
	f.Must(err)
	_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock_shared(hashtextextended('dropbell:relay', 0))`)
	f.Must(err)
	_, err = tx.Exec(t.Context(), `with gone as (delete from outbox returning *) insert into relayed_events (turn, event_id, topic, payload)
		select 0, event_id, topic, payload from gone`)
	f.Must(err)
	f.flush()
	if err := f.p.relay.Look(t.Context()); err == nil {
		t.Error("it was not waited for")
	}
	f.Must(tx.Commit(t.Context()))
	f.Must(f.p.relay.Look(t.Context()))
	if n := f.again(); n != float64(waiting) {
		t.Errorf("%v of %d events were published again", n, waiting)
	}
	f.handle()
	f.settle()
	if n := f.Number(`select count(*) from hook_events where type = 'coupon.locked'`); n != 1 {
		t.Errorf("the shop is told of %d locks", n)
	}
}

// TestRelayedEventsAreDropped: once all events of the older table are handled, that table is
// emptied and used again. A reader of the table delays this.
func TestRelayedEventsAreDropped(t *testing.T) {
	f := newRelayFixture(t, localstack.Database(t), localstack.RedisServer(t).URL())
	f.begin(3)
	f.handle()
	kept := func() int64 { return f.Number(`select count(*) from relayed_events`) }
	for user := 1; user <= 2; user++ {
		f.lock(user)
		f.relayAll()
		f.settle()
		f.Exec(`update event_relay set turned_at = now() - interval '1 hour'`)
		f.Must(f.p.relay.Look(t.Context()))
	}
	if n := kept(); n != 1 {
		t.Errorf("%d of 2 handled events are kept, want the last", n)
	}
	f.lock(3)
	f.relayAll()
	f.settle()
	f.Exec(`update event_relay set turned_at = now() - interval '1 hour'`)
	_, release := f.Hold(`select from relayed_events limit 1`)
	f.Must(f.p.relay.Look(t.Context()))
	if n := kept(); n != 2 {
		t.Errorf("%d events are kept beside a reader, want 2", n)
	}
	release()
	f.Must(f.p.relay.Look(t.Context()))
	if n := kept(); n != 1 {
		t.Errorf("%d events are kept after the reader, want 1", n)
	}
}

// TestAWorkerWithoutRedisDoesNotRelay: a worker that reaches PostgreSQL and not Redis leaves the
// relay to the other worker.
func TestAWorkerWithoutRedisDoesNotRelay(t *testing.T) {
	database, server := localstack.Database(t), localstack.RedisServer(t)
	f := newRelayFixture(t, database, server.URL())
	cut, _ := assembledOn(t, database, "redis://127.0.0.1:1")
	if leads, err := redis.NewLeader(cut.Redis, "relay", "cut off").Lead(t.Context(), time.Hour); leads || err == nil {
		t.Errorf("it leads: %t, %v", leads, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for _, p := range []*program{cut, f.p} {
		loops.Go(func() { _ = p.relay.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); loops.Wait() })
	f.begin(5)
	for user := 1; user <= 5; user++ {
		f.lock(user)
		poll(t, "the event is relayed", func() error {
			if n := f.Number(`select count(*) from outbox`); n > 0 {
				return fmt.Errorf("%d wait", n)
			}
			return nil
		})
	}
	if n, err := f.p.Redis.XLen(t.Context(), "coupons.changed.v1").Result(); n < 5 || err != nil {
		t.Errorf("%d of 5 events are on the bus, %v", n, err)
	}
}

// TestShopsAreToldWhatARestoredDatabaseLacks: events were sent to a shop's server. Then
// PostgreSQL goes back to an earlier state, and Redis does not. The shop is sent the current
// state of each object that the lost events are about.
func TestShopsAreToldWhatARestoredDatabaseLacks(t *testing.T) {
	url := localstack.RedisServer(t).URL()
	f := newRelayFixture(t, localstack.Database(t), url)
	f.begin(4)
	f.Must(f.p.relay.Look(t.Context()))
	f.Must(f.p.relay.Look(t.Context()))
	five := pgtest.Reminders(delivery.App, 5)
	f.Reserve(f.drop, 1, five...)
	f.Reserve(f.drop, 2, five...)
	f.lock(1)
	f.relayAll()
	backup := localstack.RestoredElsewhere(t, f.SQL.Config().ConnString())

	f.Cancel(f.drop, 2, five...)
	f.Reserve(f.drop, 3, five...)
	f.Reserve(f.drop, 4, five...)
	f.Cancel(f.drop, 4, five...) // as before
	f.use(1)
	f.lock(2)
	f.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) values ($1, 9, 9, 'claim', now(), now() + interval '1 day')`, f.drop.ID)
	gone := f.couponOf(9)
	f.Move(f.drop, f.drop.OpensAt.Add(time.Hour))
	draft := f.Published(3 * time.Hour)
	f.lock(9)
	for more := true; more; {
		var err error
		_, more, err = f.p.hookEvents.Issued(t.Context(), 100)
		f.Must(err)
	}
	f.relayAll()
	told := f.Number(`select last_value from hook_sequence`)

	now := newRelayFixture(t, backup, url)
	now.drop = f.drop
	if _, err := now.p.hookEvents.Handle(t.Context(), "0193b4b2-0000-7000-8000-000000000001", nil); err != nil {
		t.Error(err)
	}
	if _, _, err := now.p.hookEvents.Issued(t.Context(), 1); err == nil {
		t.Error("events are numbered as those that the database lacks")
	}
	now.Must(now.p.relay.Look(t.Context()))
	want := map[string]string{
		`reservation.made "user_id": "2"`: `"reason": "restored"`, `reservation.cancelled "user_id": "3"`: `"reason": "restored"`,
		`coupon.locked "user_id": "1"`: "order-1", `coupon.released "user_id": "2"`: `"state": "unused"`, `coupon.revoked "user_id": "9"`: fmt.Sprintf(`"coupon_id": "%d"`, gone),
		fmt.Sprintf(`drop.moved "template_id": "%d"`, f.drop.ID):    f.drop.OpensAt.UTC().Format(time.RFC3339),
		fmt.Sprintf(`drop.cancelled "template_id": "%d"`, draft.ID): `"reason": "restored"`,
	}
	rows, err := now.SQL.Query(t.Context(), `select type, payload::jsonb::text, sequence from hook_events where payload like '%restored%' order by id`)
	now.Must(err)
	for rows.Next() {
		var kind, payload string
		var sequence int64
		now.Must(rows.Scan(&kind, &payload, &sequence))
		known := false
		for about, part := range want {
			of, subject, _ := strings.Cut(about, " ")
			if of == kind && strings.Contains(payload, subject) && strings.Contains(payload, part) {
				known = true
				delete(want, about)
			}
		}
		if !known {
			t.Errorf("%s %s", kind, payload)
		}
		if sequence <= told+1_000_000 {
			t.Errorf("the number %d of %s is not behind those that shops know", sequence, payload)
		}
	}
	now.Must(rows.Err())
	for about := range want {
		t.Errorf("the shop is not told: %s", about)
	}
	n := now.Number(`select count(*) from hook_events`)
	now.Must(now.p.relay.Look(t.Context()))
	now.Must(now.p.relay.Look(t.Context()))
	if more := now.Number(`select count(*) from hook_events`); more != n {
		t.Errorf("%d corrections and then %d", n, more)
	}
	if _, _, err := now.p.hookEvents.Issued(t.Context(), 1); err != nil {
		t.Error(errors.Join(errors.New("events are still held back"), err))
	}
}

func userID(n int64) user.ID { return user.ID(n) }
