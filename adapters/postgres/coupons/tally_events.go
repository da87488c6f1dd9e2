package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
)

// TallyEvents counts the outcomes of coupons from events. Events that are handled at the same
// time are counted together, in one transaction with one change of each sum. Events arrive at
// least once, so an event is counted in the transaction that stores its id.
type TallyEvents struct {
	*pg.DB
	groups *pg.Committer[string, tallyEvent, struct{}]
}

// tallyEvent is one event and what it adds to the sums.
type tallyEvent struct {
	id   string
	sums map[int64]*tallySums // by template
	// sold are the operations that change the sums of orders: payments, refunds and undone refunds.
	sold []int64
}

// tallySums are added to the columns of coupon_tallies.
type tallySums struct{ locked, used, expired, revoked, discounted, released, refunded, suspended int64 }

// NewTallyEvents starts the committer; close it.
func NewTallyEvents(db *pg.DB) *TallyEvents {
	s := &TallyEvents{DB: db}
	cfg := pg.Grouping{Workers: 1, MaxGroup: 64}.Config(db) // one worker: groups change the same rows
	s.groups = pg.NewCommitter(cfg, func(e tallyEvent) string { return e.id }, s.count)
	return s
}

// Close answers everything that was accepted and stops.
func (s *TallyEvents) Close() { s.groups.Close() }

// Changed counts the steps of one event unless the event was counted before.
func (s *TallyEvents) Changed(ctx context.Context, eventID string, changes []event.Coupon) error {
	e := tallyEvent{id: eventID, sums: map[int64]*tallySums{}}
	for _, c := range changes {
		e.add(c)
	}
	_, err := s.groups.Do(ctx, e)
	return err
}

// Expired counts one swept group unless it was counted before.
func (s *TallyEvents) Expired(ctx context.Context, eventID string, x event.Expired) error {
	e := tallyEvent{id: eventID, sums: map[int64]*tallySums{}}
	for _, c := range x.Expired {
		e.of(c.TemplateID).expired += c.Coupons
	}
	_, err := s.groups.Do(ctx, e)
	return err
}

func (e *tallyEvent) of(templateID int64) *tallySums {
	if e.sums[templateID] == nil {
		e.sums[templateID] = &tallySums{}
	}
	return e.sums[templateID]
}

func (e *tallyEvent) add(c event.Coupon) {
	y := e.of(c.TemplateID)
	y.move(c.From, -1, c.Discount)
	y.move(c.To, 1, c.Discount)
	switch coupon.Step(c.Step) {
	case coupon.StepRelease, coupon.StepTimeout:
		y.released++
	case coupon.StepConfirm:
		e.sold = append(e.sold, c.OperationID)
	case coupon.StepRefund:
		y.refunded++
		e.sold = append(e.sold, c.OperationID)
	case coupon.StepRestore:
		y.refunded--
		e.sold = append(e.sold, c.OperationID)
	}
}

// move adds n coupons to the state.
func (y *tallySums) move(state string, n, discount int64) {
	switch coupon.State(state) {
	case coupon.Locked:
		y.locked += n
	case coupon.Used:
		y.used += n
		y.discounted += n * discount
	case coupon.Expired:
		y.expired += n
	case coupon.Revoked:
		y.revoked += n
	case coupon.Suspended:
		y.suspended += n
	}
}

// tallySQL returns nothing. It counts those of @events that were not counted before: their sums
// (@of and @sold_of are places in @events) and their operations. The rows of coupon_tallies are
// locked, in the order of their ids, before rows of sale_hours, as [CouponTallies.RecountSales]
// does.
var tallySQL = `
with fresh as (
    insert into handled_events (handler, event_id) select 'coupon-tallies', e from unnest(@events::uuid[]) e order by e on conflict do nothing returning event_id
), counted as (
    select e.i from fresh join unnest(@events::uuid[]) with ordinality e (id, i) on e.id = fresh.event_id
), tallied as (
    insert into coupon_tallies as y (template_id, locked, used, expired, revoked, discounted, released, refunded, suspended)
    select u.t, sum(u.locked), sum(u.used), sum(u.expired), sum(u.revoked), sum(u.discounted), sum(u.released), sum(u.refunded), sum(u.suspended)
    from counted join unnest(@of::bigint[], @templates::bigint[], @locked::bigint[], @used::bigint[], @expired::bigint[], @revoked::bigint[],
        @discounted::bigint[], @released::bigint[], @refunded::bigint[], @suspended::bigint[]) as u (i, t, locked, used, expired, revoked, discounted, released, refunded, suspended) using (i)
    group by u.t order by u.t
    on conflict (template_id) do update set locked = y.locked + excluded.locked, used = y.used + excluded.used,
        expired = y.expired + excluded.expired, revoked = y.revoked + excluded.revoked, discounted = y.discounted + excluded.discounted,
        released = y.released + excluded.released, refunded = y.refunded + excluded.refunded, suspended = y.suspended + excluded.suspended, changed_at = clock_timestamp()
    returning template_id
), sold as (
    select s.* from (` + salesSQL(`o.id = any(array(select u.operation from counted join unnest(@sold_of::bigint[], @sold::bigint[]) as u (i, operation) using (i)))`) + `) s
)
insert into sale_hours as h (template_id, hour, refund, orders, ordered, discount, shared_orders, shared_ordered)
select template_id, hour, refund, sum(orders), sum(ordered), sum(discount), sum(shared_orders), sum(shared_ordered)
from tallied join sold using (template_id) group by 1, 2, 3 order by 1, 2, 3
on conflict (template_id, hour, refund) do update set orders = h.orders + excluded.orders, ordered = h.ordered + excluded.ordered,
    discount = h.discount + excluded.discount, shared_orders = h.shared_orders + excluded.shared_orders,
    shared_ordered = h.shared_ordered + excluded.shared_ordered`

// count counts the events of a group.
func (s *TallyEvents) count(ctx context.Context, group []tallyEvent) ([]struct{}, error) {
	events := make([]string, len(group))
	var of, templates, locked, used, expired, revoked, discounted, released, refunded, suspended, soldOf, sold []int64
	for i, e := range group {
		events[i] = e.id
		for t, y := range e.sums {
			of, templates = append(of, int64(i+1)), append(templates, t)
			locked, used, expired, revoked = append(locked, y.locked), append(used, y.used), append(expired, y.expired), append(revoked, y.revoked)
			discounted, released, refunded = append(discounted, y.discounted), append(released, y.released), append(refunded, y.refunded)
			suspended = append(suspended, y.suspended)
		}
		for _, operation := range e.sold {
			soldOf, sold = append(soldOf, int64(i+1)), append(sold, operation)
		}
	}
	err := s.PlannedOnce(ctx, tallySQL, []any{pgx.StrictNamedArgs{"events": events, "of": of, "templates": templates, "locked": locked, "used": used,
		"expired": expired, "revoked": revoked, "discounted": discounted, "released": released, "refunded": refunded, "suspended": suspended, "sold_of": soldOf, "sold": sold}},
		func(pgx.Rows) error { return nil })
	return make([]struct{}, len(group)), err
}
