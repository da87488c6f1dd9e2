package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/user"
)

// over makes a drop that ended eleven days ago: users 1 to n booked, all but the last were
// reminded an hour before the opening, half of them opened a link, and a third has a coupon.
func (w *fixture) over(n int64) int64 {
	w.Helper()
	d := w.Published(2 * time.Hour)
	w.Exec(`update templates set state = 'closed', opens_at = date_trunc('second', now()) - interval '12 days', closes_at = now() - interval '11 days' where id = $1`, d.ID)
	w.Exec(`update slots s set opens_at = t.opens_at, due_at = t.opens_at - slot * interval '5 minutes', state = 'finished', fired_at = t.opens_at, cut_at = t.opens_at, finished_at = t.opens_at
		from templates t where t.id = $1 and s.template_id = t.id`, d.ID)
	w.Exec(`insert into slot_results (slot_id, channel, reserved, sent, skipped, late, done_at, expected)
		select id, c, $2::bigint, $2::bigint - 1, 1, '{"3": 5}', opens_at, 12.5 from slots, generate_series(0, 1) c where template_id = $1`, d.ID, n)
	w.Exec(`insert into slot_forecasts (slot_id, channel, opens_at, made_at, booked, messages, missed, per_second, finish_at)
		select id, 0, opens_at, opens_at, $2, $2, 1, 100, opens_at from slots where template_id = $1`, d.ID, n)
	w.Exec(`insert into bookings select $1, s, c, $2 from generate_series(1, 12) s, generate_series(0, 1) c on conflict (template_id, slot, channel) do update set booked = excluded.booked`, d.ID, n)
	w.Exec(`insert into booking_growth select $1, date_trunc('minute', now()) - interval '13 days' + m * interval '1 minute', 1 from generate_series(1, $2::bigint) m`, d.ID, n)
	w.Exec(`insert into reservations (template_id, user_id, slots) select $1, u, 1 from generate_series(1, $2::bigint) u`, d.ID, n)
	w.Exec(`insert into former_reservations (template_id, user_id) values ($1, 7000)`, d.ID)
	w.Exec(`insert into drop_openings (template_id, user_id, slot, channel, opened_at) select $1, u, 1, 0, now() from generate_series(1, $2::bigint / 2) u`, d.ID, n)
	w.Exec(`insert into claim_counts select $1, u, 1 from generate_series(1, $2::bigint / 3) u`, d.ID, n)
	sent := pgtest.Users(1, int(n-1))
	w.Exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, sent, sent_count, created_at)
		select 'reminder', s.id, s.template_id, 0, 1, $2::int, 'done', s.due_at, s.opens_at, $3, $2::int, $4, $2::int - 1, s.due_at from slots s where s.template_id = $1`,
		d.ID, n, pgtest.Bitmap(append(sent, user.ID(n))...), pgtest.Bitmap(sent...))
	return d.ID
}

// figures is everything that pages read about a drop.
type figures struct {
	Board   reminder.Board
	Cockpit reminder.Cockpit
	Growth  []reminder.Growth
	People  report.People
	Past    []forecast.PastForecast
}

func (w *fixture) figuresOf(id int64) (f figures) {
	w.Helper()
	var err error
	f.Board, err = w.Boards.Board(w.Context(), id)
	w.Must(err)
	f.Cockpit, err = w.Cockpits.Cockpit(w.Context(), id, nil)
	w.Must(err)
	f.Cockpit.At = time.Time{}
	f.Growth, err = w.Boards.Growth(w.Context(), id, 200)
	w.Must(err)
	f.People, err = w.Reports.People(w.Context(), id)
	w.Must(err)
	f.People.CountedAt = nil
	f.Past, err = w.Forecasts.PastForecasts(w.Context(), id)
	w.Must(err)
	return f
}

// dropRows counts the rows of a drop in the tables that an archived drop has no rows in.
func (w *fixture) dropRows(id int64) (n int64) {
	w.Helper()
	for _, table := range []string{"reservations", "former_reservations", "booking_growth", "drop_openings", "slots", "bookings", "batches", "removals"} {
		key := "template_id"
		if table == "removals" {
			key = "step <> 'coupons' and object_id"
		}
		n += w.Number(`select count(*) from `+table+` where `+key+` = $1`, id)
	}
	return n + w.Number(`select count(*) from slot_results`) + w.Number(`select count(*) from slot_forecasts`)
}

// TestDropsAreArchived: a drop that is over becomes a row of figures, its other rows are removed,
// and every reader answers as before.
func TestDropsAreArchived(t *testing.T) {
	w := newFixture(t)
	id := w.over(30)
	before := w.figuresOf(id)
	if p := before.People; p.Booked != 30 || p.Reminded != 29 || p.Opened != 15 || p.Claimed != 10 {
		t.Fatalf("%+v", p)
	}
	h := workdb.NewHousekeeping(w.DB)
	_, err := h.Clean(t.Context(), pgtest.KeepTen, 0)
	w.Must(err)
	if diff := cmp.Diff(before, w.figuresOf(id), cmp.AllowUnexported(reminder.Board{}, reminder.Cockpit{})); diff != "" {
		t.Errorf("the figures changed (-before +after):\n%s", diff)
	}
	if n := w.dropRows(id); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	p, err := w.Reports.People(t.Context(), id)
	if w.Must(err); p.CountedAt == nil || p.Partial {
		t.Errorf("%+v: when the users were counted is unknown", p)
	}
	lines, err := w.Boards.Balance(t.Context(), id)
	if w.Must(err); len(lines) != 0 {
		t.Errorf("%d lines are counted from rows that are gone", len(lines))
	}
	kept, err := w.Boards.KeptBalance(t.Context(), id)
	if w.Must(err); len(kept) != 24 {
		t.Errorf("%d lines are kept, want 24", len(kept))
	}
	for _, l := range kept {
		if l.Difference() != 0 || l.Kept != (delivery.Counts{Reserved: 30, Sent: 29, Skipped: 1}) {
			t.Errorf("%+v", l)
		}
	}
	if n, err := h.Archived(t.Context()); err != nil || n != 1 {
		t.Errorf("%d drops are archived, %v", n, err)
	}
	at, err := w.Reservations.RowsRemoved(t.Context(), id)
	if w.Must(err); at == nil {
		t.Error("explain does not know that the rows are gone")
	}
	// A change of the template plans all steps again, which find nothing to do.
	w.Exec(`update templates set state = 'cancelled' where id = $1`, id)
	if n, err := h.Clean(t.Context(), pgtest.KeepTen, 0); err != nil || n > 1 { // a note of the inbox
		t.Errorf("again: %d removed, %v", n, err)
	}
	if diff := cmp.Diff(before.People, w.figuresOf(id).People); diff != "" || w.dropRows(id) != 0 {
		t.Errorf("after a change: %s", diff)
	}
}

// TestDropsThatAreNotSettledStay: of a drop that is not over, or has something to deliver, the
// slots stay, and the step looks again a day later.
func TestDropsThatAreNotSettledStay(t *testing.T) {
	for name, change := range map[string]string{
		"still published": `update templates set state = 'published', ended_at = null where id = {id}`,
		"a slot is sent":  `update slots set state = 'sending' where template_id = {id} and slot = 1`,
		"a batch is open": `update batches set state = 'ready' where template_id = {id} and owner_id = (select min(id) from slots)`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			id := w.over(6)
			w.Exec(withID(change, id))
			before := w.figuresOf(id)
			_, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, 0)
			w.Must(err)
			if n := w.Number(`select count(*) from slots where template_id = $1`, id); n != 12 {
				t.Errorf("%d slots are left", n)
			}
			if n := w.Number(`select count(*) from removals where step = 'drops' and object_id = $1 and at > now() - interval '9 days 2 minutes' and at < now() - interval '8 days 23 hours'`, id); n != 1 {
				t.Error("the drop is not looked at again")
			}
			if diff := cmp.Diff(before.People, w.figuresOf(id).People); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestArchivingMayBeStoppedAnywhere: whenever the program is stopped, also by several at once,
// the figures are those from before.
func TestArchivingMayBeStoppedAnywhere(t *testing.T) {
	w := newFixture(t)
	id := w.over(6000)
	before := w.figuresOf(id)
	h := workdb.NewHousekeeping(w.DB)
	stopped := 0
	for wait := time.Millisecond; wait < 120*time.Millisecond; wait += 6 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if _, err := h.Clean(ctx, pgtest.KeepTen, 0); err != nil {
			stopped++
		}
		cancel()
		if diff := cmp.Diff(before.People, w.figuresOf(id).People); diff != "" {
			t.Fatalf("stopped after %v: %s", wait, diff)
		}
	}
	for _, err := range pgtest.Together(3, func(int) error { _, err := h.Clean(context.Background(), pgtest.KeepTen, 0); return err }) {
		w.Must(err)
	}
	// A cleaning that found batches which another one was removing looks again the next day.
	w.Exec(`update removals set at = at - interval '1 day' where step = 'drops'`)
	_, err := h.Clean(t.Context(), pgtest.KeepTen, 0)
	w.Must(err)
	after := w.figuresOf(id)
	before.Growth, after.Growth = nil, nil // thinned to 500 values at another place
	if diff := cmp.Diff(before, after, cmp.AllowUnexported(reminder.Board{}, reminder.Cockpit{})); diff != "" || w.dropRows(id) != 0 || stopped == 0 {
		t.Errorf("stopped %d times, %d rows are left: %s", stopped, w.dropRows(id), diff)
	}
}

// TestStepsSayHowFarTheyAre: a step that cannot finish is behind until a run finishes it, and
// says how many drops are left.
func TestStepsSayHowFarTheyAre(t *testing.T) {
	w := newFixture(t)
	w.over(6)
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `lock table booking_growth in access exclusive mode`)
	w.Must(err)
	h := workdb.NewHousekeeping(w.DB)
	for range 2 {
		_, err := h.Clean(t.Context(), pgtest.KeepTen, 300*time.Millisecond)
		w.Must(err)
	}
	steps, err := h.Steps(t.Context())
	w.Must(err)
	if s := steps[0]; s.Name != "reservations" || !s.Behind() || s.EndedAt != nil || s.Left == nil || *s.Left != 1 || s.BehindFor(pgtest.Clock().Add(time.Hour)) < time.Hour {
		t.Errorf("%+v", s)
	}
	for _, s := range steps[1:] {
		if s.Behind() || s.EndedAt == nil || *s.Left != 0 {
			t.Errorf("%+v", s)
		}
	}
	w.Must(tx.Rollback(t.Context()))
	_, err = h.Clean(t.Context(), pgtest.KeepTen, 0)
	w.Must(err)
	steps, err = h.Steps(t.Context())
	w.Must(err)
	for _, s := range steps {
		if s.Behind() || s.Name == "reservations" && (s.EndedAt == nil || s.Removed == 0 || s.RemovedEver < s.Removed || s.PerSecond == 0) {
			t.Errorf("%+v", s)
		}
	}
}

// TestBatchesAreExaminedAgain: a batch that cannot be removed yet does not keep the batches
// after it from being removed, and is examined again.
func TestBatchesAreExaminedAgain(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1, 9) n", pgtest.Row{"owner_id": pgtest.SQL("n"), "template_id": 0, "created_at": pgtest.SQL("now() - interval '12 days'"),
		"state":           pgtest.SQL("case when n in (2, 5) then 'ready' else 'done' end"),
		"worthless_after": pgtest.SQL("case when n = 3 then now() - interval '9 days 22 hours' else now() - interval '11 days' end")})
	h := workdb.NewHousekeeping(w.DB)
	left := func() int64 {
		_, err := h.Clean(t.Context(), pgtest.KeepTen, 0)
		w.Must(err)
		return w.Number(`select coalesce(sum(owner_id), 0) from batches`)
	}
	if got := left(); got != 2+3+5 {
		t.Errorf("left is %d", got)
	}
	w.Exec(`update batches set state = 'done', worthless_after = now() - interval '11 days'`)
	if got := left(); got != 2+3+5 {
		t.Errorf("before they are looked at again, left is %d", got)
	}
	w.Exec(`update housekeeping_steps set again_at = again_at - interval '2 hours 1 minute'`) // batch 3 is past by then
	if got := left(); got != 0 {
		t.Errorf("left is %d", got)
	}
}

// TestListsGoWithTheirJob: the rows of a list are removed before their job; a job that a program
// of the version before removes takes them along.
func TestListsGoWithTheirJob(t *testing.T) {
	w := newFixture(t)
	const job = `insert into jobs (kind, title, needs, state, created_by, actor, finished_at) values ('coupons.grant', 'x', 'x', 'done', 'x', '{}', now() - $1::interval)`
	for _, age := range []string{"31 days", "29 days", "1 day"} {
		w.Exec(job, age)
	}
	w.Exec(`insert into grant_rows (sheet_id, line) select j, n from generate_series(1, 3) j, generate_series(1, 6000) n`)
	n, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), workdb.Retention{Jobs: 30 * pgtest.Day}, 0)
	if w.Must(err); n != 6001 {
		t.Errorf("%d removed", n)
	}
	w.Exec(`delete from jobs where id = 2`)
	if got := w.Number(`select min(sheet_id) * 10000 + count(*) from grant_rows`); got != 36000 {
		t.Errorf("left: %d", got)
	}
}
