package years

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// A measurement returns how many milliseconds something takes.
type measurement struct {
	name string
	of   func(*side, context.Context) (float64, error)
}

var measurements = []measurement{
	{"housekeeping, nothing to do, ms", (*side).clean},
	{"counts and recounts, ms", (*side).counts},
	{"worker at rest, ms/s of PostgreSQL", (*side).atRest},
	{"a page of the console, ms", (*side).look},
	{"publishing a drop, ms", (*side).publish},
	{"firing a slot, ms", (*side).fire},
	{"a thousand claims, ms", (*side).claim},
}

// side is one of the databases.
type side struct {
	bench
	*stack.Stack
	n       rows
	claims  *couponsdb.Claims
	web     *stack.Process
	visitor *stack.Visitor
	next    atomic.Int64 // number of the next claiming user
}

const (
	email    = "admin@bench.example"
	password = "only this benchmark signs in"
)

// open starts a console on the database and signs in.
func (b bench) open(ctx context.Context, s *stack.Stack, n rows) (*side, error) {
	d := &side{bench: b, Stack: s, n: n, claims: couponsdb.NewClaims(s.DB, postgres.Grouping{})}
	var err error
	d.web, err = s.StartBuilt(ctx, b.bin, "web", "AUTH_JWT_SECRET=a secret that only this benchmark knows", "ADMIN_EMAIL="+email,
		"ADMIN_PASSWORD="+password, "CONSOLE_SECOND_FACTOR=optional")
	if err == nil {
		d.visitor, err = stack.SignIn(ctx, "http://"+d.web.Addr, email, password)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *side) close() {
	d.claims.Close()
	if d.web != nil {
		d.web.Stop()
	}
}

// timed returns how many milliseconds do takes.
func timed(do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return float64(time.Since(began).Microseconds()) / 1000, err
}

// clean measures a cleaning that has nothing to do.
func (d *side) clean(ctx context.Context) (float64, error) {
	house := workdb.NewHousekeeping(d.DB)
	for { // what became due meanwhile
		if n, err := house.Clean(ctx, keep, 0); err != nil || n < 100 {
			break
		}
	}
	return timed(func() error { _, err := house.Clean(ctx, keep, 0); return err })
}

// counts measures what one worker counts for all every half a minute, and what is due to be
// counted again every ten minutes.
func (d *side) counts(ctx context.Context) (float64, error) {
	tallies, counters := couponsdb.NewCouponTallies(d.DB), dropsdb.NewCounters(d.DB)
	return timed(func() error {
		_, err1 := tallies.Impossible(ctx, 20)
		_, err2 := tallies.SalesImpossible(ctx, 20)
		_, err3 := counters.Impossible(ctx, 20)
		_, err4 := couponsdb.NewLedgers(d.DB).Selling(ctx, time.Hour, 100, 10_000)
		_, err5 := tallies.ToRecount(ctx, 1000)
		_, err6 := tallies.SalesToRecount(ctx, 1000)
		_, err7 := counters.ToRecount(ctx, time.Hour, 1000)
		return errors.Join(err1, err2, err3, err4, err5, err6, err7)
	})
}

// settle is how long a worker runs before it is measured.
const settle = 15 * time.Second

// atRest measures the processor time of PostgreSQL, in milliseconds a second, while a worker with
// all roles has nothing to do.
func (d *side) atRest(ctx context.Context) (float64, error) {
	client, err := d.RedisClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.FlushAll(ctx).Err(); err != nil { // what the other database's worker left
		return 0, err
	}
	worker, err := d.StartBuilt(ctx, d.bin, "worker")
	if err != nil {
		return 0, err
	}
	defer worker.Stop()
	if err := stack.Pause(ctx, settle); err != nil {
		return 0, err
	}
	before, err := d.PostgresCPU(ctx)
	if err != nil {
		return 0, err
	}
	if err := stack.Pause(ctx, d.rest); err != nil {
		return 0, err
	}
	after, err := d.PostgresCPU(ctx)
	return float64((after - before).Microseconds()) / 1000 / d.rest.Seconds(), err
}

// look returns how long a page of the console takes: lists, the first and the last drop with
// their reports, balances and coupons, and pages of users.
func (d *side) look(ctx context.Context) (float64, error) {
	paths := []string{"/", "/templates", "/templates?q=number+7", "/results", "/coupons/locks", "/deliveries", "/users", "/campaigns", "/jobs", "/forecast", "/audit", "/housekeeping"}
	for _, order := range []string{"asc", "desc"} {
		var id int64
		if err := d.SQL.QueryRow(ctx, `select id from templates where state = 'closed' order by opens_at `+order+`, id limit 1`).Scan(&id); err != nil {
			return 0, err
		}
		for _, path := range []string{"/templates/%d", "/templates/%d/report", "/templates/%d/balance", "/templates/%d/cockpit", "/coupons?by=template&q=%d", "/deliveries?template=%d"} {
			paths = append(paths, fmt.Sprintf(path, id))
		}
	}
	took, err := timed(func() error {
		for _, path := range paths {
			if err := d.visitor.Read(ctx, path); err != nil {
				return err
			}
		}
		return nil
	})
	return took / float64(len(paths)), err
}

// publish returns how long it takes to make and publish a drop.
func (d *side) publish(ctx context.Context) (float64, error) {
	took, err := timed(func() error {
		for range d.drops {
			if _, err := d.Drop(ctx, 100*24*time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	return took / float64(d.drops), err
}

// unread is a queue that no worker reads.
type unread struct{}

func (unread) Enqueue(context.Context, ...task.Task) error { return nil }
func (unread) Remove(context.Context, ...task.Task) error  { return nil }

// fire returns how long it takes until the reservations of a drop are cut into stored batches.
func (d *side) fire(ctx context.Context) (float64, error) {
	t, err := d.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	if err := d.Reserve(ctx, t.ID, d.due, stack.Bit(delivery.App)); err != nil {
		return 0, err
	}
	var slot int64
	if err := d.SQL.QueryRow(ctx, `update slots set due_at = now() where template_id = $1 and slot = 1 and state = 'waiting' returning id`, t.ID).Scan(&slot); err != nil {
		return 0, err
	}
	timers := &reminder.Timers{Store: dropsdb.NewSlots(d.DB, deliverydb.NewBatches(d.DB)), Queue: unread{}, Now: time.Now, LeaseFor: time.Minute, WatchEvery: time.Minute}
	took, err := timed(func() error { return timers.Fire(ctx, slot) })
	if err != nil {
		return 0, err
	}
	_, err = d.SQL.Exec(ctx, `update batches set state = 'done' where template_id = $1`, t.ID) // nobody sends them
	return took, err
}

// claim returns how long a thousand claims of a new drop take.
func (d *side) claim(ctx context.Context) (float64, error) {
	t, err := d.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	if _, err := d.SQL.Exec(ctx, `update templates set stock = 1000000000, per_user_limit = 1000, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, t.ID); err != nil {
		return 0, err
	}
	w, err := scenario.Drive(d.callers, d.lasting, func(int64) error {
		r := claim.Request{ID: claim.NewID(rand.Uint64(), t.ID), TemplateID: t.ID, UserID: user.ID(d.next.Add(1)*7919%int64(d.n.users) + 1), Origin: claim.ByTap}
		r.Key = claim.TapKey(r.UserID, fmt.Sprint(r.ID))
		_, err := d.claims.Claim(ctx, r)
		return err
	})
	return 1_000_000 / w.PerSecond, err
}
