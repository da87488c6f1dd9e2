package work

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
)

// Alerts stores the alerts of staff; see [alert.Store].
type Alerts struct {
	*pg.DB
	// box seals addresses and secrets of destinations for their rows.
	box *seal.Box
}

// NewAlerts returns the alerts of db. box seals addresses and secrets of destinations; with a
// nil box, sealed addresses are not read.
func NewAlerts(db *pg.DB, box *seal.Box) Alerts {
	if box == nil {
		box = &seal.Box{}
	}
	return Alerts{db, box}
}

// conditionsSQL returns the conditions that the database alone can tell: drops with late
// reminders, drops and campaigns with dead letters, drops that are sold out, drops with a red flight check, waitlists whose stock does not move, requests that wait
// for consent, webhook endpoints that their failures disabled, and jobs that ended lately, each
// with the member who began the job.
const conditionsSQL = `
with late as (
	select s.template_id, 0::bigint as waiting from slots s join templates t on t.id = s.template_id and ` + pg.OfOpening + `
	where s.state = 'waiting' and t.state = 'published' and s.due_at < statement_timestamp() - interval '20 seconds'
		and s.due_at > statement_timestamp() - interval '1 day'
	union all
	select s.template_id, sum(b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count) from slots s
		join batches b on b.kind = 'reminder' and b.owner_id = s.id
	where s.state in ('firing', 'sending') and s.stop_reason is null and greatest(s.due_at, s.planned_at) < statement_timestamp() - interval '1 minute' and b.state <> 'done'
	group by s.template_id
)
select 'late', t.id::text, t.shop_number, t.id, 0::bigint, t.name, greatest(1, sum(l.waiting))::bigint, '', '/templates/' || t.id || '?tab=live'
from late l join templates t on t.id = l.template_id group by t.id
union all
select 'dead_letters', 'template:' || t.id, t.shop_number, t.id, 0, t.name, sum(b.dead_count)::bigint, '', '/dead-letters?template=' || t.id
from templates t join slots s on s.template_id = t.id join batches b on b.kind = 'reminder' and b.owner_id = s.id and b.dead_count > 0
where t.opens_at > statement_timestamp() - interval '2 days' and exists (select from exceptions e where e.batch_id = b.id and e.outcome = 'dead') group by t.id
union all
select 'dead_letters', 'campaign:' || c.id, c.shop_number, 0, 0, c.name, sum(b.dead_count)::bigint, '', '/campaigns/' || c.id
from campaigns c join batches b on b.kind = 'campaign' and b.owner_id = c.id and b.dead_count > 0
where c.ends_at > statement_timestamp() - interval '2 days' and exists (select from exceptions e where e.batch_id = b.id and e.outcome = 'dead') group by c.id
union all
select 'sold_out', t.id::text, t.shop_number, t.id, 0, t.name, t.stock, case t.opening_mode when 'first_come' then '' else 'draw' end, '/templates/' || t.id
from templates t where t.state in ('published', 'paused') and t.opens_at <= statement_timestamp() and t.closes_at > statement_timestamp() and t.stock > 0 and t.issued + t.held >= t.stock
union all
select 'waitlist', t.id::text, t.shop_number, t.id, 0, t.name, t.held - l.offered, '', '/templates/' || t.id
from templates t join waitlists l on l.template_id = t.id
where t.held > 0 and t.held > l.offered and l.waiting > l.offered and t.state = 'published' and l.put_at < statement_timestamp() - interval '1 minute'
	and least(t.closes_at, t.valid_until - interval '1 hour') - case t.waitlist when 'offer' then interval '1 hour' else interval '0' end > statement_timestamp()
union all
select 'approval', r.id::text, r.shop_number, 0, 0, r.name, r.reach, '', '/campaigns/' || r.campaign_id
from campaign_requests r where r.state = 'asked' and r.ends_at > statement_timestamp()
union all
select 'endpoint', e.id::text, e.shop_number, 0, 0, coalesce(substring(e.url from '^[^:]+://([^/?#]+)'), ''), 0, e.disabled_reason, '/webhooks/' || e.id
from hook_endpoints e where not e.enabled and e.disabled_reason in ('failing', 'gone') and e.disabled_at > statement_timestamp() - interval '2 days'
union all
select 'flight', t.id::text, t.shop_number, t.id, 0, t.name, f.red, '', '/templates/' || t.id || '/flight'
from flight_checks f join templates t on t.id = f.template_id
where f.red > 0 and t.state in ('published', 'paused') and t.opens_at > statement_timestamp()
union all
select 'job', j.id::text, j.shop_number, 0, substring(j.created_by from '^staff:([0-9]+)')::bigint, j.title, j.failed, j.state, '/jobs/' || j.id
from jobs j where j.state in ('done', 'failed') and j.finished_at > statement_timestamp() - interval '15 minutes' and j.created_by ~ '^staff:[0-9]{1,18}( |$)'`

// Conditions returns the conditions that the database alone can tell.
func (s Alerts) Conditions(ctx context.Context) ([]alert.Condition, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, conditionsSQL), func(row pgx.CollectableRow) (c alert.Condition, err error) {
		err = row.Scan(&c.Kind, &c.Object, &c.Shop, &c.Template, &c.Member, &c.Name, &c.Count, &c.Detail, &c.Path)
		return c, err
	})
	return list, pg.Translate(err)
}

// Reconcile makes alerts agree with the conditions; see [alert.Store].
func (s Alerts) Reconcile(ctx context.Context, looked []alert.Kind, conditions []alert.Condition, quiet, deadline time.Duration) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('dropbell:alerts', 0))`).Scan(&mine); err != nil || !mine {
			return err
		}
		keys := make([]string, len(conditions))
		for i, c := range conditions {
			keys[i] = c.Key()
			if err := raise(ctx, tx, c, quiet, deadline); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `update alerts set ended_at = clock_timestamp() where ended_at is null and kind = any($1) and not key = any($2)`, looked, keys)
		return err
	})
}

// raise stores the alert of a condition. It makes a new alert if there is none, or if the last
// alert is older than quiet and the condition came again or grew. Otherwise the last alert
// counts the repetition, if there was one.
func raise(ctx context.Context, tx pgx.Tx, c alert.Condition, quiet, deadline time.Duration) error {
	var id, count, swallowed int64
	var open, loud bool
	err := tx.QueryRow(ctx, `select id, count, swallowed, ended_at is null, raised_at < clock_timestamp() - $2::interval from alerts where key = $1
		order by id desc limit 1`, c.Key(), quiet).Scan(&id, &count, &swallowed, &open, &loud)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return insertAlert(ctx, tx, c, 0, deadline)
	case err != nil:
		return err
	case open && c.Count <= count:
		return nil
	case loud:
		if _, err := tx.Exec(ctx, `update alerts set ended_at = clock_timestamp() where id = $1 and ended_at is null`, id); err != nil {
			return err
		}
		return insertAlert(ctx, tx, c, swallowed, deadline)
	}
	again := int64(0)
	if !open {
		again = 1
	}
	// A count above the alert's count is not stored until the next alert. Only a condition that
	// had ended and came again is a repetition.
	_, err = tx.Exec(ctx, `update alerts set ended_at = null, swallowed = swallowed + $2 where id = $1`, id, again)
	return err
}

func insertAlert(ctx context.Context, tx pgx.Tx, c alert.Condition, repeated int64, deadline time.Duration) error {
	var id int64
	if err := tx.QueryRow(ctx, `insert into alerts (kind, key, shop_number, template_id, member_id, name, count, detail, path, repeated)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id`,
		c.Kind, c.Key(), c.Shop, c.Template, c.Member, c.Name, c.Count, c.Detail, c.Path, repeated).Scan(&id); err != nil {
		return err
	}
	if err := pushAlert(ctx, tx, id, c, deadline); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into alert_deliveries (alert_id, destination_id, deadline_at)
		select $1, id, clock_timestamp() + $5::interval from alert_destinations
		where removed_at is null and $2 = 0 and (shop_number = 0 or shop_number = $3) and $4 = any(kinds)`, id, c.Member, c.Shop, c.Kind, deadline)
	return err
}

const alertColumns = `a.id, a.kind, a.shop_number, a.template_id, a.member_id, a.name, a.count, a.detail, a.path, a.repeated, a.raised_at, a.ended_at`

func alertFields(a *alert.Alert) []any {
	return []any{&a.ID, &a.Kind, &a.Shop, &a.Template, &a.Member, &a.Name, &a.Count, &a.Detail, &a.Path, &a.Repeated, &a.RaisedAt, &a.EndedAt}
}

const alertDeliveryColumns = `v.id, v.attempts, v.state, v.detail, v.created_at, v.deadline_at, v.ended_at`

func alertDeliveryFields(v *alert.Delivery) []any {
	return []any{&v.ID, &v.Attempts, &v.State, &v.Detail, &v.CreatedAt, &v.DeadlineAt, &v.EndedAt}
}

// AlertDeliveriesWait asks whether a delivery is due, or was leased and has to be
// delivered again.
const AlertDeliveriesWait pg.Question = `select from alert_deliveries where state = 'waiting' and next_at <= statement_timestamp() order by next_at limit 1`

// Take leases deliveries; see [alert.Store]. An attempt counts when it begins.
func (s Alerts) Take(ctx context.Context, limit int, lease time.Duration) ([]alert.Delivery, error) {
	if _, err := s.Pool.Exec(ctx, `update alert_deliveries set state = 'dropped', ended_at = clock_timestamp()
		where state = 'waiting' and next_at <= statement_timestamp() and deadline_at <= clock_timestamp()`); err != nil {
		return nil, pg.Translate(err)
	}
	token := uuid.NewString()
	rows := pg.Rows(ctx, s.Pool, `
		with due as (
			select id from alert_deliveries where state = 'waiting' and next_at <= statement_timestamp() order by next_at limit $1 for update skip locked
		), v as (
			update alert_deliveries v set lease = $2, next_at = clock_timestamp() + $3::interval, attempts = attempts + 1 from due where v.id = due.id returning v.*
		)
		select `+alertDeliveryColumns+`, `+alertColumns+`, `+destinationColumns+`
		from v join alerts a on a.id = v.alert_id join alert_destinations d on d.id = v.destination_id`, limit, token, lease)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v alert.Delivery, err error) {
		v.Lease = token
		var sealed []byte
		err = row.Scan(append(append(alertDeliveryFields(&v), alertFields(&v.Alert)...), destinationFields(&v.Destination, &sealed)...)...)
		s.open(&v.Destination, sealed)
		v.Attempts--
		return v, err
	})
	return list, pg.Translate(err)
}

// Record stores the outcome of an attempt, unless another worker has taken the delivery over.
func (s Alerts) Record(ctx context.Context, d alert.Delivery, o alert.Outcome, wait time.Duration) error {
	_, err := s.Pool.Exec(ctx, `update alert_deliveries set state = $3, detail = $4, lease = null,
			next_at = clock_timestamp() + $5::interval, ended_at = case when $3 = 'waiting' then null else clock_timestamp() end
		where id = $1 and lease = $2 and state = 'waiting'`, d.ID, d.Lease, o.State, o.Detail, wait)
	return pg.Translate(err)
}

// seenSQL selects the alerts that member $1 may see: the alerts of shops $2 (none = all alerts,
// also without a shop), and the member's own alerts. Alerts of muted kinds are left out.
const seenSQL = `(a.member_id = 0 and (cardinality($2::bigint[]) = 0 or a.shop_number = any($2)) or a.member_id = $1) and a.kind <> 'test'
	and not a.kind = any(coalesce((select muted from alert_readers where staff_id = $1), '{}'))`

func shopsOf(list []int64) []int64 {
	if list == nil {
		return []int64{}
	}
	return list
}

// Alerts lists the alerts that the member may see.
func (s Alerts) Alerts(ctx context.Context, m staff.Member, before int64, limit int) ([]alert.Alert, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+alertColumns+`, a.id <= coalesce((select read_through from alert_readers where staff_id = $1), 0)
		from alerts a where `+seenSQL+` and ($3 = 0 or a.id < $3) order by a.id desc limit $4`, m.ID, shopsOf(m.Shops), before, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a alert.Alert, err error) {
		err = row.Scan(append(alertFields(&a), &a.Read)...)
		return a, err
	})
	return list, pg.Translate(err)
}

// Unread counts the member's unread alerts, at most limit.
func (s Alerts) Unread(ctx context.Context, m staff.Member, limit int) (n int, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from (select from alerts a where `+seenSQL+`
		and a.id > coalesce((select read_through from alert_readers where staff_id = $1), 0) order by a.id desc limit $3) q`, m.ID, shopsOf(m.Shops), limit).Scan(&n)
	return n, pg.Translate(err)
}

// MarkRead marks alerts up to an id as read.
func (s Alerts) MarkRead(ctx context.Context, member, upTo int64) error {
	_, err := s.Pool.Exec(ctx, `insert into alert_readers (staff_id, read_through) values ($1, $2)
		on conflict (staff_id) do update set read_through = greatest(alert_readers.read_through, excluded.read_through)`, member, upTo)
	return pg.Translate(err)
}

// Muted returns the kinds that the member does not want to see.
func (s Alerts) Muted(ctx context.Context, member int64) (kinds []alert.Kind, err error) {
	err = s.Pool.QueryRow(ctx, `select muted from alert_readers where staff_id = $1`, member).Scan(&kinds)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return kinds, pg.Translate(err)
}

// SetMuted stores them.
func (s Alerts) SetMuted(ctx context.Context, member int64, kinds []alert.Kind) error {
	if kinds == nil {
		kinds = []alert.Kind{}
	}
	_, err := s.Pool.Exec(ctx, `insert into alert_readers (staff_id, muted) values ($1, $2) on conflict (staff_id) do update set muted = excluded.muted`, member, kinds)
	return pg.Translate(err)
}

// Try raises a test alert for one destination.
func (s Alerts) Try(ctx context.Context, d alert.Destination, deadline time.Duration, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `with a as (
				insert into alerts (kind, key, shop_number, name, ended_at) values ($1, $2, $3, $4, clock_timestamp()) returning id
			) insert into alert_deliveries (alert_id, destination_id, deadline_at) select id, $5, clock_timestamp() + $6::interval from a`,
			alert.Test, string(alert.Test)+":"+uuid.NewString(), d.Shop, d.Name, d.ID, deadline); err != nil {
			return err
		}
		return insertDestinationAudit(ctx, tx, d.ID, e)
	})
}

func insertDestinationAudit(ctx context.Context, tx pgx.Tx, id int64, e staff.Entry) error {
	e.ObjectID = strconv.FormatInt(id, 10)
	return pg.InsertAudit(ctx, tx, e)
}

// Deliveries lists the latest deliveries of the shops.
func (s Alerts) Deliveries(ctx context.Context, shops []int64, limit int) ([]alert.Delivery, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+alertDeliveryColumns+`, `+alertColumns+`, `+destinationColumns+`
		from alert_deliveries v join alerts a on a.id = v.alert_id join alert_destinations d on d.id = v.destination_id
		where cardinality($1::bigint[]) = 0 or d.shop_number = any($1) order by v.id desc limit $2`, shopsOf(shops), limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v alert.Delivery, err error) {
		var sealed []byte
		err = row.Scan(append(append(alertDeliveryFields(&v), alertFields(&v.Alert)...), destinationFields(&v.Destination, &sealed)...)...)
		s.open(&v.Destination, sealed)
		return v, err
	})
	return list, pg.Translate(err)
}
