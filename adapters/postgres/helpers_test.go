package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// world is a fresh, migrated database with the stores on it and a raw
// connection for looking behind them.
type world struct {
	*testing.T
	db           *postgres.DB
	sql          *pgxpool.Pool
	templates    postgres.Templates
	reservations *postgres.Reservations
	slots        postgres.Slots
	batches      *postgres.GroupedBatches
	boards       postgres.Boards
	service      *template.Service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := localstack.Database(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "test", MaxConns: 24, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	sql, err := pgxpool.New(context.WithoutCancel(t.Context()), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sql.Close)
	w := &world{T: t, db: db, sql: sql, templates: postgres.NewTemplates(db), reservations: postgres.NewReservations(db, postgres.Grouping{}),
		slots: postgres.NewSlots(db), batches: postgres.NewGroupedBatches(db), boards: postgres.NewBoards(db)}
	t.Cleanup(w.reservations.Close)
	t.Cleanup(w.batches.Close)
	w.service = &template.Service{Store: w.templates, Now: clock}
	return w
}

func clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	_, err := w.sql.Exec(w.Context(), sql, args...)
	w.must(err)
}

func (w *world) number(sql string, args ...any) int64 {
	w.Helper()
	var n int64
	w.must(w.sql.QueryRow(w.Context(), sql, args...).Scan(&n))
	return n
}

func spec(opensIn time.Duration) template.Spec {
	opens := clock().Add(opensIn).Truncate(time.Second)
	return template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY",
		Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}
}

// published returns a template that opens after the given time.
func (w *world) published(opensIn time.Duration) template.Template {
	w.Helper()
	t, err := w.service.Create(w.Context(), staff.System(), spec(opensIn), "")
	w.must(err)
	t, err = w.service.Do(w.Context(), staff.System(), t.ID, 0, template.Publishing, "test")
	w.must(err)
	return t
}

// slot returns the current slot k of the template, the last round of several.
func (w *world) slot(t template.Template, k template.Slot) reminder.Slot {
	w.Helper()
	board, err := w.boards.Board(w.Context(), t.ID)
	w.must(err)
	for _, r := range slices.Backward(board.Rows) {
		if r.Slot.Slot == k {
			return r.Slot
		}
	}
	w.Fatalf("template %d has no slot %d", t.ID, k)
	return reminder.Slot{}
}

// dueNow pretends that slot k's instant has come, as if time had passed.
func (w *world) dueNow(t template.Template, k template.Slot) reminder.Slot {
	w.Helper()
	s := w.slot(t, k)
	w.exec(`update slots set due_at = clock_timestamp() - id * interval '1 second' where id = $1`, s.ID)
	return s
}

func reminders(c delivery.Channel, minutes ...int) []reminder.Reminder {
	var list []reminder.Reminder
	for _, m := range minutes {
		r, err := reminder.NewReminder(c, m)
		if err != nil {
			panic(err)
		}
		list = append(list, r)
	}
	return list
}

func (w *world) reserve(t template.Template, id user.ID, rs ...reminder.Reminder) reminder.Verdict {
	w.Helper()
	v, err := w.reservations.Reserve(w.Context(), reminder.Change{TemplateID: t.ID, UserID: id, Bits: reminder.BitmapOf(rs...)})
	w.must(err)
	return v
}

func (w *world) cancel(t template.Template, id user.ID, rs ...reminder.Reminder) reminder.Verdict {
	w.Helper()
	v, err := w.reservations.Cancel(w.Context(), reminder.Change{TemplateID: t.ID, UserID: id, Bits: reminder.BitmapOf(rs...)})
	w.must(err)
	return v
}

var actor = staff.System()

// relayCounts feeds every waiting and past booking event to the counters; the
// relay's deletion is undone, so that a second call delivers them again.
func (w *world) relayCounts() {
	w.Helper()
	counters := postgres.NewCounters(w.db)
	rows, err := w.sql.Query(w.Context(), `select event_id::text, payload from outbox where topic = $1`, event.ReservationsChanged)
	w.must(err)
	type sent struct {
		ID      string
		Payload event.Reservations
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sent])
	w.must(err)
	for _, e := range list {
		w.must(counters.Count(w.Context(), e.ID, e.Payload))
	}
}
