package work

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
)

// HookEvents stores webhook events, made of events of the bus, and starts their deliveries.
// Events of the bus that are handled at the same time are stored together.
type HookEvents struct {
	*pg.DB
	groups *pg.Committer[string, handledHook, []int64]
}

// handledHook is one event of the bus and the webhook events made of it.
type handledHook struct {
	id     string
	events []hook.Event
}

// NewHookEvents starts the committer; close it.
func NewHookEvents(db *pg.DB) *HookEvents {
	s := &HookEvents{DB: db}
	cfg := pg.Grouping{Workers: 1, MaxGroup: 64}.Config(db) // one worker: storing takes a lock
	s.groups = pg.NewCommitter(cfg, func(h handledHook) string { return h.id }, s.storeGroup)
	return s
}

// Close answers everything that was accepted and stops.
func (s *HookEvents) Close() { s.groups.Close() }

// Handle stores the webhook events of an event of the bus, unless they were stored before. It
// returns the endpoints that now have waiting deliveries.
func (s *HookEvents) Handle(ctx context.Context, eventID string, events []hook.Event) (endpoints []int64, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	return s.groups.Do(ctx, handledHook{eventID, events})
}

// deliverSQL starts the deliveries of stored events $1 to enabled endpoints that chose the
// events' types, and returns these endpoints.
const deliverSQL = `
with started as (
    insert into hook_deliveries (endpoint_id, event_id)
    select e.id, v.id from hook_events v join hook_endpoints e on e.shop_number = v.shop_number
    where v.id = any($1) and e.enabled and (cardinality(e.types) = 0 or v.type = any(e.types))
    order by v.id, e.id returning endpoint_id
)
select distinct endpoint_id from started`

// storeAndDeliver stores events and starts their deliveries.
func storeAndDeliver(ctx context.Context, tx pgx.Tx, events []hook.Event) (endpoints []int64, err error) {
	ids, err := storeEvents(ctx, tx, events)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return pgx.CollectRows(pg.Rows(ctx, tx, deliverSQL, ids), pgx.RowTo[int64])
}

// storeGroup returns, for each event of the bus, the endpoints of the whole group: waking an
// endpoint too often does no harm.
func (s *HookEvents) storeGroup(ctx context.Context, group []handledHook) ([][]int64, error) {
	if err := s.sameHistory(ctx); err != nil {
		return nil, err
	}
	ids := make([]string, len(group))
	for i, h := range group {
		ids[i] = h.id
	}
	var endpoints []int64
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		rows := pg.Rows(ctx, tx, `insert into handled_events (handler, event_id) select 'hooks', id from unnest($1::uuid[]) id order by id
			on conflict do nothing returning event_id::text`, ids)
		fresh, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(fresh) == 0 {
			return err
		}
		var events []hook.Event
		for _, h := range group {
			if slices.Contains(fresh, h.id) {
				events = append(events, h.events...)
			}
		}
		endpoints, err = storeAndDeliver(ctx, tx, events)
		return err
	})
	answers := make([][]int64, len(group))
	for i := range answers {
		answers[i] = endpoints
	}
	return answers, err
}

// openedSQL returns drops that opened after their shop's endpoints chose the event type. Each
// row has an event id that is the same each time: it is made of the instant and the template.
// Drops that opened more than a day ago are left out.
const openedSQL = `
select o.id, o.opens_at, o.event_id::text from (
    select t.id, t.opens_at,
        (lpad(to_hex(floor(extract(epoch from t.opens_at) * 1000)::bigint), 12, '0') || '7000' || lpad(to_hex(t.id), 16, '0'))::uuid as event_id
    from templates t
    where t.opens_at <= statement_timestamp() and t.opens_at > statement_timestamp() - interval '24 hours' and t.state in ('published', 'paused')
        and exists (select from hook_wants w where w.shop_number = t.shop_number and w.since <= t.opens_at
            and (cardinality(w.types) = 0 or '` + string(hook.DropOpened) + `' = any(w.types)))
) o where not exists (select from handled_events h where h.handler = 'hooks' and h.event_id = o.event_id)
order by o.opens_at, o.id limit $1`

// Opened stores an event for each of up to limit drops that have opened, once per drop. It
// returns the endpoints to wake.
func (s *HookEvents) Opened(ctx context.Context, limit int) (endpoints []int64, err error) {
	rows := pg.Rows(ctx, s.Pool, openedSQL, limit)
	var ids []string
	var events []hook.Event
	var template int64
	var at time.Time
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&template, &at, &id}, func() error {
		ids = append(ids, id)
		events = append(events, hook.Event{Type: hook.DropOpened, Subject: hook.Drop(template), TemplateID: template, At: at, Items: 1,
			Data: hook.DropData{TemplateID: template, OpensAt: at.UTC()}})
		return nil
	}); err != nil {
		return nil, pg.Translate(err)
	}
	return s.handleEach(ctx, ids, events)
}

// handleEach handles each event under its id.
func (s *HookEvents) handleEach(ctx context.Context, ids []string, events []hook.Event) (endpoints []int64, err error) {
	for i := range ids {
		woken, err := s.Handle(ctx, ids[i], events[i:i+1])
		if err != nil {
			return endpoints, err
		}
		endpoints = append(endpoints, woken...)
	}
	return endpoints, nil
}

// earnedSQL returns drops that ended the interval $2 ago, and after their shop's endpoints chose the
// event type, with their orders. Each row has an event id that is the same each time: it is made of the
// instant and the template, and differs from the ids of openedSQL. Drops of an earlier day are left
// out.
var earnedSQL = `
select o.id, o.ended_at, o.currency, o.event_id::text, m.*, c.sms from (
    select t.id, t.ended_at, t.currency,
        (lpad(to_hex(floor(extract(epoch from t.ended_at) * 1000)::bigint), 12, '0') || '7001' || lpad(to_hex(t.id), 16, '0'))::uuid as event_id
    from templates t
    where t.state = 'closed' and t.ended_at <= statement_timestamp() - $2::interval and t.ended_at > statement_timestamp() - $2::interval - interval '24 hours'
        and exists (select from hook_wants w where w.shop_number = t.shop_number and w.since <= t.ended_at + $2::interval
            and (cardinality(w.types) = 0 or '` + string(hook.DropEarned) + `' = any(w.types)))
) o, lateral (select coalesce(sum(case when refund then -orders else orders end), 0)::bigint, coalesce(sum(case when refund then -ordered else ordered end), 0)::bigint,
        coalesce(sum(case when refund then -discount else discount end), 0)::bigint, coalesce(sum(orders) filter (where refund), 0)::bigint,
        coalesce(sum(ordered - discount) filter (where refund), 0)::bigint from sale_hours where template_id = o.id) m, lateral (select ` + pg.SMSCosts("sms_drop_costs where template_id = o.id") + `) c (sms)
where not exists (select from handled_events h where h.handler = 'hooks' and h.event_id = o.event_id)
order by o.ended_at, o.id limit $1`

// Earned stores an event for each of up to limit drops that ended [hook.EarnedAfter] ago, once per
// drop. It returns the endpoints to wake.
func (s *HookEvents) Earned(ctx context.Context, limit int) (endpoints []int64, err error) {
	rows := pg.Rows(ctx, s.Pool, earnedSQL, limit, hook.EarnedAfter)
	var ids []string
	var events []hook.Event
	var d hook.EarnedData
	var sms delivery.SMSCosts
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&d.TemplateID, &d.EndedAt, &d.Currency, &id, &d.Orders, &d.Ordered, &d.Discount, &d.Refunds, &d.Refunded, &sms}, func() error {
		d.SMS = make([]hook.SMSCost, len(sms))
		for i, c := range sms {
			d.SMS[i] = hook.SMSCost(c)
		}
		sms = nil
		d.Revenue = d.Ordered - d.Discount
		ids, events = append(ids, id), append(events, hook.OfEarned(d, d.EndedAt.Add(hook.EarnedAfter)))
		return nil
	}); err != nil {
		return nil, pg.Translate(err)
	}
	return s.handleEach(ctx, ids, events)
}

// issuedHorizonSQL moves the horizon of issued coupons, like the horizon of notices: coupons up
// to seen_to are announced once every transaction has ended that was running when seen_to was
// stored.
const issuedHorizonSQL = `
with newest as (select coalesce(max(id), 0) as id from coupons)
update hook_cursor set seen_to = newest.id, seen_xmax = pg_current_xact_id()
from newest where planned_to = seen_to and newest.id > seen_to`

// SkipIssued passes over the coupons that no shop wanted to be told of.
func (s *HookEvents) SkipIssued(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, `update hook_cursor c set planned_to = n.id, seen_to = n.id from (select coalesce(max(id), 0) as id from coupons) n
		where c.planned_to < n.id`)
	return pg.Translate(err)
}

// Issued stores an event for each of up to limit coupons issued since the last call, once per
// coupon. It returns the endpoints to wake, and whether there may be more coupons.
func (s *HookEvents) Issued(ctx context.Context, limit int) (endpoints []int64, more bool, err error) {
	if err := s.sameHistory(ctx); err != nil {
		return nil, false, err
	}
	if _, err = s.Pool.Exec(ctx, issuedHorizonSQL); err != nil {
		return nil, false, pg.Translate(err)
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var from, to int64
		var now time.Time
		err := tx.QueryRow(ctx, `select planned_to, seen_to, clock_timestamp() from hook_cursor where planned_to < seen_to
			and (seen_xmax <= pg_snapshot_xmin(pg_current_snapshot()) or seen_xmax >= pg_snapshot_xmax(pg_current_snapshot()))
			for update skip locked`).Scan(&from, &to, &now)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		list, last, err := issuedCoupons(ctx, tx, from, to, limit)
		if err != nil {
			return err
		}
		if more = last < to; more {
			to = last
		}
		if _, err := tx.Exec(ctx, `update hook_cursor set planned_to = $1`, to); err != nil || len(list) == 0 {
			return err
		}
		told := hook.OfIssued(list, now)
		if endpoints, err = storeAndDeliver(ctx, tx, told); err != nil {
			return err
		}
		lists := make([]any, len(told))
		for i, e := range told {
			lists[i] = hook.ListIssued(e)
		}
		return pg.AnnounceAll(ctx, tx, event.IssuedListed, lists)
	})
	return endpoints, more, err
}

// issuedCoupons reads up to limit coupons with ids above from. It returns the coupons that a
// shop's endpoint wants, and the last id that it read.
func issuedCoupons(ctx context.Context, tx pgx.Tx, from, to int64, limit int) (list []hook.Issued, last int64, err error) {
	rows := pg.Rows(ctx, tx, `
		select c.id, c.template_id, c.user_id, c.origin, c.issued_at, c.expires_at,
			exists (select from templates t join hook_wants w on w.shop_number = t.shop_number where t.id = c.template_id and w.since <= c.issued_at
				and (cardinality(w.types) = 0 or '`+string(hook.CouponIssued)+`' = any(w.types)))
		from (select * from coupons where id > $1 and id <= $2 order by id limit $3) c order by c.id`, from, to, limit)
	var c hook.Issued
	var wanted bool
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&c.CouponID, &c.TemplateID, &c.UserID, &c.Origin, &c.IssuedAt, &c.ExpiresAt, &wanted}, func() error {
		n++
		last = c.CouponID
		if wanted {
			c.IssuedAt, c.ExpiresAt = c.IssuedAt.UTC(), c.ExpiresAt.UTC()
			list = append(list, c)
		}
		return nil
	})
	if n < limit {
		last = to
	}
	return list, last, err
}

// Dead returns the recipients of a batch without success, none if it has none.
func (s *HookEvents) Dead(ctx context.Context, batchID int64) (d hook.DeadData, err error) {
	rows, err := s.Pool.Query(ctx, `select b.kind, b.channel, b.template_id, case when b.kind = 'campaign' then b.owner_id else 0 end, x.user_id, x.reason, x.attempts, x.last_at
		from batches b join exceptions x on x.batch_id = b.id and x.outcome = 'dead' where b.id = $1 and b.dead_count > 0 order by x.user_id`, batchID)
	if err != nil {
		return d, pg.Translate(err)
	}
	d.BatchID = batchID
	var channel int
	var item hook.DeadItem
	_, err = pgx.ForEachRow(rows, []any{&d.Kind, &channel, &d.TemplateID, &d.CampaignID, &item.UserID, &item.Reason, &item.Attempts, &item.At}, func() error {
		item.At = item.At.UTC()
		d.Items = append(d.Items, item)
		return nil
	})
	d.Channel = delivery.Channel(channel).String()
	return d, pg.Translate(err)
}

// Finished returns the outcome of a campaign; false unless it is finished.
func (s *HookEvents) Finished(ctx context.Context, campaignID int64) (d hook.CampaignData, finished bool, err error) {
	err = s.Pool.QueryRow(ctx, `select id, coalesce((audience->>'template_id')::bigint, 0), settled_at, people, sent, skipped, expired, dead from campaigns
		where id = $1 and state = 'finished' and settled_at is not null`, campaignID).
		Scan(&d.CampaignID, &d.TemplateID, &d.FinishedAt, &d.Recipients, &d.Sent, &d.Skipped, &d.Expired, &d.Dead)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, false, nil
	}
	d.FinishedAt = d.FinishedAt.UTC()
	return d, err == nil, pg.Translate(err)
}

// SoldOutBy reports whether the issue after which total coupons were issued took the last coupon
// of the template's stock.
func (s *HookEvents) SoldOutBy(ctx context.Context, templateID, total int64) (soldOut bool, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce((select issued >= stock and $2 >= stock from templates where id = $1), false)`, templateID, total).Scan(&soldOut)
	return soldOut, pg.Translate(err)
}
