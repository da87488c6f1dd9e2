package work

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/staff"
)

// Housekeeping removes expired rows, in small chunks so that every statement is short.
type Housekeeping struct{ *pg.DB }

// NewHousekeeping returns the housekeeping of db.
func NewHousekeeping(db *pg.DB) Housekeeping { return Housekeeping{db} }

// Retention is how long each kind of row is kept. Zero = without end.
type Retention struct {
	Delivery    time.Duration // reservations, batches and exceptions after the opening
	Audit       time.Duration
	Coupons     time.Duration // coupons and claims of a drop after the last coupon's expiry
	Idempotency time.Duration
	Events      time.Duration // ids of handled events
	Jobs        time.Duration // jobs that are over, with their row errors
	Uploads     time.Duration // files, once no unfinished job needs them
	Hooks       time.Duration // events of webhooks with their deliveries, whatever became of these
}

const (
	// chunk is how many rows one statement removes.
	chunk = 5000
	// smsNamesKept is how long the providers' ids of text messages are kept: providers report
	// within three days.
	smsNamesKept = 4 * 24 * time.Hour
	// passesKept is how long passes in wallets can be told of a change after the expiry.
	passesKept = 60 * 24 * time.Hour
	// stepBudget is how long one step may take before the next step runs. The next cleaning
	// continues where the step stopped.
	stepBudget = time.Minute
	// vainWindows is how many chunks of ids without anything to remove end a walk.
	vainWindows = 4
)

// A step removes rows of one kind that are older than age. Each statement removes at most chunk
// rows.
type step struct {
	sql string
	age time.Duration
}

// Clean removes all rows past their retention. It returns the number of removed rows, without
// the rows of dropped tables. Clean may be stopped at any point and repeated. A step that fails
// or exceeds budget (0 = [stepBudget]) does not keep other steps from running. Exception: rows
// whose results are not archived yet are not removed.
func (h Housekeeping) Clean(ctx context.Context, keep Retention, budget time.Duration) (total int64, err error) {
	c := cleaning{Housekeeping: h, budget: cmp.Or(budget, stepBudget)}
	archived := c.all(ctx, archiving(keep))
	if archived && keep.Delivery > 0 {
		c.do(ctx, func(ctx context.Context) (int64, error) { return h.removeBatches(ctx, keep.Delivery) })
	}
	c.do(ctx, func(ctx context.Context) (int64, error) { return 0, h.addEventDays(ctx) })
	if keep.Events > 0 {
		c.do(ctx, func(ctx context.Context) (int64, error) { return 0, h.dropEventDays(ctx, keep.Events) })
	}
	c.all(ctx, steps(keep))
	if keep.Coupons > 0 {
		c.do(ctx, func(ctx context.Context) (int64, error) { return h.removeCoupons(ctx, keep.Coupons) })
	}
	return c.rows, errors.Join(append(c.failed, ctx.Err())...)
}

// A cleaning is one run of all steps.
type cleaning struct {
	Housekeeping
	budget time.Duration
	rows   int64
	failed []error
}

// all runs the steps and reports whether each was completed.
func (c *cleaning) all(ctx context.Context, list []step) (done bool) {
	done = true
	for _, s := range list {
		if s.age > 0 && !c.do(ctx, func(ctx context.Context) (int64, error) { return c.inChunks(ctx, s.sql, s.age, chunk) }) {
			done = false
		}
	}
	return done
}

// do runs one step and reports whether the step was completed. Exceeding the budget is not a
// failure.
func (c *cleaning) do(ctx context.Context, carryOut func(context.Context) (int64, error)) bool {
	if ctx.Err() != nil {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	n, err := carryOut(limited)
	c.rows += n
	if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		c.failed = append(c.failed, err)
	}
	return err == nil
}

// pastBatches selects the batches with ids above $2 and up to $3 that are done and past their
// retention $1.
const pastBatches = `b.id > $2 and b.id <= $3 and b.state = 'done' and b.worthless_after < now() - $1::interval`

// removeBatchesSQL removes the batches of pastBatches, and adds the reports about their messages
// to the totals that are kept. The counts of the batches must be corrected before.
const removeBatchesSQL = `with past as (
	select b.id, f.kind, f.owner_id, f.channel, f.delivered_count as delivered, f.bounced_count as bounced, f.complained_count as complained
	from batches b left join batch_feedback f on f.batch_id = b.id where ` + pastBatches + `
), kept as (
	insert into feedback_totals as t (kind, owner_id, channel, delivered, bounced, complained)
	select kind, owner_id, channel, sum(delivered), sum(bounced), sum(complained) from past where kind is not null
	group by kind, owner_id, channel order by kind, owner_id, channel
	on conflict (kind, owner_id, channel) do update set delivered = t.delivered + excluded.delivered,
		bounced = t.bounced + excluded.bounced, complained = t.complained + excluded.complained
)
delete from batches b using past where b.id = past.id`

// removeBatches removes batches that are done and past their retention. Before each chunk of
// batches it removes the outcomes and reports of their recipients, which may be a thousand times
// as many rows. It reads batches by id, which grows with time, so that no index on the instant
// is needed. It ends when a few chunks in a row have nothing to remove.
func (h Housekeeping) removeBatches(ctx context.Context, age time.Duration) (total int64, err error) {
	after := int64(0)
	for vain := 0; vain < vainWindows; vain++ {
		var last *int64
		err := h.Pool.QueryRow(ctx, `select max(id) from (select id from batches where id > $1 order by id limit $2) b`, after, chunk).Scan(&last)
		if err != nil || last == nil {
			return total, pg.Translate(err)
		}
		n, err := h.inChunks(ctx, `delete from exceptions where (batch_id, user_id) in (select e.batch_id, e.user_id from batches b
			join exceptions e on e.batch_id = b.id where `+pastBatches+` limit $4)`, age, after, *last, chunk)
		if total += n; err != nil {
			return total, err
		}
		n, err = h.inChunks(ctx, `delete from feedback_reports where (batch_id, user_id) in (select r.batch_id, r.user_id from batches b
			join feedback_reports r on r.batch_id = b.id where `+pastBatches+` limit $4)`, age, after, *last, chunk)
		if total += n; err != nil {
			return total, err
		}
		removed, err := h.removePast(ctx, age, after, *last)
		if total += removed; err != nil {
			return total, err
		}
		if after = *last; removed > 0 {
			vain = -1
		}
	}
	return total, nil
}

// lockReportedSQL locks the reported counts of the batches, in the order that every writer of
// these counts uses. It returns for each batch whether its counts include messages that were not
// sent.
const lockReportedSQL = `select b.id, ` + pg.FeedbackStray + ` from batches b join batch_feedback f on f.batch_id = b.id where ` + pastBatches + ` order by b.id for update of f`

// correctSQL sets the counts of batches, with an element per batch.
const correctSQL = `
update batch_feedback f set delivered_count = g.delivered, bounced_count = g.bounced, complained_count = g.complained
from unnest(@ids::bigint[], @delivered::int[], @bounced::int[], @complained::int[]) as g (id, delivered, bounced, complained) where f.batch_id = g.id`

// removePast removes the batches, and keeps the totals of the reports about their sent messages.
func (h Housekeeping) removePast(ctx context.Context, age time.Duration, after, last int64) (removed int64, err error) {
	return removed, h.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, lockReportedSQL, age, after, last)
		if err != nil {
			return err
		}
		var strays []int64
		var id int64
		var stray bool
		if _, err := pgx.ForEachRow(rows, []any{&id, &stray}, func() error {
			if stray {
				strays = append(strays, id)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := correctReported(ctx, tx, strays); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, removeBatchesSQL, age, after, last)
		removed = done.RowsAffected()
		return err
	})
}

func correctReported(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	stray, err := pg.StrayFeedback(ctx, tx, ids)
	if err != nil {
		return err
	}
	var counts [3][]int32
	for _, id := range ids {
		t := stray[id]
		counts[0], counts[1], counts[2] = append(counts[0], int32(t.Delivered)), append(counts[1], int32(t.Bounced)), append(counts[2], int32(t.Complained))
	}
	_, err = tx.Exec(ctx, correctSQL, pgx.StrictNamedArgs{"ids": ids, "delivered": counts[0], "bounced": counts[1], "complained": counts[2]})
	return err
}

// archiving returns the steps that archive results before the rows are removed from which the
// results were counted.
func archiving(keep Retention) []step {
	return []step{
		{`update slot_results r set archived = true where (r.slot_id, r.channel) in (select r.slot_id, r.channel from slots s
			join slot_results r on r.slot_id = s.id where not r.archived and s.opens_at < now() - $1::interval limit $2)`, keep.Delivery},
		{`update campaigns set archived = true where id in (select id from campaigns where settled_at is not null and not archived
			and ends_at < now() - $1::interval limit $2)`, keep.Delivery},
	}
}

// steps returns the steps that consist of one statement.
func steps(keep Retention) []step {
	return []step{
		{`delete from campaign_messages where (campaign_id, seq) in (select m.campaign_id, m.seq from campaigns c
			join campaign_messages m on m.campaign_id = c.id where c.archived and c.ends_at < now() - $1::interval limit $2)`, keep.Delivery},
		{`delete from campaign_openings o where (o.campaign_id, o.user_id) in (select o.campaign_id, o.user_id from campaigns c
			join campaign_openings o on o.campaign_id = c.id where c.archived and c.ends_at < now() - $1::interval limit $2)`, keep.Delivery},
		{`delete from campaign_publications where fingerprint in (select fingerprint from campaign_publications
			where published_at < now() - $1::interval limit $2)`, 24 * time.Hour},
		// Of batches that are gone or done: a worker that lost its lease may have been late.
		{`delete from sms_serials where ctid in (select ctid from sms_serials where kept_at < now() - $1::interval limit $2)`, smsNamesKept},
		{`delete from sms_early where ctid in (select ctid from sms_early where kept_at < now() - $1::interval limit $2)`, feedback.EarlyKept},
		{`delete from sms_replies where ctid in (select ctid from sms_replies where taken_at < now() - $1::interval limit $2)`, smsNamesKept},
		{`delete from phone_verifications where id in (select id from phone_verifications where created_at < now() - $1::interval limit $2)`, 24 * time.Hour},
		// A row that is seen is of a transaction that has ended: of another, a program may yet ask for it.
		{`update opt_out_changes set seen = clock_timestamp() where ctid in (select ctid from opt_out_changes where seen is null and $1::interval > '0' limit $2)`, time.Hour},
		{`delete from opt_out_changes where ctid in (select ctid from opt_out_changes where seen < now() - $1::interval limit $2)`, time.Hour},
		{`update inbox_changes set seen = clock_timestamp() where ctid in (select ctid from inbox_changes where seen is null and $1::interval > '0' limit $2)`, time.Hour},
		{`delete from inbox_changes where ctid in (select ctid from inbox_changes where seen < now() - $1::interval limit $2)`, time.Hour},
		{`delete from sms_spent where day in (select day from sms_spent where day < (now() - $1::interval)::date limit $2)`, keep.Audit},
		{`delete from user_changes where id in (select id from user_changes where at < now() - $1::interval limit $2)`, keep.Audit},
		{`delete from mail_warmup where day in (select day from mail_warmup where day < (now() - $1::interval)::date limit $2)`, keep.Audit},
		{`delete from accepted_messages where ctid in (select a.ctid from accepted_messages a where a.at < now() - $1::interval
			and not exists (select from batches b where b.id = a.batch_id and b.state <> 'done') limit $2)`, 24 * time.Hour},
		{`delete from reservations r where (r.template_id, r.user_id) in (select r.template_id, r.user_id from templates t
			join reservations r on r.template_id = t.id where t.opens_at < now() - $1::interval limit $2)`, keep.Delivery},
		// A link counts until the drop closes, so none is counted again once it is removed.
		{`delete from drop_openings o where (o.template_id, o.user_id) in (select o.template_id, o.user_id from templates t
			join drop_openings o on o.template_id = t.id where t.closes_at < now() - $1::interval limit $2)`, keep.Delivery},
		{`delete from former_reservations r where (r.user_id, r.template_id) in (select r.user_id, r.template_id from templates t
			join former_reservations r on r.template_id = t.id where t.opens_at < now() - $1::interval limit $2)`, keep.Delivery},
		{`delete from booking_growth g where (g.template_id, g.minute) in (select g.template_id, g.minute from templates t
			join booking_growth g on g.template_id = t.id where t.opens_at < now() - $1::interval limit $2)`, keep.Delivery},
		// With the texts of drops, which have no draft any more.
		{`with gone as (select kind, id from deleted_drafts where deleted_at < now() - $1::interval order by deleted_at limit $2 for update),
			drops as (select id from gone where kind = 'template'),
			texts as (delete from message_versions m using shops s, drops d where m.shop_number = s.number and m.template_id = d.id),
			looks as (delete from message_looks l using drops d where l.template_id = d.id)
			delete from deleted_drafts d using gone where d.kind = gone.kind and d.id = gone.id`, staff.DraftsKept},
		// Before their sign-ins, which would tell that they were revoked.
		{`delete from staff_browsers where id in (select b.id from staff_browsers b join sign_ins i on i.id = b.sign_in
			where i.revoked_at < now() - $1::interval limit $2)`, time.Hour},
		{`delete from drop_models where id in (select id from drop_models where deleted_at < now() - $1::interval order by deleted_at limit $2)`, staff.DraftsKept},
		{`delete from audit where id in (select id from audit where at < now() - $1::interval order by at limit $2)`, keep.Audit},
		{`delete from notices n where (n.user_id, n.template_id, n.day) in (select user_id, template_id, day from notices
			where day < (now() - $1::interval)::date limit $2)`, keep.Delivery},
		{`delete from notice_runs where id in (select id from (select id, settled_at from notice_runs order by id limit $2) r
			where r.settled_at < now() - $1::interval)`, keep.Delivery},
		// With their job, whose uploaded file and errors go then too.
		{`delete from grant_rows g where (g.sheet_id, g.line) in (select sheet_id, line from grant_rows g
			where not exists (select from jobs j where j.id = g.sheet_id) and $1::interval > '0' limit $2)`, keep.Delivery},
		// By id, which grows with the time, so that no index on the instant is needed.
		// As long as the log that says which of them used coupons.
		{`delete from orders where (shop_number, order_id) in (select shop_number, order_id from orders where ordered_at < now() - $1::interval limit $2)`, keep.Audit},
		{`with old as materialized (select id, at from (select id, at from coupon_operations order by id limit $2) o where o.at < now() - $1::interval),
			noted as (insert into removed_steps as r (until) select max(at) from old having count(*) > 0
				on conflict (only_row) do update set until = greatest(r.until, excluded.until))
			delete from coupon_operations where id in (select id from old)`, keep.Audit},
		{`delete from idempotency_keys where (actor, key) in (select actor, key from idempotency_keys where created_at < now() - $1::interval limit $2)`, keep.Idempotency},
		// Those that belong to no day; days are dropped.
		{`delete from handled_events_rest where (handler, event_id) in (select handler, event_id from handled_events_rest where at < now() - $1::interval limit $2)`, keep.Events},
		{`delete from job_errors e where (e.job_id, e.id) in (select e.job_id, e.id from jobs j
			join job_errors e on e.job_id = j.id where j.finished_at < now() - $1::interval limit $2)`, keep.Jobs},
		{`delete from jobs where id in (select id from jobs where finished_at < now() - $1::interval limit $2)`, keep.Jobs},
		{`delete from upload_parts p where (p.upload_id, p.part) in (select p.upload_id, p.part from uploads u join upload_parts p on p.upload_id = u.id
			where u.created_at < now() - $1::interval and not exists (select from jobs j where j.upload_id = u.id and j.finished_at is null) limit $2)`, keep.Uploads},
		{`delete from uploads u where u.id in (select u.id from uploads u where u.created_at < now() - $1::interval
			and not exists (select from jobs j where j.upload_id = u.id and j.finished_at is null) limit $2)`, keep.Uploads},
		// Files that may contain a user who was erased while a job was reading.
		{`delete from uploads u where u.id in (select u.id from uploads u where u.created_at < (select max(erased_at) from erased_users) and $1::interval > '0'
			and not exists (select from jobs j where j.upload_id = u.id and j.finished_at is null) limit $2)`, keep.Uploads},
		{`delete from channel_tests where id in (select id from channel_tests where created_at < now() - $1::interval and state = 'done' limit $2)`, keep.Delivery},
		// With their deliveries and attempts. By id, which grows with the time.
		{`delete from hook_deliveries where id in (select id from (select id, created_at from hook_deliveries order by id limit $2) d
			where d.created_at < now() - $1::interval)`, keep.Hooks},
		{`delete from hook_events where id in (select id from (select id, stored_at from hook_events order by id limit $2) v
			where v.stored_at < now() - $1::interval)`, keep.Hooks},
		{`delete from hook_hours where (endpoint_id, hour) in (select endpoint_id, hour from hook_hours where hour < now() - $1::interval limit $2)`, keep.Hooks},
		// Passes are removed with the devices registered for them. No coupon changes after its
		// expiry, except by a late refund. Each statement has an index. If wallets were turned
		// off meanwhile, expiries are not noted.
		{`delete from wallet_passes where coupon_id in (select coupon_id from wallet_passes where expiry_noted and expires_at < now() - $1::interval limit $2)`, passesKept},
		{`delete from wallet_passes where coupon_id in (select coupon_id from wallet_passes where not expiry_noted and expires_at < now() - $1::interval limit $2)`, passesKept},
		{`delete from hook_listeners where (shop_number, listener) in (select shop_number, listener from hook_listeners where until < now() - $1::interval limit $2)`, keep.Hooks},
		// Their deliveries go with them.
		{`delete from alerts where id in (select id from alerts where raised_at < now() - $1::interval and ended_at is not null limit $2)`, keep.Jobs},
		{`delete from sessions where token in (select token from sessions where expiry < now() - $1::interval limit $2)`, time.Hour},
	}
}

// inChunks repeats a statement that removes up to [chunk] rows, until the statement removes
// fewer rows.
func (h Housekeeping) inChunks(ctx context.Context, sql string, args ...any) (total int64, err error) {
	for {
		tag, err := h.Pool.Exec(ctx, sql, args...)
		total += tag.RowsAffected()
		if err != nil || tag.RowsAffected() < chunk {
			return total, pg.Translate(err)
		}
	}
}

// Leader runs do if no other process is running the same job right now. It holds a connection
// while do runs, which may take minutes. The connection is idle and has no snapshot: a snapshot
// would hold back vacuum and concurrent index builds.
func (h Housekeeping) Leader(ctx context.Context, job string, do func(context.Context) error) error {
	return h.Tx(ctx, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended($1, 0))`, "dropbell:"+job).Scan(&mine); err != nil || !mine {
			return err
		}
		// The lock query's snapshot lasts until the next statement, and this statement takes no
		// snapshot.
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		return do(ctx)
	})
}
