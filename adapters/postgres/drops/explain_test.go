package drops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func explainer(m *pgtest.FailingHook) *reminder.Explainer {
	return &reminder.Explainer{Store: m.Reservations, Coupons: m.CouponSteps, Reminders: &reminder.Service{Store: m.Reservations, Templates: m.Templates,
		Channels: delivery.ChannelSetOf(delivery.App, delivery.Webhook), Now: pgtest.Clock}}
}

func explain(m *pgtest.FailingHook, tpl template.Template, id user.ID) reminder.Timeline {
	m.Helper()
	line, err := explainer(m).Explain(m.Context(), id, tpl.ID)
	m.Must(err)
	for i, s := range line.Steps {
		if s.At.IsZero() {
			m.Errorf("step %d has no instant: %+v", i, s)
		}
		if i > 0 && s.At.Before(line.Steps[i-1].At) {
			m.Errorf("step %d lies before step %d: %+v", i, i-1, line.Steps)
		}
	}
	return line
}

func tells(m *pgtest.FailingHook, tpl template.Template, id user.ID, want ...string) reminder.Timeline {
	m.Helper()
	line := explain(m, tpl, id)
	if got := pgtest.Story(line.Steps); got != strings.Join(want, ", ") {
		m.Errorf("user %d:\n got %s\nwant %s", id, got, strings.Join(want, ", "))
	}
	return line
}

// TestExplainBeforeTheDrop: the timeline has the future steps and the changes to
// them.
func TestExplainBeforeTheDrop(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 10)...)
	line := tells(m, tpl, 1, "reserved", "expected app10")
	if at := line.Steps[1]; !at.At.Equal(tpl.OpensAt.Add(-10*time.Minute)) || at.Planned == nil || !at.Planned.Equal(at.At) {
		t.Errorf("expected at %v", at.At)
	}
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.Webhook, 60)...)
	tells(m, tpl, 1, "reserved", "changed", "expected webhook60", "expected app10")
	by := staff.Actor{Label: "staff:4", Name: "Mei", Role: staff.Admin}
	changed := tpl.Spec
	changed.OpensAt, changed.ClosesAt = changed.OpensAt.Add(time.Hour), changed.ClosesAt.Add(time.Hour)
	moved, err := m.Service.Edit(t.Context(), by, tpl.ID, template.Edition{Version: tpl.Version, Spec: changed})
	m.Must(err)
	m.Do(tpl, template.Pausing)
	m.Do(tpl, template.Resuming)
	line = tells(m, tpl, 1, "reserved", "changed", "opening_moved", "paused", "resumed", "expected webhook60", "expected app10")
	move := line.Steps[2]
	if move.By != "staff:4 Mei" || move.From == nil || !move.From.Equal(tpl.OpensAt) || move.To == nil || !move.To.Equal(moved.OpensAt) {
		t.Errorf("%+v", move)
	}
	if due := line.Steps[6].At; !due.Equal(moved.OpensAt.Add(-10 * time.Minute)) {
		t.Errorf("expected at %v", due)
	}
	m.Do(tpl, template.Cancelling)
	tells(m, tpl, 1, "reserved", "changed", "opening_moved", "paused", "resumed", "cancelled")
	if _, err := explainer(m).Explain(t.Context(), 2, tpl.ID); !errors.Is(err, reminder.ErrNotReserved) {
		t.Errorf("nothing reserved: %v", err)
	}
	if _, err := explainer(m).Explain(t.Context(), 1, 1<<40); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
}

// TestExplainWithdrawn: a user who cancels everything has a timeline, whether or
// not a message was sent before, and also after reserving again.
func TestExplainWithdrawn(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 10)...)
	m.Cancel(tpl, 1)
	tells(m, tpl, 1, "published", "withdrawn")
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 10)...)
	tells(m, tpl, 1, "withdrawn", "reserved", "expected app10")
	if box, err := m.Inbox.Page(t.Context(), 1, time.Time{}, 10); err != nil || len(box.Items) != 0 {
		t.Errorf("%+v %v", box, err)
	}
}

// TestExplainOutcomes: one user for each way a delivery can end.
func TestExplainOutcomes(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Daemon.Policy = delivery.Policy{MaxAttempts: 3, Base: time.Second, Max: time.Second}
	const sent, recovers, fails, refused, dies, optedOut, throttled = 1, 2, 3, 4, 5, 6, 7
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 7), pgtest.Reminders(delivery.Webhook, 5)...)
	m.Exec(`insert into users (id, opt_outs) values (6, 16)`)
	rounds := 0
	m.Hook.Answer = func(msg delivery.Message, times int) delivery.Result {
		switch id := msg.To.ID; {
		case id == recovers && times < 3:
			return delivery.Result{Status: delivery.Transient, Detail: fmt.Sprintf("status 50%d", times)}
		case id == fails, id == dies && rounds < 3:
			return delivery.Result{Status: delivery.Transient, Detail: "status 503"}
		case id == refused:
			return delivery.Result{Status: delivery.Permanent, Detail: "unknown user"}
		case id == throttled && times == 1:
			return delivery.Result{Status: delivery.Throttled, Detail: "slow down", After: time.Second}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	sl := m.CutSlot(tpl, 1, 100)
	m.Drain()
	tells(m, tpl, sent, "reserved", "fired webhook5", "outcome webhook5 sent")
	tells(m, tpl, fails, "reserved", "fired webhook5", "tried webhook5 1× provider_error status 503")
	tells(m, tpl, throttled, "reserved", "fired webhook5", "tried webhook5 provider_throttled slow down")
	for rounds = 1; rounds < 3; rounds++ {
		m.Exec(`update exceptions set next_retry_at = now() - interval '1 second' where outcome = 'failed' and user_id <> 3`)
		m.Exec(`update batches set next_run_at = now() where state = 'ready'`)
		m.Drain()
	}
	rounds = 3
	line := tells(m, tpl, recovers, "reserved", "fired webhook5", "tried webhook5 2× provider_error status 502", "outcome webhook5 recovered")
	var planned, actual time.Time
	m.Must(m.SQL.QueryRow(t.Context(), `select due_at, fired_at from slots where id = $1`, sl.ID).Scan(&planned, &actual))
	if s := line.Steps[1]; !s.At.Equal(actual) || s.Planned == nil || !s.Planned.Equal(planned) || s.BatchID == 0 {
		t.Errorf("fired %+v, want %v planned for %v", s, actual, planned)
	}
	tells(m, tpl, throttled, "reserved", "fired webhook5", "tried webhook5 provider_throttled slow down", "outcome webhook5 recovered")
	tells(m, tpl, refused, "reserved", "fired webhook5", "tried webhook5 1× refused_by_provider unknown user",
		"outcome webhook5 dead refused_by_provider unknown user")
	tells(m, tpl, dies, "reserved", "fired webhook5", "tried webhook5 3× attempts_used_up status 503",
		"outcome webhook5 dead attempts_used_up status 503")
	tells(m, tpl, optedOut, "reserved", "fired webhook5", "outcome webhook5 skipped opted_out")

	m.Work(delivery.Discard, delivery.DeadLetterFilter{UserID: refused}, 0)
	tells(m, tpl, refused, "reserved", "fired webhook5", "tried webhook5 1× discarded_by_operator unknown user",
		"outcome webhook5 discarded discarded_by_operator unknown user")
	m.Work(delivery.Replay, delivery.DeadLetterFilter{UserID: dies}, 0)
	m.Drain()
	tells(m, tpl, dies, "reserved", "fired webhook5", "outcome webhook5 recovered")
	// A message that still waits when the drop opens has expired, and says why.
	m.Exec(`update batches set worthless_after = clock_timestamp(), next_run_at = clock_timestamp()`)
	m.Drain()
	tells(m, tpl, fails, "reserved", "fired webhook5", "tried webhook5 1× provider_error status 503",
		"outcome webhook5 expired provider_error status 503")
	m.Finish(tpl)
}

// TestExplainMovedWhileBeingSent: the user is reminded of one opening, skipped at
// the second, and reminded of the third.
func TestExplainMovedWhileBeingSent(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 2), pgtest.Reminders(delivery.App, 60)...)
	old := m.CutSlot(tpl, 12, 1)
	m.Must(m.Daemon.RunNext(t.Context(), delivery.App)) // user 1 is reached
	m.MoveBy(tpl, time.Hour)
	m.Drain()
	m.Finish(tpl)
	tells(m, tpl, 1, "reserved", "fired app60", "outcome app60 sent", "opening_moved", "expected app60")
	tells(m, tpl, 2, "reserved", "fired app60", "opening_moved", "outcome app60 skipped opening_moved", "expected app60")
	m.Send(tpl, delivery.KindCorrection)
	line := tells(m, tpl, 1, "reserved", "fired app60", "outcome app60 sent", "opening_moved",
		"announced app0 correction", "outcome app0 correction sent", "expected app60")
	if s := line.Steps[4]; s.Planned != nil || s.BatchID == 0 {
		t.Errorf("%+v", s)
	}
	again := m.CutSlot(tpl, 12, 1)
	m.Drain()
	line = explain(m, tpl, 2)
	if got := pgtest.Story(line.Steps); !strings.HasSuffix(got, "fired app60, outcome app60 sent") || strings.Contains(got, "expected") || old.ID == again.ID {
		t.Errorf("after the new firing: %s", got)
	}
	if it := line.Items[0]; it.State != string(delivery.Sent) {
		t.Errorf("%+v", it)
	}
}

// TestExplainWhoeverLeftAfterBeingReminded: the user's reservation is deleted,
// but the timeline remains.
func TestExplainWhoeverLeftAfterBeingReminded(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 60)...)
	m.CutSlot(tpl, 12, 10)
	m.Drain()
	m.MoveBy(tpl, time.Hour)
	if v := m.Cancel(tpl, 1); !v.Applied || !v.After.IsEmpty() {
		t.Fatalf("%+v", v)
	}
	line := explain(m, tpl, 1)
	if got := pgtest.Story(line.Steps); !strings.HasSuffix(got, "fired app60, outcome app60 sent, opening_moved, withdrawn") || strings.Contains(got, "reserved") {
		t.Errorf("%s", got)
	}
	if len(line.Items) != 0 || line.UserID != 1 || line.TemplateID != tpl.ID {
		t.Errorf("%+v", line.View)
	}
}

func TestExplainTellsOfCoupons(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(time.Hour)
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 30)...)
	gate := m.Claims()
	var got [3]claim.Claim
	for i, r := range []claim.Request{{TemplateID: tpl.ID, UserID: 1, Origin: claim.ByGrant}, {TemplateID: tpl.ID, UserID: 2, Origin: claim.ByCampaign}} {
		r.ID = claim.ID(i + 1)
		var err error
		got[i], err = gate.Claim(t.Context(), r)
		m.Must(err)
	}
	for i, want := range []string{"reserved, claimed grant, expected app30", "published, claimed campaign"} {
		line := explain(m, tpl, user.ID(i+1))
		if s := pgtest.Story(line.Steps); s != want {
			t.Errorf("user %d: %s, want %s", i+1, s, want)
		}
		for _, s := range line.Steps {
			if s.Kind == reminder.StepClaimed && (s.CouponID != got[i].CouponID || !s.At.Equal(got[i].At)) {
				t.Errorf("step %+v does not tell of %+v", s, got[i])
			}
		}
	}
}

// failingStore fails one of the reads.
type failingStore struct {
	reminder.ExplainStore
	at string
}

var errBroken = errors.New("broken")

func (f failingStore) err(at string) error { return map[bool]error{true: errBroken}[f.at == at] }

func (f failingStore) Reservation(ctx context.Context, id int64, by user.ID) (reminder.Reservation, error) {
	return reminder.Reservation{}, f.err("reservation")
}
func (f failingStore) Delivered(context.Context, user.ID, []int64) ([]reminder.Delivered, error) {
	return nil, f.err("delivered")
}
func (f failingStore) Announced(context.Context, user.ID, []int64) ([]reminder.Delivered, error) {
	return nil, f.err("announced")
}
func (f failingStore) Timeline(context.Context, user.ID, int64) ([]reminder.Step, error) {
	return nil, f.err("coupons")
}
func (f failingStore) TemplateSteps(context.Context, int64) ([]reminder.TemplateStep, error) {
	return nil, f.err("steps")
}

func (f failingStore) Planned(context.Context, int64) (map[int64]time.Time, error) {
	return nil, f.err("planned")
}

func (f failingStore) Withdrawn(context.Context, int64, user.ID) (time.Time, error) {
	return time.Time{}, f.err("withdrawn")
}

func (f failingStore) RowsRemoved(context.Context, int64) (*time.Time, error) {
	return nil, f.err("removed")
}

// TestExplainAfterTheRowsAreGone: once the rows of a drop were removed, the answer about a user of
// whom nothing is known says so, and a timeline says when that was.
func TestExplainAfterTheRowsAreGone(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(time.Hour)
	m.Reserve(tpl, 1, pgtest.Reminders(delivery.App, 10)...)
	if line := explain(m, tpl, 1); line.RowsRemovedAt != nil {
		t.Errorf("removed at %v", line.RowsRemovedAt)
	}
	m.Exec(`insert into drop_archives (template_id, counted_at, booked, reminded, opened, claimed, used, others, partial) values ($1, '2027-01-01 12:00Z', 2, 0, 0, 0, 0, 0, false)`, tpl.ID)
	if line := explain(m, tpl, 1); line.RowsRemovedAt == nil || line.RowsRemovedAt.Year() != 2027 {
		t.Errorf("removed at %v", line.RowsRemovedAt)
	}
	if _, err := explainer(m).Explain(t.Context(), 2, tpl.ID); !errors.Is(err, reminder.ErrRowsRemoved) {
		t.Errorf("nothing is known any more: %v", err)
	}
}

func TestExplainSaysWhenItCannotKnow(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(time.Hour)
	for _, at := range []string{"reservation", "delivered", "announced", "steps", "planned", "coupons", "withdrawn", "removed"} {
		x := explainer(m)
		x.Store, x.Coupons = failingStore{at: at}, failingStore{at: at}
		if _, err := x.Explain(t.Context(), 1, tpl.ID); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", at, err)
		}
	}
}
