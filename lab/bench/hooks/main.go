// Hooks measures events for the servers of shops: the cost of reserving without an
// endpoint and with one that wants every reservation, and how many events are sent to a
// server on this machine, beside a client that posts the same bodies over as many
// connections and records nothing.
//
//	go -C lab run ./bench/hooks
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/webhook"
	"dropbell/domain/event"
	"dropbell/domain/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

func main() {
	callers := flag.Int("callers", 1024, "concurrent callers that reserve")
	seconds := flag.Int("seconds", 3, "seconds per measurement of reserving")
	events := flag.Int("events", 5000, "events that are sent")
	runs := flag.Int("runs", 3, "repetitions")
	flag.Parse()
	b := &bench{callers: *callers, lasting: time.Duration(*seconds) * time.Second, events: *events}
	if err := b.run(context.Background(), *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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
	if b.Stack, err = stack.Start(ctx); err != nil {
		return err
	}
	defer b.Close()
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
	fmt.Println(stack.Machine(ctx, b.Stack))
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

// reserve returns reservations per second; asked says whether the store looks for
// shops that want to be told.
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
	var next, done atomic.Int64
	var failed atomic.Value
	until := time.Now().Add(b.lasting)
	var all sync.WaitGroup
	for range b.callers {
		all.Go(func() {
			for time.Now().Before(until) {
				i := next.Add(1) - 1
				v, err := store.Reserve(ctx, reminder.Change{TemplateID: b.template, UserID: user.ID(i%20_000 + 1), Bits: reminder.StoredBitmap(1 << (i / 20_000 % 60))})
				if err != nil || !v.Applied {
					failed.Store(fmt.Sprintf("%+v %v", v, err))
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if msg := failed.Load(); msg != nil {
		return 0, fmt.Errorf("reserve: %v", msg)
	}
	return float64(done.Load()) / b.lasting.Seconds(), nil
}

// deliver returns how many events per second of so many items a bare client posts,
// are sent and recorded, and are stored.
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
	var all sync.WaitGroup
	errs := make([]error, 16)
	for w := range errs {
		all.Go(func() {
			for i := w; i < events && errs[w] == nil; i += len(errs) {
				_, errs[w] = recorder.Handle(ctx, uuid.Must(uuid.NewV7()).String(), one)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, 0, 0, err
		}
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

// floor posts the body so many times over 16 connections and returns how many per
// second.
func (b *bench) floor(ctx context.Context, body []byte, n int) (float64, error) {
	poster := webhook.NewPoster(0, true)
	defer poster.Close()
	var next, failed atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for next.Add(1) <= int64(n) {
				if a := poster.Post(ctx, b.sink, "msg_1", began, body, [][]byte{body[:32]}); !a.OK() {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if failed.Load() > 0 {
		return 0, fmt.Errorf("%d posts failed", failed.Load())
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
