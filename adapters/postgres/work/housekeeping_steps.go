package work

import (
	"strings"
	"time"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/review"
	"dropbell/domain/staff"
)

// A step removes rows of one kind that are older than age. Each execution of sql removes at most
// $2 rows; $1 is the age. from selects the rows that are to be removed, for counting.
type step struct {
	name string
	age  time.Duration
	sql  string
	from string
}

// removing returns the step that removes the rows of table that from selects. key are the
// columns of from by which a row of the table is found.
func removing(name string, age time.Duration, table, key, from string) step {
	return step{name, age, `delete from ` + table + ` where ` + key + ` in (select ` + strings.Trim(key, "()") + ` from ` + from + ` limit $2)`, from}
}

// older is a condition on a column: the instant is older than the age.
func older(column string) string { return column + ` < now() - $1::interval` }

// unused are the uploads that no unfinished job needs.
const unused = `not exists (select from jobs j where j.upload_id = u.id and j.finished_at is null)`

// endedSeries are the series whose standing reservations are to be removed.
const endedSeries = `from series s where ended_at < now() - $1::interval
	and not exists (select from series_drops d join templates t on t.id = d.template_id where d.series_id = s.id and t.opens_at > now())`

// steps returns the steps that consist of one statement. Each statement finds its rows by an
// index, or by ids, which grow with time, so that a step with nothing to do reads nothing.
func steps(keep Retention) []step {
	return []step{
		removing("campaign_publications", 24*time.Hour, "campaign_publications", "fingerprint", `campaign_publications where `+older("published_at")),
		// Of batches that are gone or done: a worker that lost its lease may have been late.
		removing("sms_serials", smsNamesKept, "sms_serials", "ctid", `sms_serials where `+older("kept_at")),
		removing("sms_early", feedback.EarlyKept, "sms_early", "ctid", `sms_early where `+older("kept_at")),
		removing("sms_replies", smsNamesKept, "sms_replies", "ctid", `sms_replies where `+older("taken_at")),
		removing("phone_verifications", 24*time.Hour, "phone_verifications", "id", `phone_verifications where `+older("created_at")),
		// A row that is seen is of a transaction that has ended: of another, a program may yet ask for it.
		{"opt_out_changes_seen", time.Hour, `update opt_out_changes set seen = clock_timestamp() where ctid in (select ctid from opt_out_changes where seen is null and $1::interval > '0' limit $2)`,
			`opt_out_changes where seen is null and $1::interval > '0'`},
		removing("opt_out_changes", time.Hour, "opt_out_changes", "ctid", `opt_out_changes where `+older("seen")),
		{"inbox_changes_seen", time.Hour, `update inbox_changes set seen = clock_timestamp() where ctid in (select ctid from inbox_changes where seen is null and $1::interval > '0' limit $2)`,
			`inbox_changes where seen is null and $1::interval > '0'`},
		removing("inbox_changes", time.Hour, "inbox_changes", "ctid", `inbox_changes where `+older("seen")),
		removing("sms_spent", keep.Audit, "sms_spent", "day", `sms_spent where day < (now() - $1::interval)::date`),
		removing("user_changes", keep.Audit, "user_changes", "id", `user_changes where at < now() - $1::interval`),
		removing("mail_warmup", keep.Audit, "mail_warmup", "day", `mail_warmup where day < (now() - $1::interval)::date`),
		removing("accepted_messages", 24*time.Hour, "accepted_messages", "ctid", `accepted_messages where `+older("at")+`
			and not exists (select from batches b where b.id = batch_id and b.state <> 'done')`),
		// With the texts of drops, which have no draft any more.
		{"deleted_drafts", staff.DraftsKept, `with gone as (select kind, id from deleted_drafts where deleted_at < now() - $1::interval order by deleted_at limit $2 for update),
			drops as (select id from gone where kind = 'template'),
			texts as (delete from message_versions m using shops s, drops d where m.shop_number = s.number and m.template_id = d.id),
			looks as (delete from message_looks l using drops d where l.template_id = d.id)
			delete from deleted_drafts d using gone where d.kind = gone.kind and d.id = gone.id`, `deleted_drafts where ` + older("deleted_at")},
		// Before their sign-ins, which would tell that they were revoked.
		removing("staff_browsers", time.Hour, "staff_browsers", "staff_browsers.id", `staff_browsers join sign_ins i on i.id = sign_in where `+older("i.revoked_at")),
		removing("drop_models", staff.DraftsKept, "drop_models", "id", `drop_models where `+older("deleted_at")),
		// Lists of rounds of recipes, with their members. The campaigns of the rounds are over by then.
		removing("recipe_lists", keep.Delivery, "segments", "id", `segments where hidden and `+older("created_at")),
		// Of ended series whose drops have all opened: until then a user can end them with their reminders.
		{"standing_reservations", keep.Delivery, `with due as materialized (select id ` + endedSeries + ` limit $2),
			old as materialized (select r.series_id, r.user_id from due join series_reservations r on r.series_id = due.id limit $2),
			noted as (update series s set ended_at = null from due where s.id = due.id and (select count(*) from old) < $2)
			delete from series_reservations r using old where r.series_id = old.series_id and r.user_id = old.user_id`,
			`(select id ` + endedSeries + `) due join series_reservations r on r.series_id = due.id`},
		removing("claim_signs", review.KeepSigns, "claim_signs", "ctid", `claim_signs where `+older("at")),
		removing("audit", keep.Audit, "audit", "id", `audit where `+older("at")),
		removing("notices", keep.Delivery, "notices", "(user_id, template_id, day)", `notices where day < (now() - $1::interval)::date`),
		removing("notice_runs", keep.Delivery, "notice_runs", "id", `(select id, settled_at from notice_runs order by id limit $2) r where `+older("settled_at")),
		// As long as the log that says which of them used coupons.
		removing("orders", keep.Operations, "orders", "(shop_number, order_id)", `orders where `+older("ordered_at")),
		// With what their coupons took off each line, and their refunds.
		{"coupon_orders", keep.Operations, `with old as materialized (select order_id, updated_at from coupon_orders where ` + older("created_at") + ` and ` + older("updated_at") + ` limit $2),
			noted as (insert into removed_steps as r (until) select max(updated_at) from old having count(*) > 0
				on conflict (only_row) do update set until = greatest(r.until, excluded.until)),
			nets as (delete from coupon_order_nets where order_id in (select order_id from old))
			delete from coupon_orders where order_id in (select order_id from old)`, `coupon_orders where ` + older("created_at") + ` and ` + older("updated_at")},
		// By id, which grows with the time, so that no index on the instant is needed.
		{"coupon_operations", keep.Operations, `with old as materialized (select id, at from (select id, at from coupon_operations order by id limit $2) o where o.at < now() - $1::interval),
			noted as (insert into removed_steps as r (until) select max(at) from old having count(*) > 0
				on conflict (only_row) do update set until = greatest(r.until, excluded.until))
			delete from coupon_operations where id in (select id from old)`, `(select id, at from coupon_operations order by id limit $2) o where ` + older("at")},
		removing("idempotency_keys", keep.Idempotency, "idempotency_keys", "(actor, key)", `idempotency_keys where `+older("created_at")),
		// Rows that belong to no day; the partitions of days are dropped.
		removing("handled_events_rest", keep.Events, "handled_events_rest", "(handler, event_id)", `handled_events_rest where `+older("at")),
		// Before their jobs, so that no statement removes the rows of a whole file.
		removing("job_errors", keep.Jobs, "job_errors", "(job_errors.job_id, job_errors.id)", `jobs j join job_errors on job_id = j.id where `+older("j.finished_at")),
		removing("grant_rows", keep.Jobs, "grant_rows", "(sheet_id, line)", `jobs j join grant_rows on sheet_id = j.id where `+older("j.finished_at")),
		removing("jobs", keep.Jobs, "jobs", "id", `jobs where `+older("finished_at")+`
			and not exists (select from grant_rows where sheet_id = id) and not exists (select from job_errors e where e.job_id = jobs.id)`),
		removing("upload_parts", keep.Uploads, "upload_parts", "(upload_id, part)", `uploads u join upload_parts on upload_id = u.id where `+older("u.created_at")+` and `+unused),
		removing("uploads", keep.Uploads, "uploads", "id", `uploads u where `+older("u.created_at")+` and `+unused),
		// Files that may contain a user who was erased while a job was reading.
		removing("uploads_erased", keep.Uploads, "uploads", "id", `uploads u where u.created_at < (select max(erased_at) from erased_users) and $1::interval > '0' and `+unused),
		removing("channel_tests", keep.Delivery, "channel_tests", "id", `channel_tests where `+older("created_at")+` and state = 'done'`),
		// With their deliveries and attempts. By id, which grows with the time.
		removing("hook_deliveries", keep.Hooks, "hook_deliveries", "id", `(select id, created_at from hook_deliveries order by id limit $2) d where `+older("created_at")),
		removing("hook_events", keep.Hooks, "hook_events", "id", `(select id, stored_at from hook_events order by id limit $2) v where `+older("stored_at")),
		removing("hook_hours", keep.Hooks, "hook_hours", "(endpoint_id, hour)", `hook_hours where `+older("hour")),
		// Passes are removed with the devices registered for them. No coupon changes after its
		// expiry, except by a late refund. Each statement has an index. If wallets were turned
		// off meanwhile, expiries are not noted.
		removing("wallet_passes", passesKept, "wallet_passes", "coupon_id", `wallet_passes where expiry_noted and `+older("expires_at")),
		removing("wallet_passes_unnoted", passesKept, "wallet_passes", "coupon_id", `wallet_passes where not expiry_noted and `+older("expires_at")),
		removing("hook_listeners", keep.Hooks, "hook_listeners", "(shop_number, listener)", `hook_listeners where `+older("until")),
		// Their deliveries go with them.
		removing("alerts", keep.Jobs, "alerts", "id", `alerts where `+older("raised_at")+` and ended_at is not null`),
		removing("sessions", time.Hour, "sessions", "token", `sessions where `+older("expiry")),
	}
}
