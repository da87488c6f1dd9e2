package large

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// side is one of the databases.
type side struct {
	*bench
	*stack.Stack
	reservations *dropsdb.Reservations
	claims       *couponsdb.Claims
	web          *stack.Process
	visitor      *stack.Visitor
}

const (
	email    = "admin@bench.example"
	password = "only this benchmark signs in"
)

// open starts a console on the database and signs in.
func (b *bench) open(ctx context.Context, s *stack.Stack) (*side, error) {
	d := &side{bench: b, Stack: s, reservations: dropsdb.NewReservations(s.DB, postgres.Grouping{}), claims: couponsdb.NewClaims(s.DB, postgres.Grouping{})}
	var err error
	d.web, err = s.StartProgram(ctx, "web", "AUTH_JWT_SECRET=a secret that only this benchmark knows", "ADMIN_EMAIL="+email,
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
	d.reservations.Close()
	d.claims.Close()
	if d.web != nil {
		d.web.Stop()
	}
}

// user returns the next requesting user, scattered over all users.
func (d *side) user() user.ID {
	return user.ID(atomic.AddInt64(&d.next, 1)*step%int64(d.n.users) + 1)
}

// rate calls do from many callers and returns how often a second it succeeded.
func (d *side) rate(do func() error) (float64, error) {
	w, err := scenario.Drive(d.callers, d.lasting, func(int64) error { return do() })
	return w.PerSecond, err
}

// reserve returns reservations per second of a new drop.
func (d *side) reserve(ctx context.Context) (float64, error) {
	t, err := d.Drop(ctx, 3*time.Hour)
	if err != nil {
		return 0, err
	}
	return d.rate(func() error {
		v, err := d.reservations.Reserve(ctx, reminder.Change{TemplateID: t.ID, UserID: d.user(), Bits: reminder.StoredBitmap(1)})
		if err == nil && !v.Applied {
			err = fmt.Errorf("not applied: %+v", v)
		}
		return err
	})
}

// claim returns claims per second of a new drop.
func (d *side) claim(ctx context.Context) (float64, error) {
	t, err := d.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	if _, err := d.SQL.Exec(ctx, `update templates set stock = 1000000000, per_user_limit = 1000, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, t.ID); err != nil {
		return 0, err
	}
	return d.rate(func() error {
		r := claim.Request{ID: claim.NewID(rand.Uint64(), t.ID), TemplateID: t.ID, UserID: d.user(), Origin: claim.ByTap}
		r.Key = claim.TapKey(r.UserID, fmt.Sprint(r.ID))
		_, err := d.claims.Claim(ctx, r)
		return err
	})
}

// unread is a queue that no worker reads.
type unread struct{}

func (unread) Enqueue(context.Context, ...task.Task) error { return nil }
func (unread) Remove(context.Context, ...task.Task) error  { return nil }

// cut returns how many reservations of a drop are cut into stored batches per second. The time
// begins with the call that the drop's timer makes.
func (d *side) cut(ctx context.Context) (float64, error) {
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
	timers := &reminder.Timers{Store: dropsdb.NewSlots(d.DB, deliverydb.NewBatches(d.DB)), Queue: unread{}, Now: time.Now,
		LeaseFor: time.Minute, WatchEvery: time.Minute}
	began := time.Now()
	if err := timers.Fire(ctx, slot); err != nil {
		return 0, err
	}
	took := time.Since(began)
	var cut int
	err = d.SQL.QueryRow(ctx, `select coalesce(sum(due_count), 0) from batches where template_id = $1`, t.ID).Scan(&cut)
	if err == nil && cut != d.due {
		err = fmt.Errorf("%d of %d are in batches", cut, d.due)
	}
	return float64(cut) / took.Seconds(), err
}

// look returns pages of the console per second, loaded one after another: lists of coupons,
// templates, users and deliveries, a drop with its balance, and a user's page.
func (d *side) look(ctx context.Context) (float64, error) {
	var drop int64
	if err := d.SQL.QueryRow(ctx, `select max(template_id) from claim_seconds`).Scan(&drop); err != nil {
		return 0, err
	}
	began, pages := time.Now(), 0
	for range d.looks {
		of := d.user()
		for _, path := range []string{"/", "/templates", "/templates?q=number+7", fmt.Sprintf("/templates/%d", drop), fmt.Sprintf("/templates/%d/balance", drop),
			fmt.Sprintf("/coupons?by=template&q=%d", drop), fmt.Sprintf("/coupons?by=template&q=%d&state=used", drop), fmt.Sprintf("/coupons?by=user&q=%d", of),
			"/users", fmt.Sprintf("/users?q=user+%d", of), fmt.Sprintf("/users/%d", of), "/deliveries", fmt.Sprintf("/deliveries?template=%d", drop)} {
			if err := d.visitor.Read(ctx, path); err != nil {
				return 0, err
			}
			pages++
		}
	}
	return float64(pages) / time.Since(began).Seconds(), nil
}
