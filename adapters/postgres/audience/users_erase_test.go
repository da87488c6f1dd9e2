package audience_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// The user who is erased in these tests: no other row contains these texts.
const (
	goneID    = user.ID(7_770_123_456)
	goneName  = "Zebulon Quartermaine"
	goneMail  = "zebulon.q@erase.example"
	gonePhone = "+4915207770123"
	gonePush  = "https://push.example/device/zebulon-1"
)

// personal are the columns whose texts can contain a user's data, each with a statement that
// writes such a row. Other columns contain no such data, for the reason given in impersonal.
var personal = map[string]string{
	"users": `insert into users (id, name, email, phone, push, attributes) values ({id}, '{name}', '{mail}', '{phone}',
		'[{"endpoint":"{push}","p256dh":"x","auth":"y"}]', '{"second":"{mail}"}')`,
	"audit": `insert into audit (actor, action, object_kind, object_id, reason, before, after)
		values ('staff:1 Ada', 'user.export', 'user', '', 'asked by {mail}', '{"search":"{name}"}', '{"search":"{phone}","to":["{mail}"]}')`,
	"jobs": `insert into jobs (id, kind, title, needs, params, cursor, result, state, detail, created_by, actor, finished_at) overriding system value
		values (901, 'users.import', 'list of {name}.csv', 'manage_users', '{"x":"{mail}"}', '{"x":"{mail}"}', '{"x":"{mail}"}', 'done', 'near {mail}', 'staff:1 Ada', '{}', now())`,
	"job_errors": `insert into job_errors (job_id, line, row, error, because) values
		(901, 2, '{id} | {name} | {mail}', 'no {phone}', '[{"Name":"x","Key":"y","Message":"{mail}"}]'), (901, 3, '"{id}";Zeb', 'x', '[]')`,
	"uploads":      `insert into uploads (id, name, bytes, sha256, created_by) overriding system value values (902, '{name}.csv', 3, '\x00', 'staff:1 Ada')`,
	"upload_parts": `insert into upload_parts (upload_id, part, content) values (902, 0, '{mail}')`,
	"checked_rows": `insert into checked_rows (job_id, user_id, line, digest) values (901, {id}, 1, 1)`,
	"grant_rows":   `insert into grant_rows (sheet_id, line, input, user_id, result) values (901, 1, '{id} {mail}', {id}, 'no {mail}')`,
	"idempotency_keys": `insert into idempotency_keys (actor, key, request_hash, status, header, body, locked_until) values
		('user:{id}', 'a', '\x00', 200, '{}', '{"email":"{mail}"}', now()), ('key:1', 'b', '\x00', 200, '{"X":["{mail}"]}', '{}', now()), ('key:1', 'c', '\x00', 200, '{}', '{"to":"{phone}"}', now())`,
	"channel_tests": `insert into channel_tests (channel, recipient, by_user, due_at, state, detail, created_by) values
		(1, '{mail}', false, now(), 'done', 'no such {mail}', 'staff:1 Ada'), (1, '{id}', true, now(), 'done', 'x', 'staff:1 Ada')`,
	"dead_messages":      `insert into dead_messages (message_id, topic, handler, reason, payload) values ('m', 't', 'h', 'near {mail}', '{}')`,
	"dead_letter_groups": `insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, 'f', 1, now(), now(), 'no such {mail}')`,
	"provider_calls":     `insert into provider_calls (channel, worker, at, calls, messages, failed, total_ms, slowest_ms, error) values (1, 'w', now(), 1, 1, 1, 1, 1, 'no such {mail}')`,
	"segments": `insert into segments (id, name, kind, rule, created_by) overriding system value
		values (903, 'Friends of {name}', 'rules', '{"all":[{"field":"attribute","name":"second","op":"is","values":["{mail}"]}]}', 'staff:1 Ada')`,
	"hook_endpoints": `with s as (insert into shops (number, name, timezone) values (990, 'Far away', 'UTC') returning number)
		insert into hook_endpoints (id, shop_number, url, description, secret, last_error, created_by) overriding system value
		select 904, number, 'https://shop.example/hooks', 'for {mail}', '\x00', 'no such {mail}', 'staff:1 Ada' from s`,
	"hook_attempts": `with v as (insert into hook_events (shop_number, type, subject, sequence, at, payload) values (990, 'drop.opened', 'drop/1', 1, now(), '{}') returning id),
		d as (insert into hook_deliveries (endpoint_id, event_id) select 904, id from v returning id)
		insert into hook_attempts (delivery_id, attempt, at, took_ms, status, error, response) select id, 1, now(), 1, 500, 'near {mail}', 'no such {mail}' from d`,
	"wallet_registrations": `with p as (insert into wallet_passes (coupon_id, user_id, expires_at, coupon_version) values (906, {id}, now(), 0) returning coupon_id)
		insert into wallet_registrations (device, coupon_id, user_id, push_token) select 'device of {name}', coupon_id, {id}, '{mail}' from p`,
	"wallet_passes": ``,
	"review_coupons": `with c as (insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at) select id, {id}, 77, 'claim', 'suspended', now(), now() + interval '1 day' from templates limit 1 returning id, template_id),
		r as (insert into reviews (template_id, shop_number, rules, facts, coupons, reason) select template_id, 10, '{at_once}', '{}', 1, 'as {mail} says' from c returning id)
		insert into review_coupons (review_id, coupon_id, user_id, appeal) select r.id, c.id, {id}, 'I am {name}' from r, c`,
	"claim_signs":         ``,
	"reviews":             ``,
	"door_tests":          `insert into door_tests (template_id, user_id, note, wants) select min(id), {id}, '{name}', 1 from templates`,
	"inbox_reads":         `insert into inbox_reads (user_id, read_through) values ({id}, now())`,
	"former_reservations": ``,
	"draw_entries":        `insert into draw_entries (template_id, user_id, ticket, salt, entered_at) values (907, {id}, gen_random_uuid(), gen_random_uuid(), now())`,
	"reservations":        ``,
	"exceptions":          ``,
	"suppressions":        `insert into suppressions (address, reason, cause) values ('{mail}', 'bounced', 'x')`,
	"copies_due":          `with c as (insert into copying_cells (cell) values (9) returning cell) insert into copies_due (cell, name, key) select cell, 'suppressions', array['{mail}'] from c`,
	"sms_stops":           `insert into sms_stops (user_id) values ({id})`,
	"phone_verifications": `insert into phone_verifications (user_id, phone, number, expires_at) values ({id}, '{phone}', '{phone}', now()), (1, '{phone}', '{phone}', now())`,
	"soft_bounces":        `insert into soft_bounces (address, count) values ('{mail}', 3)`,
	"feedback_reports": `with b as (insert into batches (kind, owner_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
			values ('reminder', 905, 1, {id}, {id}, now(), now(), '', 1) returning id),
		f as (insert into batch_feedback (batch_id, kind, owner_id, channel) select id, 'reminder', 905, 1 from b returning batch_id)
		insert into feedback_reports (batch_id, user_id, status, provider, cause) select batch_id, {id}, 'bounced', 'ses', 'no such {mail}' from f`,
}

// impersonal are tables whose texts are about no user: texts of staff about drops and
// campaigns, names of things, codes and states.
var impersonal = strings.Fields(`accepted_messages alert_deliveries alert_destinations alert_pushes alert_readers alerts announcements api_keys batch_feedback batch_providers batches booking_growth bookings budgets cell cell_identities campaign_decisions campaign_limits campaign_messages campaign_openings
	campaign_publications campaign_requests campaign_results campaign_series campaigns channel_rates channel_settings claim_counts claim_refusals claim_results claim_seconds
	code_batches code_parts code_serials console_settings copying_cells coupon_operations coupon_order_nets coupon_order_refunds coupon_orders coupon_returns coupon_tallies coupon_use_lines coupons dead_letter_jobs deleted_drafts door_codes door_members door_refusals doors draw_chunks draw_counts draw_growth draws drop_archives drop_models drop_opening_counts drop_openings erased_users event_relay exports feedback_totals flight_checks
	figure_recounts gate_shards gates goose_db_version handled_events hook_cursor hook_deliveries hook_events hook_hours hook_listeners housekeeping_steps inbox_changes inbox_history live_channels mail_warmup message_looks message_versions moves moving_rows
	notice_cursor notice_days notice_runs notices opt_out_changes orders outbox password_links password_mails picture_files pictures processes providers recovery_codes rehearsals relayed_events removals removed_cells removed_coupons removed_steps report_links review_runs
	sale_hours saved_views recipe_rounds recipes second_factors segment_members series series_drops series_reservations sessions shops shops_elsewhere sign_ins slot_forecasts slot_results slots sms_campaign_costs sms_drop_costs sms_early sms_replies sms_serials sms_spent sms_spent_drops staff staff_browsers stock_counts tally_changes templates
	user_changes waiters waitlists`)

func gone(sql string) string {
	return strings.NewReplacer("{id}", goneID.String(), "{name}", goneName, "{mail}", goneMail, "{phone}", gonePhone, "{push}", gonePush).Replace(sql)
}

// fillPerson writes the user's data to every such column, as the programs do.
func (w *fixture) fillPerson() {
	w.Helper()
	for _, table := range []string{"users", "audit", "jobs", "job_errors", "uploads", "upload_parts", "checked_rows", "grant_rows", "idempotency_keys", "channel_tests",
		"dead_messages", "dead_letter_groups", "provider_calls", "segments", "hook_endpoints", "hook_attempts", "inbox_reads", "wallet_registrations", "feedback_reports", "suppressions", "copies_due", "soft_bounces", "sms_stops", "phone_verifications", "draw_entries"} {
		w.Exec(gone(personal[table]))
	}
	t := w.Published(90 * time.Minute)
	w.Exec(gone(personal["review_coupons"]))
	w.Exec(gone(`insert into claim_signs (template_id, user_id, claim_id, at, network, agent, program, way, passed_at, opened_ms) select template_id, user_id, claim_id, now(), 1, 1, false, 1, now(), 0 from coupons where user_id = {id}`))
	w.Reserve(t, goneID, pgtest.Reminders(delivery.Email, 5, 60)...)
	w.Reserve(t, 1, pgtest.Reminders(delivery.Email, 60)...)
	w.Exec(gone(personal["door_tests"]))
	w.Exec(`insert into users (id, name, email) values (1, 'Somebody Else', 'else@erase.example') on conflict do nothing`)
	w.CutSlot(t, 12, 10)
	w.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail) select id, $1, 1, 'dead', 'permanent', $2 from batches limit 1`, goneID, "no such "+goneMail)
	list, err := audiencedb.NewSegments(w.DB).CreateSegment(w.Context(), segment.Segment{Name: "Fair", Kind: segment.ByList, Rule: segment.Everybody()}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	_, err = audiencedb.NewSegments(w.DB).AddMembers(w.Context(), list.ID, []user.ID{1, goneID})
	w.Must(err)
}

// scan returns every place in any table that contains the text: columns of text, JSON and bytes.
func (w *fixture) scan(text string) (found []string) {
	w.Helper()
	rows, err := w.SQL.Query(w.Context(), `select c.table_name, c.column_name, c.data_type from information_schema.columns c
		join information_schema.tables t using (table_schema, table_name) where c.table_schema = current_schema() and t.table_type = 'BASE TABLE'
		and not exists (select from pg_class p where p.relname = c.table_name and p.relispartition)
			and c.data_type in ('text', 'character varying', 'json', 'jsonb', 'bytea', 'ARRAY', 'uuid') order by 1, 2`)
	w.Must(err)
	var columns [][3]string
	for rows.Next() {
		var c [3]string
		w.Must(rows.Scan(&c[0], &c[1], &c[2]))
		columns = append(columns, c)
	}
	w.Must(rows.Err())
	for _, c := range columns {
		value := c[1] + "::text"
		if c[2] == "bytea" {
			value = "encode(" + c[1] + ", 'escape')"
		}
		if n := w.Number(fmt.Sprintf(`select count(*) from %s where strpos(%s, $1) > 0`, c[0], strings.Replace(value, c[1], `"`+c[1]+`"`, 1)), text); n > 0 {
			found = append(found, c[0]+"."+c[1])
		}
	}
	return found
}

// No table contains data of an erased user.
func TestErasingReachesEveryTable(t *testing.T) {
	w := newFixture(t)
	rows, err := w.SQL.Query(t.Context(), `select table_name from information_schema.tables where table_schema = current_schema() and table_type = 'BASE TABLE'
		and not exists (select from pg_class p where p.relname = table_name and p.relispartition)`)
	w.Must(err)
	for rows.Next() {
		var table string
		w.Must(rows.Scan(&table))
		_, known := personal[table]
		for _, name := range impersonal {
			known = known || name == table
		}
		if !known {
			t.Errorf("table %s is new: say in personal how a person gets into it, and erase that, or name it in impersonal", table)
		}
	}
	w.Must(rows.Err())
	w.fillPerson()
	texts := []string{goneName, goneMail, strings.TrimPrefix(gonePhone, "+"), gonePush}
	for _, text := range texts {
		if len(w.scan(text)) == 0 {
			t.Errorf("%q stands nowhere before the erasure", text)
		}
	}
	users := &user.Service{Store: audiencedb.NewUsers(w.DB)}
	w.Must(users.Erase(t.Context(), staff.System(), goneID))
	for _, text := range texts {
		if found := w.scan(text); len(found) > 0 {
			t.Errorf("%q still stands in %v", text, found)
		}
	}
	// The number stands in the audit log and where accounts are counted from.
	if found := w.scan(goneID.String()); !slices.Equal(found, []string{"audit.object_id", "outbox.payload"}) {
		t.Errorf("the number stands in texts of %v", found)
	}
	for _, table := range []string{"users", "reservations", "former_reservations", "inbox_reads", "checked_rows", "wallet_passes", "door_tests"} {
		column := "user_id"
		if table == "users" {
			column = "id"
		}
		if n := w.Number(`select count(*) from `+table+` where `+column+` = $1`, goneID); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if n := w.Number(`select count(*) from reservations`) + w.Number(`select count(*) from users where email = 'else@erase.example'`); n != 2 {
		t.Errorf("somebody else was erased as well: %d", n)
	}
	if n := w.Number(`select members from segments where kind = 'list'`); n != 1 {
		t.Errorf("the list has %d members", n)
	}
	// Accounts still add up: outcomes and sets hold the number.
	if w.Number(`select count(*) from exceptions where user_id = $1 and detail = ''`, goneID) != 1 {
		t.Error("the outcome is gone, which an account is counted from")
	}
	if w.Number(`select count(*) from feedback_reports where user_id = $1 and cause = ''`, goneID) != 1 {
		t.Error("the report is gone")
	}
	if w.Number(`select count(*) from sms_stops`) != 0 {
		t.Error("the opt-out by text message stands under the user's number")
	}
	if err := users.Erase(t.Context(), staff.System(), goneID); !errors.Is(err, user.ErrNotFound) {
		t.Errorf("erased twice: %v", err)
	}
}

// A late import, list, preference or link does not restore an erased user, until the erasure is
// lifted.
func TestErasedPeopleStayErased(t *testing.T) {
	w := newFixture(t)
	users := &user.Service{Store: audiencedb.NewUsers(w.DB)}
	name, mail := "Zeb", goneMail
	back := user.Change{ID: goneID, Name: &name, Email: &mail}
	_, _, err := users.Upsert(t.Context(), staff.System(), []user.Change{back})
	w.Must(err)
	w.Must(users.Erase(t.Context(), staff.System(), goneID))
	other := user.Change{ID: 8, Name: &name}
	n, refused, err := users.Upsert(t.Context(), staff.System(), []user.Change{back, other})
	if err != nil || n != 1 || len(refused) != 1 || !strings.Contains(fmt.Sprint(refused[0]), "was erased") {
		t.Errorf("import: %d %v %v", n, refused, err)
	}
	off := uint8(2)
	for what, err := range map[string]error{
		"preferences": pgtest.ErrOf(users.SetPreferences(t.Context(), back)),
		"edit":        users.Edit(t.Context(), staff.System(), back),
		"opt-out":     users.AddOptOuts(t.Context(), staff.System(), goneID, off),
		"link on":     pgtest.ErrOf(users.OptOut(t.Context(), goneID, 6, 2)),
		"batch":       audiencedb.NewUsers(w.DB).Upsert(t.Context(), []user.Change{other, back}, staff.Entry{}),
	} {
		if !errors.Is(err, user.ErrErased) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := users.OptOut(t.Context(), goneID, off, off); err != nil {
		t.Errorf("a link that turns off: %v", err)
	}
	if n := w.Number(`select count(*) from users where id = $1`, goneID); n != 0 {
		t.Fatal("the person is back")
	}
	e, err := users.Erasure(t.Context(), staff.System(), goneID)
	if err != nil || e == nil || e.By != "system Dropbell" || e.At.IsZero() {
		t.Errorf("the erasure is %+v %v", e, err)
	}
	w.Must(users.LiftErasure(t.Context(), staff.System(), goneID))
	if err := users.LiftErasure(t.Context(), staff.System(), goneID); !errors.Is(err, user.ErrNotErased) {
		t.Errorf("lifted twice: %v", err)
	}
	if n, refused, err := users.Upsert(t.Context(), staff.System(), []user.Change{back}); err != nil || n != 1 || len(refused) != 0 {
		t.Errorf("after lifting: %d %v %v", n, refused, err)
	}
}

// Imports that run concurrently with an erasure store the user before it, or do not store the
// user at all.
func TestErasingBesideImports(t *testing.T) {
	w := newFixture(t)
	users := &user.Service{Store: audiencedb.NewUsers(w.DB)}
	for round := range 20 {
		id := user.ID(100 + round)
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for i := range 5 {
					name := fmt.Sprint("Zeb ", i)
					if _, _, err := users.Upsert(t.Context(), staff.System(), []user.Change{{ID: id, Name: &name}}); err != nil && !errors.Is(err, user.ErrErased) {
						t.Error(err)
					}
				}
			})
		}
		if err := users.Erase(t.Context(), staff.System(), id); err != nil && !errors.Is(err, user.ErrNotFound) {
			t.Error(err)
		}
		writers.Wait()
		if n := w.Number(`select count(*) from users where id = $1`, id); n != 0 {
			t.Fatalf("user %d came back", id)
		}
	}
}

func TestEverythingStoredAboutAUser(t *testing.T) {
	w := newFixture(t)
	w.fillPerson()
	users := &user.Service{Store: audiencedb.NewUsers(w.DB)}
	raw, err := users.Everything(t.Context(), staff.System(), goneID)
	w.Must(err)
	var all map[string][]map[string]any
	var flat map[string]json.RawMessage
	w.Must(json.Unmarshal(raw, &flat))
	delete(flat, "user_id")
	again, err := json.Marshal(flat)
	w.Must(err)
	w.Must(json.Unmarshal(again, &all))
	for _, table := range []string{"users", "reservations", "inbox_reads", "exceptions", "lists", "deliveries", "channel_tests", "grant_rows"} {
		if len(all[table]) == 0 {
			t.Errorf("%s is missing", table)
		}
	}
	if all["users"][0]["email"] != goneMail || strings.Contains(string(raw), "else@erase.example") {
		t.Errorf("the user is %v", all["users"])
	}
	if n := w.Number(`select count(*) from audit where action = 'user.data' and object_id = $1`, goneID.String()); n != 1 {
		t.Errorf("%d records of taking out", n)
	}
	if _, err := users.Everything(t.Context(), staff.Actor{Label: "staff:4", Role: staff.Marketer, Shops: []int64{10}}, goneID); !errors.Is(err, staff.ErrEveryShop) {
		t.Errorf("staff of one shop: %v", err)
	}
}
