package coupons

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/killpoint"
)

// ordersSQL returns the orders of $1 that are stored, each with what its coupons take off each line and
// with its refund in $2 at the same place.
const ordersSQL = `
select w.order_id, coalesce(w.user_id, 0), w.shop_number, w.currency, w.state, w.revision, w.discount, w.lines, w.products, w.quantities, w.amounts, w.returned,
    w.paid_back, w.version, u.coupons, u.lines, u.amounts, coalesce(f.refund_id, ''), coalesce(f.pay_back, 0), coalesce(f.clawback, 0), coalesce(f.last, 0), f.lines, f.quantities, f.coupons
from unnest($1::text[], $2::text[]) a (order_id, refund_id),
    lateral (select * from coupon_orders where order_id = a.order_id limit 1) w
    cross join lateral (select array_agg(l.coupon_id) as coupons, array_agg(l.line) as lines, array_agg(l.amount) as amounts
        from coupon_use_lines l where l.order_id = w.order_id and l.revision = w.revision) u
    left join lateral (select r.*, (w.state = 'refunded' and not exists (select from coupon_order_refunds l where l.order_id = r.order_id and l.at > r.at))::int as last
        from coupon_order_refunds r where r.order_id = a.order_id and r.refund_id = a.refund_id limit 1) f on true`

// orderCasesSQL returns the coupons $1 with the log of the order in $2 at the same place, and all coupons of
// the orders $3, with the order and the terms of their templates.
var orderCasesSQL = `
select a.order_id, t.stack_group, t.stacks_with, t.max_per_order, t.refund_rule, ` + caseColumns + `
from (
    select id, order_id from unnest($1::bigint[], $2::text[]) n (id, order_id)
    union
    select l.coupon_id, l.order_id from unnest($3::text[]) n (order_id), lateral (select * from coupon_orders where order_id = n.order_id limit 1) w,
        lateral (select * from coupon_use_lines where order_id = w.order_id and revision = w.revision) l
) a (id, order_id), ` + casesOfPairs

// readings are what a group of requests is decided on.
type readings struct {
	// cases are the coupons that the steps of each order are decided on, by their ids.
	cases  map[string]map[int64]cart.Held
	orders map[string]*cart.Order
	// refunds are the stored refunds that the requests name, by order.
	refunds map[string]*cart.Refund
}

// stored is what the request of an order is decided on.
func (g *readings) stored(r *cart.Request) cart.Stored {
	return cart.Stored{Order: g.orders[r.OrderID], Coupons: g.cases[r.OrderID], Refund: g.refunds[r.OrderID]}
}

// read reads what the group is decided on, in one round trip.
func (s *Payments) read(ctx context.Context, group []payment) (*readings, error) {
	g := &readings{map[string]map[int64]cart.Held{}, map[string]*cart.Order{}, map[string]*cart.Refund{}}
	var ids []int64
	var of, orders, refunds []string
	for _, p := range group {
		if p.order == nil {
			ids, of = append(ids, p.CouponID), append(of, p.OrderID)
			continue
		}
		for _, id := range p.order.Coupons {
			ids, of = append(ids, id), append(of, p.order.OrderID)
		}
		orders, refunds = append(orders, p.order.OrderID), append(refunds, p.order.RefundID)
	}
	err := s.PlannedTogether(pg.WaitingFor(ctx, pg.LockWait), pg.Read{SQL: ordersSQL, Args: []any{orders, refunds}, Rows: g.readOrders},
		pg.Read{SQL: orderCasesSQL, Args: []any{ids, of, orders}, Rows: g.readCases})
	return g, err
}

func (g *readings) readCases(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		var order string
		var with template.Groups
		var refund template.RefundRule
		var h cart.Held
		if err := scanCase(rows, &h.Case, &order, &h.Group, &with, &h.PerOrder, &refund); err != nil {
			return err
		}
		h.With, h.Recompute = with.List(), refund == template.Recompute
		if g.cases[order] == nil {
			g.cases[order] = map[int64]cart.Held{}
		}
		g.cases[order][h.Coupon.ID] = h
	}
	return rows.Err()
}

func (g *readings) readOrders(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		o, f := &cart.Order{}, &cart.Refund{}
		var l orderLines
		var back []string
		var backQuantities []int64
		if err := rows.Scan(&o.ID, &o.UserID, &o.Shop, &o.Currency, &o.State, &o.Revision, &o.Discount, &l.names, &l.products, &l.quantities, &l.amounts, &o.Returned,
			&o.PaidBack, &o.Version, &l.coupons, &l.useLines, &l.useAmounts, &f.ID, &f.PayBack, &f.Clawback, &f.Orders, &back, &backQuantities, &f.Coupons); err != nil {
			return err
		}
		l.into(o)
		for i, name := range back {
			f.Lines = append(f.Lines, cart.ReturnedLine{ID: name, Quantity: backQuantities[i]})
		}
		if g.orders[o.ID] = o; f.ID != "" {
			g.refunds[o.ID] = f
		}
	}
	return rows.Err()
}

// units are the writes of a group. A unit, the place of a request in the group, is stored as a whole
// or not at all.
type units struct {
	moves   []coupon.Move
	of      []int // the unit of each move
	refused []coupon.Operation
	orders  []cart.Decision // to be stored
	ofOrder []int
}

// takeWithOrders takes a group that has requests of orders. A request that needs a coupon of an
// earlier request of the group waits for the next group.
func (s *Payments) takeWithOrders(ctx context.Context, group []payment) ([]attempt, error) {
	g, err := s.read(ctx, group)
	if err != nil {
		return nil, err
	}
	attempts := make([]attempt, len(group))
	var u units
	touched := map[int64]bool{}
	for i, p := range group {
		a := &attempts[i]
		var moves []coupon.Move
		var refused *coupon.Operation
		var d cart.Decision
		if p.order != nil {
			d = p.order.Decide(g.stored(p.order))
			moves, refused = d.Moves, d.Refused
			a.order = cart.Taken{Order: d.Order, Coupons: map[int64]coupon.Coupon{}, Refund: d.Refund, Err: d.Err}
			for _, use := range d.Order.Uses {
				a.order.Coupons[use.Coupon] = g.cases[d.Order.ID][use.Coupon].Coupon
			}
		} else if h, ok := g.cases[p.OrderID][p.CouponID]; !ok {
			a.err = coupon.ErrNotFound
			continue
		} else {
			one := p.Decide(h.Case)
			a.Case, a.Taken.Err, refused = h.Case, one.Err, one.Refused
			if one.Err == nil && len(one.Move.Ops) > 0 {
				a.Taken.Stored, moves = coupon.Done, []coupon.Move{one.Move}
			} else if refused != nil {
				a.Taken.Stored = refused.Outcome
			}
		}
		if slices.ContainsFunc(moves, func(m coupon.Move) bool { return touched[m.From.ID] }) {
			a.raced = true
			continue
		}
		for _, m := range moves {
			for _, op := range m.Ops {
				if op.Step != coupon.StepTimeout { // it ended another order's lock
					a.order.Steps = append(a.order.Steps, op.Step)
				}
			}
			touched[m.From.ID] = true
			u.moves, u.of = append(u.moves, m), append(u.of, i)
		}
		if refused != nil {
			u.refused = append(u.refused, *refused)
		}
		if d.Save {
			u.orders, u.ofOrder, a.order.Stored = append(u.orders, d), append(u.ofOrder, i), true
		}
	}
	return attempts, s.storeUnits(ctx, group, attempts, u)
}

// toStock are the templates to whose stock the units return coupons, one for each coupon, in ascending order.
func (u units) toStock() (templates []int64) {
	for _, m := range u.moves {
		if m.ToStock {
			templates = append(templates, m.From.TemplateID)
		}
	}
	slices.Sort(templates)
	return templates
}

// returning stores the only unit of a group, which returns a coupon to the stock of each of the templates.
func (s *Payments) returning(ctx context.Context, templates []int64, sql string, args pgx.StrictNamedArgs, read func(pgx.Rows) (whole bool, err error)) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		for _, id := range slices.Compact(slices.Clone(templates)) {
			if _, err := tx.Exec(ctx, lockForReturn, id); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, sql, args)
		if err != nil {
			return err
		}
		whole, err := read(rows)
		if err != nil || !whole {
			return err
		}
		for _, id := range templates {
			if err := returnToStock(ctx, tx, id, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// storedBefore are the keys that a unit violates if its order or its step is stored already.
var storedBefore = []string{"coupon_operations_coupon_id_order_id_step_outcome_key", "coupon_orders_pkey", "coupon_use_lines_pkey"}

// storeUnits stores the units and completes their attempts.
func (s *Payments) storeUnits(ctx context.Context, group []payment, attempts []attempt, u units) error {
	if len(u.moves)+len(u.refused)+len(u.orders) == 0 {
		return nil
	}
	moved := make([]coupon.Coupon, len(u.moves))
	var whole map[int]bool
	err := s.patiently(ctx, func(ctx context.Context, skips bool) error {
		for i, m := range u.moves {
			moved[i] = m.To
		}
		sql := unitsSQL
		if skips {
			sql = freeUnitsSQL
		}
		read := func(rows pgx.Rows) (err error) {
			whole, err = readUnits(rows, moved)
			return err
		}
		return killpoint.Around("orders.step", func() error {
			if templates := u.toStock(); len(templates) > 0 {
				return s.returning(ctx, templates, sql, unitsArgs(ctx, u), func(rows pgx.Rows) (bool, error) {
					err := read(rows)
					return whole[0], err
				})
			}
			return s.PlannedByHash(ctx, sql, []any{unitsArgs(ctx, u)}, read)
		})
	})
	// The order was stored after it was read, or between the two statements that read it and its coupons.
	if len(group) == 1 && slices.ContainsFunc(storedBefore, func(key string) bool { return pg.Violates(err, key) }) {
		attempts[0].raced = true
		return nil
	}
	if err != nil {
		return err
	}
	for i, unit := range u.of {
		a := &attempts[unit]
		if a.raced = a.raced || !whole[unit]; group[unit].order == nil {
			a.Case.Coupon = moved[i]
		} else if _, used := a.order.Coupons[moved[i].ID]; used {
			a.order.Coupons[moved[i].ID] = moved[i]
		}
	}
	for _, unit := range u.ofOrder {
		attempts[unit].raced = attempts[unit].raced || !whole[unit]
		attempts[unit].order.Order.Version++
	}
	return nil
}
