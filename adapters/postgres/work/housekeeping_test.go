package work_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
)

// aged fills every table that is cleaned with rows on both sides of their retention: ten days
// for deliveries, and for other rows as in pgtest.KeepTen.
func (w *fixture) aged() {
	w.Helper()
	old, recent := w.Published(2*time.Hour), w.Published(2*time.Hour)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '10 days 1 minute', closes_at = now() - interval '9 days' where id = $1`, old.ID)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '9 days 23 hours', closes_at = now() where id = $1`, recent.ID)
	w.Exec(`insert into reservations (template_id, user_id, slots) select t, n, 1 from unnest($1::bigint[]) t, generate_series(1, 6000) n`, []int64{old.ID, recent.ID})
	w.Exec(`insert into former_reservations (template_id, user_id) select t, n from unnest($1::bigint[]) t, generate_series(1, 5) n`, []int64{old.ID, recent.ID})
	w.Exec(`insert into booking_growth (template_id, minute, delta) select t, now(), 1 from unnest($1::bigint[]) t`, []int64{old.ID, recent.ID})
	w.Fill("batches", "generate_series(8, 11) n", pgtest.Row{"owner_id": pgtest.SQL("n"), "template_id": old.ID,
		"state": pgtest.SQL("case when n % 2 = 0 then 'done' else 'ready' end"), "created_at": pgtest.SQL("now() - interval '12 days'"), "worthless_after": pgtest.SQL("now() - (n || ' days')::interval - interval '1 hour'")})
	w.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, 1, 0, 'dead', 'x' from batches`)
	w.Exec(`delete from audit; insert into audit (at, actor, action, object_kind, object_id) select now() - (n || ' days')::interval, 'system', 'x', 'x', 'x' from generate_series(1, 30) n`)
	w.Exec(`insert into idempotency_keys (actor, key, request_hash, locked_until, created_at)
		select 'a', n, '', now(), now() - case when n <= 12000 then interval '25 hours' else interval '23 hours' end from generate_series(1, 12100) n`)
	w.Exec(`insert into handled_events (handler, event_id, at) select 'h', gen_random_uuid(), now() - (n || ' days')::interval from generate_series(1, 9) n`)
	w.Exec(`insert into channel_tests (channel, recipient, by_user, due_at, created_by, state, created_at)
		select 1, '', true, now(), 'system', case when n = 12 then 'waiting' else 'done' end, now() - (n || ' days')::interval from generate_series(8, 12) n`)
	w.Exec(`insert into sessions (token, data, expiry) values ('old', '', now() - interval '2 hours'), ('new', '', now() + interval '1 minute'), ('just', '', now() - interval '1 minute')`)
}

// left counts the rows of every cleaned table.
func (w *fixture) left() map[string]int64 {
	w.Helper()
	rows := map[string]int64{}
	for _, table := range []string{"batches", "exceptions", "reservations", "former_reservations", "booking_growth", "audit", "idempotency_keys", "handled_events", "sessions", "channel_tests"} {
		rows[table] = w.Number(`select count(*) from ` + table)
	}
	return rows
}

var afterCleaning = map[string]int64{
	"batches":    3, // the oldest batch is not done, and one finished batch is not old enough
	"exceptions": 3, "reservations": 6000, "former_reservations": 5, "booking_growth": 1, "audit": 20, "idempotency_keys": 100, "handled_events": 7, "sessions": 2, "channel_tests": 3,
}

func same(a, b map[string]int64) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestCleanRemovesOnlyWhatIsPast(t *testing.T) {
	w := newFixture(t)
	w.aged()
	h := workdb.NewHousekeeping(w.DB)
	n, err := h.Clean(t.Context(), pgtest.KeepTen, 0)
	const noted = 1 // the change of the inbox by the removed batches, which is marked as seen
	if want := int64(1 + 1 + 6000 + 5 + 1 + 10 + 12000 + 2 + 1 + 2 + noted); err != nil || n != want {
		t.Errorf("%d removed (%v), want %d", n, err, want)
	}
	if got := w.left(); !same(got, afterCleaning) {
		t.Errorf("left %v, want %v", got, afterCleaning)
	}
	if n := w.Number(`select count(*) from templates`) + w.Number(`select count(*) from slots`); n != 2+24 {
		t.Errorf("%d templates and slots", n)
	}
	if n, err := h.Clean(t.Context(), pgtest.KeepTen, 0); n != 0 || err != nil {
		t.Errorf("again: %d %v", n, err)
	}
}

func TestZeroKeepsForEver(t *testing.T) {
	w := newFixture(t)
	w.aged()
	before := w.left()
	n, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), workdb.Retention{}, 0)
	before["sessions"]-- // the only ones without a setting
	if err != nil || n != 1 || !same(w.left(), before) {
		t.Errorf("%d removed (%v), left %v of %v", n, err, w.left(), before)
	}
}

// TestCleaningMayBeStoppedAnywhere: a shutdown, or another process that cleans at the same time,
// may stop a cleaning at any point.
func TestCleaningMayBeStoppedAnywhere(t *testing.T) {
	w := newFixture(t)
	w.aged()
	h := workdb.NewHousekeeping(w.DB)
	stopped := 0
	for wait := time.Millisecond; wait < 30*time.Millisecond; wait += 3 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if _, err := h.Clean(ctx, pgtest.KeepTen, 0); err != nil {
			stopped++
		}
		cancel()
	}
	for _, err := range pgtest.Together(3, func(int) error { _, err := h.Clean(context.Background(), pgtest.KeepTen, 0); return err }) {
		w.Must(err)
	}
	if got := w.left(); stopped == 0 || !same(got, afterCleaning) {
		t.Errorf("stopped %d times, left %v, want %v", stopped, got, afterCleaning)
	}
}

// A step whose table is locked, or that takes too long, does not keep other steps from running.
func TestAStepThatIsHeldUpHoldsUpNoOther(t *testing.T) {
	w := newFixture(t)
	w.aged()
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `lock table exceptions, former_reservations in access exclusive mode`)
	w.Must(err)
	if _, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, time.Second); err != nil {
		t.Errorf("a budget that is used up: %v", err)
	}
	w.Must(tx.Rollback(t.Context()))
	got := w.left()
	for table, want := range afterCleaning {
		held := table == "batches" || table == "exceptions" || table == "former_reservations"
		if (got[table] == want) == held {
			t.Errorf("%s: %d rows are left, after a whole cleaning %d", table, got[table], want)
		}
	}
}

// TestOutcomesGoBeforeTheirBatches: a batch is removed after its outcomes, so that no statement
// removes the outcomes of a whole chunk of batches.
func TestOutcomesGoBeforeTheirBatches(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1, 40) n", pgtest.Row{"owner_id": pgtest.SQL("n"), "to_user": 1000, "state": "done", "worthless_after": pgtest.SQL("now() - interval '11 days'")})
	w.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, n, 0, 'dead', 'x' from batches, generate_series(1, 300) n`)
	w.Exec(`create function alone() returns trigger language plpgsql as $$ begin
		if exists (select from exceptions where batch_id = old.id) then raise 'with its outcomes'; end if; return old; end $$`)
	w.Exec(`create trigger alone before delete on batches for each row execute function alone()`)
	const noted = 1 // the change of the inbox by the removed batches, which is marked as seen
	if n, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, 0); err != nil || n != 40*301+noted {
		t.Errorf("%d removed, want %d, %v", n, 40*301+noted, err)
	}
}

// TestFeedbackOutlivesItsBatches: reports are removed with their batch. Their totals stay,
// however often the cleaning is repeated.
func TestFeedbackOutlivesItsBatches(t *testing.T) {
	w := newFixture(t)
	// Of three bounced messages two are not recorded as sent.
	w.Fill("batches", "generate_series(1, 6) n", pgtest.Row{"owner_id": pgtest.SQL("n % 2"), "template_id": 7, "channel": delivery.Email, "from_user": pgtest.SQL("n"),
		"to_user": pgtest.SQL("n"), "state": "done", "worthless_after": pgtest.SQL("now() - interval '1 day' * (case when n <= 4 then 11 else 9 end)"), "due_count": 10,
		"sent": pgtest.Bitmap(1, 2, 3, 4, 5), "sent_count": 5})
	w.Exec(`insert into batch_feedback (batch_id, kind, owner_id, channel, delivered, bounced, complained, delivered_count, bounced_count, complained_count)
		select id, kind, owner_id, channel, $1, $2, $3, 4, 3, 2 from batches where from_user <> 2`, pgtest.Bitmap(1, 2, 3, 4), pgtest.Bitmap(5, 6, 7), pgtest.Bitmap(1, 2))
	w.Exec(`insert into feedback_reports (batch_id, user_id, status, provider) select batch_id, n, 'bounced', 'ses' from batch_feedback, generate_series(1, 3) n`)
	sums := func() (n int64) {
		list, err := pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{0, 1})
		w.Must(err)
		for _, s := range list {
			n += s.Delivered*10000 + s.Bounced*100 + s.Complained
		}
		return n
	}
	before := sums()
	if before != 5*(4*10000+1*100+2) {
		t.Fatalf("%d", before)
	}
	for range 2 {
		if _, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, 0); err != nil {
			t.Fatal(err)
		}
		if n := w.Number(`select count(*) * 100 + (select count(*) from feedback_reports) from batch_feedback`); n != 2*100+6 {
			t.Errorf("%d rows are left", n)
		}
		if n := sums(); n != before {
			t.Errorf("the sums are %d, they were %d", n, before)
		}
	}
}

// Storing reports locks the counts of batches in the order of ids. The cleaning uses the same
// order, even if it has to correct only a later batch.
func TestCleaningMeetsReportsInOrder(t *testing.T) {
	w := newFixture(t)
	w.Fill("batches", "generate_series(1, 2) n", pgtest.Row{"template_id": 7, "channel": delivery.Email, "from_user": pgtest.SQL("n"), "to_user": pgtest.SQL("n"),
		"state": "done", "worthless_after": pgtest.SQL("now() - interval '11 days'"), "due_count": 5, "sent": pgtest.Bitmap(1, 2, 3), "sent_count": pgtest.SQL("3 + 2 * (n % 2)")})
	w.Exec(`insert into batch_feedback (batch_id, kind, owner_id, channel, delivered, delivered_count) select id, kind, owner_id, channel, $1, 2 from batches`, pgtest.Bitmap(1, 2))
	first, second := w.Number(`select min(id) from batches`), w.Number(`select max(id) from batches`)
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer tx.Rollback(context.Background())
	lock := `select from batch_feedback where batch_id = $1 for update`
	_, err = tx.Exec(t.Context(), lock, first)
	w.Must(err)
	cleaned := make(chan error, 1)
	go func() {
		_, err := workdb.NewHousekeeping(w.DB).Clean(context.Background(), pgtest.KeepTen, 0)
		cleaned <- err
	}()
	w.Blocked(1)
	_, err = tx.Exec(t.Context(), lock+` nowait`, second)
	w.Must(err)
	w.Must(tx.Commit(t.Context()))
	if w.Must(<-cleaned); w.Number(`select count(*) from batches`) != 0 {
		t.Error("batches are left")
	}
}

// Deleted drafts and models are removed once they can no longer be restored. Texts of the
// drafts' drops are removed with them; texts of other drops stay.
func TestDeletedDraftsEnd(t *testing.T) {
	w := newFixture(t)
	w.Shops(10)
	w.Exec(`insert into deleted_drafts (kind, id, shop_number, name, content, deleted_by, deleted_at) values
		('template', 5, 10, 'old', '{}', 'x', now() - interval '31 days'), ('campaign', 6, 10, 'old', '{}', 'x', now() - interval '31 days'),
		('template', 7, 10, 'new', '{}', 'x', now() - interval '29 days')`)
	w.Exec(`insert into drop_models (shop_number, name, content, saved_by, deleted_at) values
		(10, 'old', '{}', 'x', now() - interval '31 days'), (10, 'new', '{}', 'x', now() - interval '29 days'), (10, 'kept', '{}', 'x', null)`)
	for _, id := range []int{0, 5, 6, 7} {
		w.Exec(`insert into message_versions (shop_number, template_id, kind, created_by) values (10, $1, 'reminder', 'x')`, id)
		w.Exec(`insert into message_looks (template_id, by_member) values ($1, 'x')`, id)
	}
	_, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), workdb.Retention{}, 0)
	w.Must(err)
	var drafts, texts, looks []int64
	w.Must(w.SQL.QueryRow(t.Context(), `select array(select id from deleted_drafts order by 1), array(select template_id from message_versions order by 1),
		array(select template_id from message_looks order by 1)`).Scan(&drafts, &texts, &looks))
	if got := fmt.Sprint(drafts, texts, looks); got != "[7] [0 6 7] [0 6 7]" {
		t.Errorf("left are %s", got)
	}
	var models string
	w.Must(w.SQL.QueryRow(t.Context(), `select string_agg(name, ' ' order by id) from drop_models`).Scan(&models))
	if models != "new kept" {
		t.Errorf("left are the models %s", models)
	}
}

// Lists that rounds of recipes made are removed with their members; lists of staff stay.
func TestListsOfRecipesEnd(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into segments (name, kind, rule, created_by, hidden, created_at) values ('old round', 'list', '{}', 'x', true, now() - interval '11 days'),
		('new round', 'list', '{}', 'x', true, now() - interval '9 days'), ('of staff', 'list', '{}', 'x', false, now() - interval '11 days')`)
	w.Exec(`insert into segment_members (segment_id, chunk, members, count) select id, 0, '', 1 from segments`)
	if _, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, 0); err != nil {
		t.Fatal(err)
	}
	var left string
	w.Must(w.SQL.QueryRow(t.Context(), `select string_agg(name, ', ' order by id) from segments join segment_members on segment_id = id`).Scan(&left))
	if left != "new round, of staff" {
		t.Errorf("left are %s", left)
	}
}

// Standing reservations of a series that has ended are removed, once its drops have opened, and the series is not read again. Other
// series keep theirs.
func TestStandingReservationsOfEndedSeriesEnd(t *testing.T) {
	w := newFixture(t)
	soon := w.Published(time.Hour)
	w.Exec(`insert into series (id, shop_number, name, rule, starts_on, clock, content, state, ended_at) overriding system value select id, 10, 'Series', '', '2027-01-01', 0, '{}', state, now() - days * interval '1 day'
		from (values (1, 'ended', 11), (2, 'ended', 9), (3, 'active', null), (4, 'ended', 11), (5, 'ended', 12)) s (id, state, days)`)
	w.Exec(`insert into series_drops (series_id, day, state, template_id) values (4, '2027-01-01', 'kept', $1)`, soon.ID)
	w.Exec(`insert into series_reservations (series_id, user_id, slots) select s, u, 1 from generate_series(1, 5) s, generate_series(1, case when s = 1 then 5001 else 1 end) u`)
	h := workdb.NewHousekeeping(w.DB)
	clean := func(want string) {
		t.Helper()
		for range 2 {
			_, err := h.Clean(t.Context(), pgtest.KeepTen, 0)
			w.Must(err)
		}
		var left string
		w.Must(w.SQL.QueryRow(t.Context(), `select string_agg(format('%s %s', id, ended_at is null), ', ' order by id) from series where exists (select from series_reservations where series_id = id) or ended_at is null`).Scan(&left))
		if left != want {
			t.Errorf("left are %s, want %s", left, want)
		}
	}
	clean("1 t, 2 f, 3 t, 4 f, 5 t")
	if n := w.Number(`select count(*) from series_reservations`); n != 3 {
		t.Errorf("%d standing reservations are left", n)
	}
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 second' where id = $1`, soon.ID)
	clean("1 t, 2 f, 3 t, 4 t, 5 t")
}

// Passes are removed with their devices 60 days after the expiry, even if wallets were turned
// off before the expiry could be noted.
func TestPassesEnd(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into wallet_passes (coupon_id, user_id, expires_at, coupon_version, expiry_noted)
		select n, 5, now() - interval '58 days' - n * interval '1 day', 1, n % 2 = 0 from generate_series(0, 5) n`)
	w.Exec(`insert into wallet_registrations (device, coupon_id, user_id, push_token) select 'd', coupon_id, 5, 't' from wallet_passes`)
	if _, err := workdb.NewHousekeeping(w.DB).Clean(t.Context(), pgtest.KeepTen, 0); err != nil {
		t.Fatal(err)
	}
	if n := w.Number(`select coalesce(sum(coupon_id), 0) from wallet_passes`) + w.Number(`select count(*) from wallet_registrations`); n != 0+1+2 {
		t.Errorf("%d: others than the passes 0 and 1 are left", n)
	}
}
