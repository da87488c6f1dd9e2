package postgres_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

// fillFuture stores a thousand of everything that becomes due in an hour.
func fillFuture(w *pgtest.Fixture) {
	w.Shops(10)
	w.Fill("coupons", "generate_series(1, 1000) n", pgtest.Row{"user_id": pgtest.SQL("n"), "expires_at": pgtest.SQL("now() + interval '1 hour'")})
	w.Fill("coupons", "generate_series(1, 1000) n", pgtest.Row{"user_id": pgtest.SQL("n"), "state": "locked", "order_id": pgtest.SQL("'o' || n"),
		"locked_at": pgtest.SQL("now()"), "locked_until": pgtest.SQL("now() + interval '1 hour'")})
	w.Exec(`insert into notices (user_id, template_id, day, days, due_at, expires_at) select n, 1, now()::date, 1, now() + interval '1 hour', now() + interval '2 hours' from generate_series(1, 1000) n`)
	w.Exec(`insert into wallet_passes (coupon_id, user_id, expires_at, coupon_version, next_at) select n, n, now() + interval '1 hour', 1, now() + interval '1 hour' from generate_series(1, 1000) n`)
	w.Fill("coupons", "generate_series(1, 1000) n", pgtest.Row{"user_id": pgtest.SQL("n"), "state": "suspended", "expires_at": pgtest.SQL("now() + interval '1 hour'")})
	w.Exec(`insert into hook_endpoints (shop_number, url, secret, created_by) values (10, 'https://shop.example/', 'x', 'x')`)
	w.Exec(`insert into hook_events (shop_number, type, subject, sequence, at, payload) values (10, 'drop.opened', 'x', 1, now(), '{}')`)
	w.Exec(`insert into hook_deliveries (endpoint_id, event_id, next_at) select 1, 1, now() + interval '1 hour' from generate_series(1, 1000)`)
	w.Fill("campaigns", "generate_series(1, 1000)", pgtest.Row{"shop_number": 10, "state": "scheduled",
		"starts_at": pgtest.SQL("now() + interval '1 hour'"), "ends_at": pgtest.SQL("now() + interval '2 hours'")})
	for _, table := range []string{"coupons", "notices", "wallet_passes", "hook_deliveries", "campaigns"} {
		w.Exec(`vacuum analyze ` + table)
	}
}

// TestSweepsReadWhatIsDue: a sweep that runs every second finds due rows by an index. Rows that
// become due later cost nothing, however many there are. A condition with clock_timestamp()
// would be evaluated row by row.
func TestSweepsReadWhatIsDue(t *testing.T) {
	w := pgtest.New(t)
	fillFuture(w)
	seen := &recorder{all: true}
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), Tracer: seen})
	w.Must(err)
	t.Cleanup(db.Close)
	waits := couponsdb.NewWaitlists(db, postgres.Grouping{})
	t.Cleanup(waits.Close)
	steps, notices, wallet, hooks, alerts := couponsdb.NewCouponSteps(db), couponsdb.NewNotices(db), couponsdb.NewWallet(db), workdb.NewHooks(db), workdb.NewAlerts(db, nil)
	ctx, reviews := t.Context(), couponsdb.NewReviews(db)
	for name, sweep := range map[string]func() error{
		"locks":            func() error { _, err := steps.EndLocks(ctx, 100); return err },
		"expiry":           func() error { _, _, err := steps.Expire(ctx, couponsdb.ExpiryCursor{}, 100); return err },
		"overdue":          func() error { _, _, err := steps.Overdue(ctx, couponsdb.ExpiryCursor{}, 100); return err },
		"notices":          func() error { _, _, err := notices.CutNotices(ctx, 100); return err },
		"waitlists":        func() error { _, err := waits.Unfilled(ctx, 0, 100); return err },
		"expired passes":   func() error { _, err := wallet.NoteExpired(ctx, 100); return err },
		"passes":           func() error { _, err := wallet.Due(ctx); return err },
		"lease of passes":  func() error { _, _, err := wallet.Lease(ctx, 100, time.Minute); return err },
		"webhooks":         func() error { _, err := hooks.DueEndpoints(ctx, 100); return err },
		"alert deliveries": func() error { _, err := alerts.Take(ctx, 100, time.Minute); return err },
		"campaigns": func() error {
			_, _, err := campaignsdb.NewCampaigns(db, audiencedb.NewSegments(db)).Due(ctx, 0, 100)
			return err
		},
		"decisions": func() error { _, err := reviews.Work(ctx); return err },
		"reviews":   func() error { _, err := reviews.RunDue(ctx); return err },
		"suspended": func() error { _, err := reviews.EndExpired(ctx, 100); return err },
		"questions": func() error { _, err := db.Ask(ctx, allQuestions()); return err },
	} {
		seen.list = nil
		w.Must(sweep())
		if len(seen.list) == 0 {
			t.Errorf("%s: no statement was seen", name)
		}
		for _, s := range seen.list {
			if s.sql == "begin" || s.sql == "commit" || strings.HasPrefix(s.sql, "set ") {
				continue
			}
			sum := 0.0
			for _, rows := range readBy(t, w, s) {
				sum += rows
			}
			if sum > 30 {
				t.Errorf("%s reads %v rows:\n%s", name, sum, s.sql)
			}
		}
	}
}

// TestQuestionsReadWhatIsOpen: thousands of finished rows cost a question nothing, even while
// the statistics of their tables say that half of them are open.
func TestQuestionsReadWhatIsOpen(t *testing.T) {
	w := pgtest.New(t)
	fillFuture(w)
	w.Exec(`update notice_cursor set planned_to = (select max(id) from coupons), seen_to = (select max(id) from coupons)`)
	w.Exec(`delete from coupons where state = 'locked'`)
	for _, table := range []struct {
		name, end string
		row       pgtest.Row
	}{
		{"batches", "done", pgtest.Row{"owner_id": pgtest.SQL("n"), "state": pgtest.SQL("case n % 2 when 0 then 'ready' else 'done' end")}},
		{"phone_verifications", "sent", pgtest.Row{"user_id": pgtest.SQL("n"), "phone": "+4915112345678", "number": "+4915112345678", "expires_at": pgtest.SQL("now()"),
			"state": pgtest.SQL("case n % 2 when 0 then 'waiting' else 'sent' end")}},
	} {
		w.Exec(`alter table ` + table.name + ` set (autovacuum_enabled = off)`)
		w.Fill(table.name, "generate_series(1, 5000) n", table.row)
		w.Exec(`analyze ` + table.name)
		w.Exec(`update `+table.name+` set state = $1`, table.end)
		w.Exec(`vacuum ` + table.name)
	}
	seen := &recorder{all: true}
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), Tracer: seen})
	w.Must(err)
	t.Cleanup(db.Close)
	some, err := db.Ask(t.Context(), allQuestions())
	if w.Must(err); slices.Contains(some, true) {
		t.Errorf("nothing is due: %v", some)
	}
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { w.Must(tx.Rollback(t.Context())) }()
	for table, rows := range readIn(t, tx, seen.list[len(seen.list)-1]) {
		if rows > 10 {
			t.Errorf("%v rows of %s are read", rows, table)
		}
	}
}

// questions are the questions of the sweeps, by name. Each has statements; after each statement
// one sweep may have something to do.
var questions = map[string]struct {
	ask  postgres.Question
	when []string
}{
	"slots": {dropsdb.SlotsWait, []string{
		`update slots set due_at = now() where id = (select min(id) from slots)`,
		`update slots set state = 'firing' where id = (select min(id) from slots)`,
		`update slots set state = 'sending' where id = (select min(id) from slots)`}},
	"announcements": {dropsdb.AnnouncementsWait, []string{
		`insert into announcements (template_id, kind, opens_at, created_by, created_at, worthless_after) select id, 'correction', opens_at, 'x', now(), now() from templates limit 1`}},
	"templates": {dropsdb.TemplatesWait, []string{
		`update templates set opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = date_trunc('second', now())`,
		`update templates set valid_until = now()`}},
	"draws": {dropsdb.DrawsWait, []string{
		`update templates set opening_mode = 'draw'`,
		`with t as (update templates set state = 'cancelled' returning id) ` + drawOf("open", "now() + interval '1 hour'", "t"),
		drawOf("open", "now()", "templates"),
		drawOf("closed", "now()", "templates"),
		drawOf("sealed", "now() - interval '2 minutes'", "templates")}},
	"doors": {audiencedb.DoorsWait, []string{
		`insert into doors (template_id, place, name, who, lead_minutes, share, user_limit, texts) select id, 1, 'Members', 'all', 1440, 0, 0, '{}' from templates where state = 'published' limit 1`}},
	"batches": {deliverydb.BatchesWait, []string{batchOf("ready"), batchOf("running")}},
	"campaigns": {campaignsdb.CampaignsWait, []string{
		`update campaigns set starts_at = now() where id = 1`,
		`update campaigns set state = 'running', started_at = now() where id = 1`,
		`update campaigns set state = 'failed' where id = 1`,
		`update campaigns set held_at = now(), ends_at = now(), starts_at = now() - interval '1 hour', state = 'running', settled_at = now() where id = 1`}},
	"tests": {deliverydb.ChannelTestsWait, []string{
		`insert into channel_tests (channel, recipient, by_user, due_at, created_by) values (1, 'x', false, now(), 'x')`}},
	"codes": {audiencedb.VerificationsWait, []string{
		`insert into phone_verifications (user_id, phone, number, expires_at) values (1, '+4915112345678', '+4915112345678', now())`}},
	"coupons": {couponsdb.CouponsWait, []string{
		`update coupons set expires_at = now() where id = (select min(id) from coupons where state = 'unused')`,
		`update coupons set state = 'locked', order_id = 'o', locked_at = now(), locked_until = now() + interval '1 hour' where id = (select min(id) from coupons where state = 'unused')`}},
	"notices": {couponsdb.NoticesWait, []string{
		`update notices set due_at = now() where user_id = 1`,
		`update notice_cursor set planned_to = seen_to - 1`,
		`update notice_cursor set planned_to = seen_to - 1, seen_to = seen_to - 1`,
		`insert into notice_runs (template_id, days, due_at) values (1, 1, now())`}},
	"waitlists": {couponsdb.WaitlistsWait, []string{
		`update templates set held = 1`,
		`insert into waiters (template_id, user_id, joined_at, state, offer_until) select min(id), 5, now(), 'offered', now() from templates`,
		`insert into coupon_returns (coupon_id, template_id, due_at) select min(id), min(id), now() from templates`,
		`with paused as (update templates set state = 'paused' returning id) insert into waitlists (template_id, joined, waiting, offered) select min(id), 1, 1, 1 from paused`,
		`with over as (update templates set opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = date_trunc('second', now()) returning id)
			insert into waitlists (template_id) select id from over limit 1`}},
	"series": {dropsdb.SeriesWait, []string{
		`insert into series (shop_number, name, rule, starts_on, clock, content) select min(number), 'x', 'FREQ=DAILY', '2027-01-01', 0, '{}' from shops`,
		`with t as (update templates set opens_at = date_trunc('second', now()) + interval '1 hour', closes_at = date_trunc('second', now()) + interval '2 hours' where state = 'published' returning id)
			insert into series_drops (series_id, day, state, template_id) select 1, '2027-01-01', 'kept', min(id) from t`}},
	"recipes": {campaignsdb.RecipesWait, []string{
		`insert into recipes (shop_number, form, settings, is_on) select min(number), 'missed', '{}', true from shops`,
		`insert into recipe_rounds (recipe_id, key, until, settings) values (1, 'drop:1', now(), '{}')`}},
	"reviews": {couponsdb.ReviewsWait, []string{
		`with s as (insert into claim_seconds select id, date_trunc('second', now()) - interval '3 minutes', 1 from templates limit 1)
			update templates set protection = 'standard', opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = date_trunc('second', now()) - interval '1 hour'`,
		`insert into review_runs (template_id, shop_number, claims, found, left_out, wanted_at) select id, 10, 0, 0, 0, now() from templates limit 1`,
		`insert into reviews (template_id, shop_number, rules, facts, coupons, state) select id, 10, '{at_once}', '{}', 0, 'returning' from templates limit 1`,
		`update coupons set expires_at = now() where id = (select min(id) from coupons where state = 'suspended')`}},
	"jobs": {workdb.JobsWait, []string{
		`insert into jobs (kind, title, needs, created_by, actor) values ('import', 'May', 'x', 'x', '{}')`,
		`insert into jobs (kind, title, needs, created_by, actor, state, next_run_at) values ('import', 'May', 'x', 'x', '{}', 'running', now())`}},
	"dead letters": {deliverydb.DeadLetterJobsWait, []string{
		`insert into dead_letter_jobs (action, filter, created_by) values ('replay', '{}', 'ann')`}},
	"alert deliveries": {workdb.AlertDeliveriesWait, []string{alertTo(`d as (
			insert into alert_destinations (form, name, url, language, kinds, created_by) values ('slack', 'x', 'x', 'en', '{}', 'x') returning id
		) insert into alert_deliveries (alert_id, destination_id, deadline_at) select a.id, d.id, now() from a, d`)}},
	"alert pushes": {workdb.AlertPushesWait, []string{alertTo(`m as (
			insert into staff (email, role) values ('x@example.com', 'viewer') returning id
		), b as (
			insert into staff_browsers (staff_id, sign_in, endpoint, p256dh, auth, agent, language) select id, gen_random_uuid(), 'x', 'x', 'x', 'x', 'en' from m returning id
		) insert into alert_pushes (alert_id, browser_id, deadline_at) select a.id, b.id, now() from a, b`)}},
	"password mails": {accessdb.PasswordMailsWait, []string{`with m as (
			insert into staff (email, role) values ('y@example.com', 'viewer') returning id
		) insert into password_mails (staff_id, locale) select id, 'en' from m`}},
	"early receipts": {deliverydb.EarlyReceiptsWait, []string{
		`insert into sms_early (provider, serial, status, cause) values ('x', 'x', 'delivered', '')`}},
	"gates": {couponsdb.GatesWait, []string{
		`update templates set claim_mode = 'gate'`,
		`insert into gates (template_id, shards, epoch, state, reason, lease_until) select id, 1, 1, 'standing', 'x', now() from templates limit 1`}},
}

// drawOf stores a draw whose entries close at an instant and, once sealed, whose round was minutes ago.
func drawOf(state, closes, from string) string {
	return `insert into draws (template_id, template_version, state, key, source, cards, opens_at, closes_at, seal, sealed_at, round)
		select id, 1, '` + state + `', 'k', 'drand', '{card}', now() - interval '1 hour', ` + closes + `, 's', now(), 1000 from ` + from
}

func alertTo(next string) string {
	return `with a as (insert into alerts (kind, key, name) values ('channel', 'x', 'x') returning id), ` + next
}

func batchOf(state string) string {
	return `insert into batches (kind, owner_id, channel, from_user, to_user, due_count, due, due_at, worthless_after, state)
		values ('reminder', 1, 0, 1, 1, 1, '', now(), now() + interval '1 hour', '` + state + `')`
}

func allQuestions() (list []postgres.Question) {
	for _, q := range questions {
		list = append(list, q.ask)
	}
	return list
}

// TestQuestionsOfSweeps: while nothing is due every answer is no. One due row changes the answer
// to its question.
func TestQuestionsOfSweeps(t *testing.T) {
	w := pgtest.New(t)
	w.Published(2 * time.Hour)
	fillFuture(w)
	w.Exec(`delete from coupons where state = 'locked'`) // a lock waits until it ends
	w.Exec(`update notice_cursor set planned_to = (select max(id) from coupons), seen_to = (select max(id) from coupons)`)
	if some, err := w.DB.Ask(t.Context(), allQuestions()); err != nil || len(some) != len(questions) || slices.Contains(some, true) {
		t.Errorf("nothing is due: %v %v", some, err)
	}
	for name, q := range questions {
		for _, change := range q.when {
			tx, err := w.SQL.Begin(t.Context())
			w.Must(err)
			var some bool
			_, err = tx.Exec(t.Context(), change)
			if err == nil {
				err = tx.QueryRow(t.Context(), `select exists (`+string(q.ask)+`)`).Scan(&some)
			}
			if err != nil || !some {
				t.Errorf("%s: the answer is %v after %s: %v", name, some, change, err)
			}
			w.Must(tx.Rollback(t.Context()))
		}
	}
	if some, err := w.DB.Ask(t.Context(), nil); err != nil || len(some) != 0 {
		t.Errorf("no question: %v %v", some, err)
	}
}
