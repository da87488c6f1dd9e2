// Package hooks measures events for the servers of shops. It measures the cost of reserving
// without an endpoint and with an endpoint that subscribes to every reservation, and how many
// events are sent to a server on this machine. The comparison is a client that posts the same
// bodies over as many connections and records nothing.
//
//	go tool task bench:hooks
package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/webhook"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.Callers(1024), f.Lasting(3), f.Runs(3)
	events := f.Int("events", 5000, "events that are sent")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, callers: *callers, lasting: *lasting, events: *events}
		return b.run(ctx, *runs)
	})
}

type bench struct {
	*stack.Stack
	callers  int
	lasting  time.Duration
	events   int
	template int64
	shop     int64
	service  *hook.Service
	sender   *hook.Deliverer
	sink     string
	received atomic.Int64
}

func (b *bench) run(ctx context.Context, runs int) (err error) {
	t, err := b.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	b.template, b.shop = t.ID, t.ShopNumber
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		b.received.Add(1)
	}))
	defer server.Close()
	b.sink = server.URL
	box, err := seal.New(hook.SealPurpose, "a key with at least thirty-two bytes")
	if err != nil {
		return err
	}
	poster := webhook.NewPoster(0, true)
	defer poster.Close()
	b.service = &hook.Service{Store: workdb.NewHooks(b.DB), Box: box, Insecure: true, Now: time.Now, Wake: func(context.Context, int64) {}}
	b.sender = &hook.Deliverer{Store: workdb.NewHooks(b.DB), Poster: poster, Box: box, Now: time.Now}
	var idle, listened, sent []float64
	for range runs {
		if _, err := b.SQL.Exec(ctx, `delete from hook_endpoints`); err != nil {
			return err
		}
		before, err := b.reserve(ctx, false)
		if err != nil {
			return err
		}
		without, err := b.reserve(ctx, true)
		if err != nil {
			return err
		}
		e, _, err := b.service.Create(ctx, staff.System(), b.shop, hook.Input{URL: b.sink, Enabled: true}, "")
		if err != nil {
			return err
		}
		with, err := b.reserve(ctx, true)
		if err != nil {
			return err
		}
		idle, listened = append(idle, without/before), append(listened, with/before)
		fmt.Printf("reservations/s: nothing asked %8.0f   no endpoint %8.0f (%.2f)   one endpoint %8.0f (%.2f)\n", before, without, without/before, with, with/before)
		for _, items := range []int{1, hook.MaxItems} {
			bare, rate, stored, err := b.deliver(ctx, e, items)
			if err != nil {
				return err
			}
			if items == 1 {
				sent = append(sent, rate/bare)
			}
			fmt.Printf("events of %3d items: stored %6.0f/s, sent and recorded %6.0f/s (%8.0f items/s), bare client %6.0f/s (%.2f of it)\n", items, stored, rate, rate*float64(items), bare, rate/bare)
		}
	}
	fmt.Printf("median: no endpoint %.2f, one endpoint %.2f of nothing asked; sent %.2f of the bare client\n", stack.Median(idle), stack.Median(listened), stack.Median(sent))
	return nil
}

// reserve returns reservations per second. asked says whether the store looks up the endpoints
// that subscribe to reservations.
func (b *bench) reserve(ctx context.Context, asked bool) (float64, error) {
	if _, err := b.SQL.Exec(ctx, `truncate reservations, outbox`); err != nil {
		return 0, err
	}
	store := dropsdb.NewReservations(b.DB, postgres.Grouping{})
	defer store.Close()
	if asked {
		wants := &lookup.Wants{Load: workdb.NewHooks(b.DB).Wanted}
		store.Listed = func(ctx context.Context, _ bool) bool { return wants.Any(ctx, hook.ReservationMade) }
	}
	w, err := scenario.Drive(b.callers, b.lasting, func(i int64) error {
		i--
		v, err := store.Reserve(ctx, reminder.Change{TemplateID: b.template, UserID: user.ID(i%20_000 + 1), Bits: reminder.StoredBitmap(1 << (i / 20_000 % 60))})
		if err == nil && !v.Applied {
			err = fmt.Errorf("refused: %+v", v)
		}
		return err
	})
	return w.PerSecond, err
}

// deliver returns three rates in events per second, for events with the given number of items:
// posted by a bare client, sent and recorded, and stored.
func (b *bench) deliver(ctx context.Context, e hook.Endpoint, items int) (bare, rate, stored float64, err error) {
	events := b.events
	if items > 1 {
		events /= 5
	}
	list := event.ReservationList{TemplateID: b.template}
	for i := range items {
		list.Items = append(list.Items, event.ListedReminders{UserID: int64(i + 1), Bits: 1, Sequence: int64(i + 1), At: time.Now()})
	}
	one := hook.OfReservations(list)
	body, err := one[0].Payload()
	if err != nil {
		return 0, 0, 0, err
	}
	if bare, err = b.floor(ctx, body, events); err != nil {
		return 0, 0, 0, err
	}
	recorder := workdb.NewHookEvents(b.DB)
	defer recorder.Close()
	began := time.Now()
	if err := scenario.Each(events, 16, func(int) error {
		_, err := recorder.Handle(ctx, uuid.Must(uuid.NewV7()).String(), one)
		return err
	}); err != nil {
		return 0, 0, 0, err
	}
	stored = float64(events) / time.Since(began).Seconds()
	b.received.Store(0)
	began = time.Now()
	for more := true; more; {
		if more, err = b.sender.Drain(ctx, e.ID); err != nil {
			return 0, 0, 0, err
		}
	}
	rate = float64(events) / time.Since(began).Seconds()
	if n := b.received.Load(); n != int64(events) {
		return 0, 0, 0, fmt.Errorf("%d of %d events arrived", n, events)
	}
	var recorded int
	err = b.SQL.QueryRow(ctx, `select count(*) from hook_deliveries where endpoint_id = $1 and state <> 'delivered'`, e.ID).Scan(&recorded)
	if err == nil && recorded != 0 {
		err = fmt.Errorf("%d deliveries are not recorded", recorded)
	}
	return bare, rate, stored, err
}

// floor posts the body n times over 16 connections and returns the posts per second.
func (b *bench) floor(ctx context.Context, body []byte, n int) (float64, error) {
	poster := webhook.NewPoster(0, true)
	defer poster.Close()
	began := time.Now()
	err := scenario.Each(n, 16, func(int) error {
		if a := poster.Post(ctx, b.sink, "msg_1", began, body, [][]byte{body[:32]}); !a.OK() {
			return errors.New("a post failed")
		}
		return nil
	})
	return float64(n) / time.Since(began).Seconds(), err
}
