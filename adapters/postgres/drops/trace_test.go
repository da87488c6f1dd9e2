package drops_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

const sampledParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func traced(ctx context.Context, parent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// traceRecorder is a tracer that counts statements by trace.
type traceRecorder struct {
	mu     sync.Mutex
	traces map[string]int
}

func (w *traceRecorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traces[trace.SpanContextFromContext(ctx).TraceID().String()]++
	return ctx
}

func (*traceRecorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (w *traceRecorder) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return w.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{})
}

func (*traceRecorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*traceRecorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TestEventsCarryTheTraceOfTheirCause reserves and cancels with every kind of
// context.
func TestEventsCarryTheTraceOfTheirCause(t *testing.T) {
	w := newFixture(t)
	statements := &traceRecorder{traces: map[string]int{}}
	db, err := postgres.Open(t.Context(), w.SQL.Config().ConnString(), postgres.Options{Tracer: statements, Log: slog.New(slog.DiscardHandler)})
	w.Must(err)
	t.Cleanup(db.Close)
	on := dropsdb.NewReservations(db, postgres.Grouping{})
	t.Cleanup(on.Close)
	tpl := w.Published(time.Hour)
	pgtest.Relayed(t, w.DB, "")
	for name, c := range map[string]struct {
		store  *dropsdb.Reservations
		parent string
		want   string
	}{
		"sampled":     {on, sampledParent, sampledParent},
		"not sampled": {on, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", ""},
		"untraced":    {on, "", ""},
		"off":         {w.Reservations, sampledParent, ""},
	} {
		change := reminder.Change{TemplateID: tpl.ID, UserID: 7, Bits: reminder.BitmapOf(pgtest.Reminders(delivery.App, 5)...)}
		ctx := traced(t.Context(), c.parent)
		for _, do := range []func(context.Context, reminder.Change) (reminder.Decision, error){c.store.Reserve, c.store.Cancel} {
			if v, err := do(ctx, change); err != nil || !v.Applied {
				t.Fatalf("%s: %+v %v", name, v, err)
			}
			if got := pgtest.Relayed(t, w.DB, event.ReservationsChanged); len(got) != 1 || got[0] != c.want {
				t.Errorf("%s: events with %q, want %q", name, got, c.want)
			}
		}
	}
	if n := statements.traces[sampledParent[3:35]]; n == 0 {
		t.Error("the group's statement is not part of the trace")
	}
}

func TestBatchEventsCarryTheTraceOfTheDelivery(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(time.Hour)
	w.Seed(tpl, 3, pgtest.Reminders(delivery.App, 5)...)
	w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(traced(t.Context(), sampledParent), w.DueNow(tpl, 1).ID))
	w.Must(w.Deliverer(&pgtest.MemoryQueue{}, pgtest.NewSink(delivery.App, 10)).Drain(traced(t.Context(), sampledParent), delivery.App))
	for _, topic := range []string{event.SlotFired, event.BatchFinished} {
		var got string
		w.Must(w.SQL.QueryRow(t.Context(), `select trace from outbox where topic = $1`, topic).Scan(&got))
		if got != sampledParent {
			t.Errorf("%s carries %q", topic, got)
		}
	}
}

func TestRecountFindsWhatIsOff(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 30, append(pgtest.Reminders(delivery.App, 5), pgtest.Reminders(delivery.Webhook, 5, 10)...)...)
	finish := func(k template.Slot) {
		w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), w.DueNow(tpl, k).ID))
		d := w.Deliverer(&pgtest.MemoryQueue{}, pgtest.NewSink(delivery.App, 10), pgtest.NewSink(delivery.Webhook, 10))
		w.Must(errors.Join(d.Drain(t.Context(), delivery.App), d.Drain(t.Context(), delivery.Webhook)))
		_, err := w.Slots.FinishSlots(t.Context())
		w.Must(err)
	}
	finish(1)
	finish(2)
	recount := func(window time.Duration, limit int) dropsdb.Recount {
		r, err := w.Boards.Recount(t.Context(), window, limit)
		w.Must(err)
		return r
	}
	if r := recount(time.Hour, 10); r.Slots != 2 || len(r.Differences) != 0 {
		t.Fatalf("sound books: %+v", r)
	}
	if r := recount(time.Hour, 1); r.Slots != 1 {
		t.Errorf("%d slots with a limit of 1", r.Slots)
	}
	w.Exec(`update batches set sent = null where channel = 4 and owner_id = $1`, w.Slot(tpl, 2).ID) // 30 outcomes vanish
	r := recount(time.Hour, 10)
	if len(r.Differences) != 1 || r.Differences[0].Slot.Slot != 2 || r.Differences[0].Channel != delivery.Webhook || r.Differences[0].Difference() == 0 {
		t.Errorf("lost outcomes: %+v", r)
	}
	w.Exec(`update batches set rest_outcome = 'expired', rest_reason = 'deadline' where sent is null`)
	if r := recount(time.Hour, 10); r.Expired[delivery.Webhook] != 30 || r.Expired[delivery.App] != 0 {
		t.Errorf("expired: %v", r.Expired)
	}
	w.Exec(`update slots set finished_at = now() - interval '2 hours' where state = 'finished'`)
	if r := recount(time.Hour, 10); r.Slots != 0 || len(r.Differences) != 0 {
		t.Errorf("slots of long ago: %+v", r)
	}
}
