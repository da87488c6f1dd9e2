package drops_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/draw"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

type noQueue struct{}

func (noQueue) Enqueue(context.Context, ...task.Task) error { return errors.New("the queue is away") }

// dying is a store of draws whose process dies after each transaction that puts entries on the waitlist.
type dying struct{ draw.OperatorStore }

func (s dying) EnterWaiting(ctx context.Context, id int64, _ int, rank func(draw.Ticket) (int64, bool)) (bool, error) {
	more, err := s.OperatorStore.EnterWaiting(ctx, id, 3, rank)
	if err == nil && more {
		err = errDied
	}
	return more, err
}

// TestEntriesThatDidNotWinWait: they join the waitlist in the order of the draw, each once, also if workers die
// between the chunks. Stock that comes back goes to the next of them, and so does that of a struck winner.
func TestEntriesThatDidNotWinWait(t *testing.T) {
	d := aDraw(t)
	d.Exec(`update templates set waitlist = 'issue', version = version + 1 where id = $1`, d.drop.ID)
	d.Exec(`insert into waitlists (template_id) values ($1) on conflict do nothing`, d.drop.ID)
	d.drop, _ = d.Templates.Template(t.Context(), d.drop.ID)
	ids := make([]user.ID, 25)
	for i := range ids {
		ids[i] = user.ID(100 + i)
	}
	d.enter(ids...)
	d.closing()
	d.operator.Store = dying{d.operator.Store}
	for {
		if err := d.operator.Sweep(t.Context()); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		now, err := d.entries.Draw(t.Context(), d.drop.ID)
		d.Must(err)
		if now.State == draw.Done {
			break
		}
	}
	d.balanced()
	if n := d.Number(`select count(*) from waiters w join draw_entries e on e.template_id = w.template_id and e.user_id = w.user_id
		where w.template_id = $1 and w.state = 'waiting' and e.state = 'entered'`, d.drop.ID); n != 15 {
		t.Errorf("%d of 15 entries wait", n)
	}
	if n := d.Number(`select count(*) from (select rank, row_number() over (order by rank) as n from waiters where template_id = $1) r where rank <> 10 + n`, d.drop.ID); n != 0 {
		t.Errorf("%d ranks are not the places in the order of the draw", n)
	}
	lists := d.Waitlists()
	filler := &waitlist.Filler{Store: lists, Queue: noQueue{}}
	d.Exec(`update templates set closes_at = date_trunc('second', now()) + interval '1 day' where id = $1`, d.drop.ID)
	now, err := d.Templates.Template(t.Context(), d.drop.ID)
	d.Must(err)
	spec := now.Spec
	spec.Stock = 12
	_, err = d.Service.Edit(t.Context(), pgtest.Actor, now.ID, template.Edition{Version: now.Version, Spec: spec})
	d.Must(err)
	d.Must(filler.Sweep(t.Context()))
	if n := d.Number(`select count(*) from waiters where template_id = $1 and state = 'filled' and rank <= 12`, d.drop.ID); n != 2 {
		t.Errorf("%d of the next two have a coupon", n)
	}
	if _, joined, err := lists.Join(t.Context(), waitlist.Wish{TemplateID: d.drop.ID, UserID: 900, Channels: 1, Rank: waitlist.RankOf(now, 0), Limit: 1}); err != nil || !joined {
		t.Errorf("a user without an entry joins: %v %v", joined, err)
	}
	// The next in the order has a coupon of the waitlist already, so that of the struck winner goes on.
	admin := &coupon.Admin{Store: d.CouponSteps}
	d.operator.Revoke = func(ctx context.Context, id int64, reason string) error {
		_, err := admin.Revoke(ctx, staff.System(), id, reason, true)
		return err
	}
	first := user.ID(d.Number(`select user_id from draw_entries where template_id = $1 and rank = 1`, d.drop.ID))
	drawn, err := d.entries.Draw(t.Context(), d.drop.ID)
	d.Must(err)
	d.Must(d.entries.Strike(t.Context(), d.drop.ID, first, "fraud", staff.Entry{Actor: pgtest.Actor, Action: "draw.strike", ObjectKind: "template"}))
	d.until(draw.Done, d.operator)
	if again, err := d.entries.Draw(t.Context(), d.drop.ID); err != nil || !again.DrawnAt.Equal(*drawn.DrawnAt) || again.Struck != 1 || again.Entries() != drawn.Entries() {
		t.Errorf("after a strike the draw is of %v with %d entries, before %v with %d: %v", again.DrawnAt, again.Entries(), drawn.DrawnAt, drawn.Entries(), err)
	}
	d.Must(filler.Sweep(t.Context()))
	sheet, off, err := d.Ledgers.WaitsCounted(t.Context(), d.drop.ID)
	if err != nil || off != 0 || sheet.Difference() != 0 || sheet.Filled != 3 || sheet.Waiting != 13 {
		t.Errorf("%+v is off by %d, %v", sheet, off, err)
	}
}

// TestAStruckEntryWaitsNoLonger: an entry that is struck after the draw gets no coupon of the waitlist.
func TestAStruckEntryWaitsNoLonger(t *testing.T) {
	d := aDraw(t)
	d.Exec(`update templates set waitlist = 'issue' where id = $1`, d.drop.ID)
	d.Exec(`insert into waitlists (template_id) values ($1) on conflict do nothing`, d.drop.ID)
	for by := range user.ID(12) {
		d.enter(100 + by)
	}
	d.closing()
	d.until(draw.Done, d.operator)
	lost := user.ID(d.Number(`select min(user_id) from waiters where template_id = $1`, d.drop.ID))
	d.Must(d.entries.Strike(t.Context(), d.drop.ID, lost, "fraud", staff.Entry{Actor: pgtest.Actor, Action: "draw.strike", ObjectKind: "template"}))
	d.until(draw.Done, d.operator)
	sheet, off, err := d.Ledgers.WaitsCounted(t.Context(), d.drop.ID)
	if err != nil || off != 0 || sheet.Difference() != 0 || sheet.Skipped != 1 || sheet.Waiting != 1 {
		t.Errorf("%+v is off by %d, %v", sheet, off, err)
	}
}
