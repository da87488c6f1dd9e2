// Package pgtest is the fixture that the tests of the stores share.
package pgtest

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Fixture is a fresh, migrated database with its stores. SQL reads and writes rows directly,
// over the stores' connections: each further connection costs the server as much processor time
// as a short test.
type Fixture struct {
	*testing.T
	DB           *postgres.DB
	SQL          *pgxpool.Pool
	Templates    dropsdb.Templates
	Reservations *dropsdb.Reservations
	Inbox        deliverydb.Inbox
	Slots        dropsdb.Slots
	Batches      *deliverydb.GroupedBatches
	Reports      dropsdb.Reports
	Boards       dropsdb.Boards
	Cockpits     dropsdb.Cockpits
	Forecasts    dropsdb.Forecasts
	Channels     deliverydb.Channels
	DeadLetters  deliverydb.DeadLetters
	Ledger       deliverydb.Ledger
	Feedback     *deliverydb.Feedback
	Users        audiencedb.Users
	Segments     audiencedb.Segments
	Jobs         workdb.Jobs
	Uploads      workdb.Uploads
	CouponSteps  couponsdb.CouponSteps
	Ledgers      couponsdb.Ledgers
	Payments     *couponsdb.Payments
	Tallies      couponsdb.CouponTallies
	TallyEvents  *couponsdb.TallyEvents
	Service      *template.Service
}

// New returns a fixture that goes with the test.
func New(t *testing.T) *Fixture {
	t.Helper()
	return On(t, localstack.Database(t))
}

// On returns the fixture of an existing database, such as a restored database.
func On(t *testing.T, url string) *Fixture {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "test", MaxConns: 24, Log: slog.New(slog.DiscardHandler),
		TransactionIdle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &Fixture{T: t, DB: db, SQL: db.Pool, Templates: dropsdb.NewTemplates(db), Reservations: dropsdb.NewReservations(db, postgres.Grouping{}),
		Inbox: deliverydb.NewInbox(db, postgres.Grouping{}), Slots: dropsdb.NewSlots(db, deliverydb.NewBatches(db)), Batches: deliverydb.NewGroupedBatches(db), Boards: dropsdb.NewBoards(db), Cockpits: dropsdb.NewCockpits(db), Forecasts: dropsdb.NewForecasts(db), Reports: dropsdb.NewReports(db),
		Channels: deliverydb.NewChannels(db), DeadLetters: deliverydb.NewDeadLetters(db), Ledger: deliverydb.NewLedger(db), Feedback: deliverydb.NewFeedback(db, nil),
		Users: audiencedb.NewUsers(db), Segments: audiencedb.NewSegments(db), Jobs: workdb.NewJobs(db), Uploads: workdb.NewUploads(db), CouponSteps: couponsdb.NewCouponSteps(db),
		Ledgers: couponsdb.NewLedgers(db), Payments: Payments(t, db), Tallies: couponsdb.NewCouponTallies(db), TallyEvents: couponsdb.NewTallyEvents(db)}
	t.Cleanup(w.TallyEvents.Close)
	t.Cleanup(w.Reservations.Close)
	t.Cleanup(w.Batches.Close)
	t.Cleanup(w.Feedback.Close)
	t.Cleanup(w.Inbox.Close)
	w.Slots.Doors = audiencedb.NewDoors(db)
	w.Service = &template.Service{Store: w.Templates, Now: Clock, Draws: func(template.Opening) error { return nil }}
	return w
}

// Payments returns the groups of payment on db that go with the test.
func Payments(t *testing.T, db *postgres.DB) *couponsdb.Payments {
	p := couponsdb.NewPayments(db, postgres.Grouping{})
	t.Cleanup(p.Close)
	return p
}

// Claims returns a gate of claims that goes with the test.
func (w *Fixture) Claims() *couponsdb.Claims {
	c := couponsdb.NewClaims(w.DB, postgres.Grouping{})
	w.Cleanup(c.Close)
	return c
}

// Waitlists returns the waitlists, which go with the test.
func (w *Fixture) Waitlists() *couponsdb.Waitlists {
	l := couponsdb.NewWaitlists(w.DB, postgres.Grouping{})
	w.Cleanup(l.Close)
	return l
}

// Clock is the time as the database can store it.
func Clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// WithinOneDay waits for the next day in UTC if the current day ends within a minute. It is for
// tests that ask the database for the day more than once.
func WithinOneDay() {
	for now := Clock(); now.Add(time.Minute).Day() != now.Day(); now = Clock() {
		<-time.After(100 * time.Millisecond)
	}
}

// Must ends the test if err is not nil.
func (w *Fixture) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Exec runs a statement behind the stores.
func (w *Fixture) Exec(sql string, args ...any) {
	w.Helper()
	_, err := w.SQL.Exec(w.Context(), sql, args...)
	w.Must(err)
}

// Number returns the single number that a statement selects.
func (w *Fixture) Number(sql string, args ...any) int64 {
	w.Helper()
	var n int64
	w.Must(w.SQL.QueryRow(w.Context(), sql, args...).Scan(&n))
	return n
}

// Spec is a valid template that opens after the given time.
func Spec(opensIn time.Duration) template.Spec {
	opens := Clock().Add(opensIn).Truncate(time.Second)
	return template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY",
		Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}
}

// Published returns a template that opens after the given time.
func (w *Fixture) Published(opensIn time.Duration) template.Template {
	w.Helper()
	t, err := w.Service.Create(w.Context(), staff.System(), Spec(opensIn), "")
	w.Must(err)
	t, err = w.Service.Do(w.Context(), staff.System(), t.ID, 0, template.Publishing, "test")
	w.Must(err)
	return t
}

// Slot returns the current slot k of the template, the last round of several.
func (w *Fixture) Slot(t template.Template, k template.Slot) reminder.Slot {
	w.Helper()
	board, err := w.Boards.Board(w.Context(), t.ID)
	w.Must(err)
	for _, r := range slices.Backward(board.Rows) {
		if r.Slot.Slot == k {
			return r.Slot
		}
	}
	w.Fatalf("template %d has no slot %d", t.ID, k)
	return reminder.Slot{}
}

// DueNow pretends that slot k's instant has come, as if time had passed.
func (w *Fixture) DueNow(t template.Template, k template.Slot) reminder.Slot {
	w.Helper()
	s := w.Slot(t, k)
	w.Exec(`update slots set due_at = clock_timestamp() - id * interval '1 second' where id = $1`, s.ID)
	return s
}

// Reminders returns reminders over the channel, so many minutes before the opening.
func Reminders(c delivery.Channel, minutes ...int) []reminder.Reminder {
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

// Reserve adds reminders of the user.
func (w *Fixture) Reserve(t template.Template, id user.ID, rs ...reminder.Reminder) reminder.Decision {
	w.Helper()
	v, err := w.Reservations.Reserve(w.Context(), reminder.Change{TemplateID: t.ID, UserID: id, Bits: reminder.BitmapOf(rs...)})
	w.Must(err)
	return v
}

// Cancel takes reminders of the user away.
func (w *Fixture) Cancel(t template.Template, id user.ID, rs ...reminder.Reminder) reminder.Decision {
	w.Helper()
	v, err := w.Reservations.Cancel(w.Context(), reminder.Change{TemplateID: t.ID, UserID: id, Bits: reminder.BitmapOf(rs...)})
	w.Must(err)
	return v
}

// Actor is the actor of the tests' changes.
var Actor = staff.System()

// RelayCounts passes every waiting and past booking event to the counters. It restores the
// events that the relay deletes, so that a second call delivers them again.
func (w *Fixture) RelayCounts() {
	w.Helper()
	counters := dropsdb.NewCounters(w.DB)
	rows, err := w.SQL.Query(w.Context(), `select event_id::text, payload from outbox where topic = $1`, event.ReservationsChanged)
	w.Must(err)
	type sent struct {
		ID      string
		Payload event.Reservations
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sent])
	w.Must(err)
	for _, e := range list {
		w.Must(counters.Count(w.Context(), e.ID, e.Payload))
	}
}

// CountBookings delivers one event to the booking counters.
func (w *Fixture) CountBookings(id string, e event.Reservations) {
	w.Helper()
	w.Must(dropsdb.NewCounters(w.DB).Count(w.Context(), id, e))
}
