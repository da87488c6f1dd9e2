package coupons

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/cart"
	"dropbell/domain/coupon"
)

// unitsSQL is [movesSQL] for groups with orders. Moves with the same unit, and the order of that unit, are
// stored together or not at all: first the coupons are locked, in ascending order of their ids, and
// then the orders. It returns the units that were stored, each with its coupons. A new order whose id was
// stored meanwhile violates the primary key.
var unitsSQL = strings.NewReplacer(
	`@jobs::bigint[])
        as m (id, version, state, order_id, discount, locking, to_stock, job)`, `@jobs::bigint[], @units::int[])
        as m (id, version, state, order_id, discount, locking, to_stock, job, unit)`,
	`
), c as (`, `
), w as (
    select * from unnest(@w_units::int[], @w_ids::text[], @w_versions::bigint[], @w_states::text[], @w_docs::text[]) as w (unit, order_id, version, state, doc)
), free as (
    select c.id, m.unit from m join coupons c on c.id = m.id where c.id = any(@ids::bigint[]) and c.version = m.version
        and (m.locking = 0 or c.expires_at > clock_timestamp()) order by c.id for no key update of c
), held as (
    select o.order_id, w.unit from w join coupon_orders o on o.order_id = w.order_id where o.order_id = any(@w_ids::text[]) and o.version = w.version
        order by o.order_id for no key update of o
), whole as (
    select unit from (
        select unit, 1 as wanted, 0 as got from m union all select unit, (version > 0)::int, 0 from w
        union all select unit, 0, 1 from free union all select unit, 0, 1 from held
    ) u group by unit having sum(wanted) = sum(got)
), c as (`,
	`c.id = m.id and c.version = m.version and (m.locking = 0 or c.expires_at > clock_timestamp())`, `c.id = m.id and m.unit in (select unit from whole)`,
	`nullif(m.job, 0) as job
`, `nullif(m.job, 0) as job, m.unit
`,
	`
select id, version, updated_at, locked_at, locked_until, used_at, returned from c`, `, revised as (
    update coupon_operations o set order_amount = r.order_amount, eligible = r.eligible, discount = r.discount
    from unnest(@r_coupons::bigint[], @r_orders::text[], @r_amounts::bigint[], @r_eligible::bigint[], @r_discounts::bigint[])
        as r (coupon_id, order_id, order_amount, eligible, discount) join c on c.id = r.coupon_id
    where o.coupon_id = any(@r_coupons::bigint[]) and o.coupon_id = r.coupon_id and o.order_id = r.order_id and o.step = 'lock' and o.outcome = 'done'
), docs as (
    select w.unit, w.order_id, w.version, w.state, w.doc::jsonb as d from w join whole using (unit)
), made as (
    insert into coupon_orders (order_id, user_id, shop_number, currency, state, revision, discount, lines, products, quantities, amounts, returned)
    select order_id, (select nullif((d ->> 'user')::bigint, 0) where not exists (select from erased_users e where e.user_id = (d ->> 'user')::bigint)),
        (d ->> 'shop')::bigint, d ->> 'currency', state, (d ->> 'revision')::bigint, (d ->> 'discount')::bigint, `+orderArrays+`
    from docs where version = 0
), changed as (
    update coupon_orders o set state = d.state, currency = d.d ->> 'currency', revision = (d.d ->> 'revision')::bigint, discount = (d.d ->> 'discount')::bigint,
        (lines, products, quantities, amounts, returned) = (select `+orderArrays+` from docs x where x.unit = d.unit),
        paid_back = (d.d ->> 'paid_back')::bigint, version = o.version + 1, updated_at = clock_timestamp()
    from docs d where o.order_id = any(@w_ids::text[]) and o.order_id = d.order_id and d.version > 0
), shared as (
    insert into coupon_use_lines (order_id, revision, coupon_id, line, amount)
    select s.order_id, s.revision, s.coupon_id, s.line, s.amount
    from unnest(@s_units::int[], @s_orders::text[], @s_revisions::bigint[], @s_coupons::bigint[], @s_lines::text[], @s_amounts::bigint[])
        as s (unit, order_id, revision, coupon_id, line, amount) join whole using (unit)
), backs as materialized ( -- by coupon; alone: it was refunded by itself before, and that is counted
    select d.order_id, d.refund ->> 'ID' as refund_id, u."TemplateID" as template_id, u."Coupon" as coupon_id, u."Discount" as discount,
        exists (select from coupon_operations e where e.coupon_id = u."Coupon" and e.order_id = d.order_id and e.step = 'refund' and e.outcome = 'done')
            and not exists (select from coupon_order_refunds f where f.order_id = d.order_id and u."Coupon" <> all(f.alone)) as alone
    from (select order_id, d -> 'refund' as refund from docs where d -> 'refund' is not null) d,
        jsonb_to_recordset(d.refund -> 'Uses') u ("Coupon" bigint, "TemplateID" bigint, "Discount" bigint)
), refunded as (
    insert into coupon_order_refunds (order_id, refund_id, pay_back, clawback, lines, quantities, coupons, alone)
    select order_id, d -> 'refund' ->> 'ID', (d -> 'refund' ->> 'PayBack')::bigint, (d -> 'refund' ->> 'Clawback')::bigint,
        array(select l ->> 'ID' from jsonb_array_elements(d -> 'refund' -> 'Lines') l), array(select (l ->> 'Quantity')::bigint from jsonb_array_elements(d -> 'refund' -> 'Lines') l),
        array(select (i #>> '{}')::bigint from jsonb_array_elements(d -> 'refund' -> 'Coupons') i),
        array(select coupon_id from backs b where b.order_id = docs.order_id and alone)
    from docs where d -> 'refund' is not null
), netting as materialized ( -- an order counts with the coupon of the drop that was confirmed first; see salesSQL
    select b.template_id, b.order_id, b.refund_id, case when a.counted then 0 else (d -> 'refund' ->> 'Orders')::int end as orders,
        case when a.counted then 0 else (d -> 'refund' ->> 'Amount')::bigint end as ordered, b.discount
    from (select template_id, order_id, refund_id, coalesce(sum(discount) filter (where not alone), 0)::bigint as discount, array_agg(coupon_id) filter (where alone) as alone
        from backs group by 1, 2, 3) b join docs using (order_id)
        cross join lateral (select coalesce(b.alone is not null and (select e.coupon_id from coupon_operations e join coupons c on c.id = e.coupon_id
            where e.order_id = b.order_id and e.step = 'confirm' and e.outcome = 'done' and c.template_id = b.template_id order by e.id limit 1) = any(b.alone), false) as counted) a
), netted as (
    insert into coupon_order_nets (template_id, order_id, refund_id, hour, orders, ordered, discount, shared)
    select n.template_id, n.order_id, n.refund_id, date_trunc('hour', clock_timestamp(), 'UTC'), n.orders, n.ordered, n.discount, exists (
        select from coupon_operations e join coupons b on b.id = e.coupon_id join templates bt on bt.id = b.template_id join templates t on t.id = n.template_id
        where e.order_id = n.order_id and e.step = 'confirm' and e.outcome = 'done' and b.template_id <> n.template_id and bt.shop_number = t.shop_number and bt.currency = t.currency
            and e.id < (select min(u.id) from coupon_operations u join coupons c on c.id = u.coupon_id
                where u.order_id = n.order_id and u.step = 'confirm' and u.outcome = 'done' and c.template_id = n.template_id))
    from netting n
    returning template_id, hour, orders, ordered, discount, shared
), tallied as ( -- locked before rows of sale_hours, as by tallySQL
    insert into coupon_tallies as y (template_id) select template_id from netted group by 1 order by 1
    on conflict (template_id) do update set changed_at = clock_timestamp() returning template_id
), sold as (
    insert into sale_hours as h (template_id, hour, refund, orders, ordered, discount, shared_orders, shared_ordered)
    select template_id, hour, true, sum(orders), sum(ordered), sum(discount), coalesce(sum(orders) filter (where shared), 0), coalesce(sum(ordered) filter (where shared), 0)
    from netted join tallied using (template_id) group by 1, 2 order by 1, 2
    on conflict (template_id, hour, refund) do update set orders = h.orders + excluded.orders, ordered = h.ordered + excluded.ordered,
        discount = h.discount + excluded.discount, shared_orders = h.shared_orders + excluded.shared_orders, shared_ordered = h.shared_ordered + excluded.shared_ordered
)
select whole.unit, c.id, c.version, c.updated_at, c.locked_at, c.locked_until, c.used_at, c.returned from whole left join c using (unit)`,
).Replace(movesSQL)

// orderArrays are the arrays of an order's document d.
const orderArrays = `array(select jsonb_array_elements_text(d -> 'lines')), array(select jsonb_array_elements_text(d -> 'products')),
        array(select jsonb_array_elements_text(d -> 'quantities')::bigint), array(select jsonb_array_elements_text(d -> 'amounts')::bigint),
        array(select jsonb_array_elements_text(d -> 'returned')::bigint)`

// freeUnitsSQL is [unitsSQL] for the coupons and orders that no other transaction has locked.
var freeUnitsSQL = strings.NewReplacer(`for no key update of c
), held`, `for no key update of c skip locked
), held`, `for no key update of o
`, `for no key update of o skip locked
`).Replace(unitsSQL)

// orderDoc is an order as [unitsSQL] reads it.
type orderDoc struct {
	User       int64        `json:"user"`
	Shop       int64        `json:"shop"`
	Currency   string       `json:"currency"`
	Revision   int64        `json:"revision"`
	Discount   int64        `json:"discount"`
	PaidBack   int64        `json:"paid_back"`
	Lines      []string     `json:"lines"`
	Products   []string     `json:"products"`
	Quantities []int64      `json:"quantities"`
	Amounts    []int64      `json:"amounts"`
	Returned   []int64      `json:"returned"`
	Refund     *cart.Refund `json:"refund,omitempty"`
}

func docOf(d cart.Decision) string {
	o := d.Order
	doc := orderDoc{User: int64(o.UserID), Shop: o.Shop, Currency: o.Currency, Revision: o.Revision, Discount: int64(o.Discount), PaidBack: int64(o.PaidBack),
		Lines: []string{}, Products: []string{}, Quantities: []int64{}, Amounts: []int64{}, Returned: append([]int64{}, o.Returned...), Refund: d.Refund}
	for _, l := range o.Lines {
		doc.Lines, doc.Products = append(doc.Lines, l.ID), append(doc.Products, l.Product)
		doc.Quantities, doc.Amounts = append(doc.Quantities, l.Quantity), append(doc.Amounts, int64(l.Amount))
	}
	text, _ := json.Marshal(doc) // of numbers and valid texts
	return string(text)
}

// unitsArgs are the arguments of [unitsSQL].
func unitsArgs(ctx context.Context, u units) pgx.StrictNamedArgs {
	args := movesArgs(ctx, u.moves, u.refused)
	var revised []coupon.Operation
	for _, m := range u.moves {
		if m.Revises != nil {
			revised = append(revised, *m.Revises)
		}
	}
	of := operationArgs(revised)
	args["units"] = append([]int{}, u.of...)
	args["r_coupons"], args["r_orders"], args["r_amounts"], args["r_eligible"], args["r_discounts"] = of["op_coupons"], of["op_orders"], of["op_amounts"], of["op_eligible"], of["op_discounts"]
	n := len(u.orders)
	ids, versions, states, docs := make([]string, n), make([]int64, n), make([]string, n), make([]string, n)
	orders, names := []string{}, []string{}
	unitsOf, revisions, coupons, amounts := []int{}, []int64{}, []int64{}, []int64{}
	for i, d := range u.orders {
		ids[i], versions[i], states[i], docs[i] = d.Order.ID, d.Order.Version, string(d.Order.State), docOf(d)
		for _, use := range d.Order.Uses {
			for at, share := range use.Shares {
				if d.NewUses && share > 0 {
					orders, names, unitsOf = append(orders, d.Order.ID), append(names, d.Order.Lines[at].ID), append(unitsOf, u.ofOrder[i])
					revisions, coupons, amounts = append(revisions, d.Order.Revision), append(coupons, use.Coupon), append(amounts, int64(share))
				}
			}
		}
	}
	args["w_units"], args["w_ids"], args["w_versions"], args["w_states"], args["w_docs"] = append([]int{}, u.ofOrder...), ids, versions, states, docs
	args["s_units"], args["s_orders"], args["s_revisions"], args["s_coupons"], args["s_lines"], args["s_amounts"] = unitsOf, orders, revisions, coupons, names, amounts
	return args
}

// readUnits reads the rows of [unitsSQL] into the coupons as they were to be, and returns the units that were stored.
func readUnits(rows pgx.Rows, coupons []coupon.Coupon) (whole map[int]bool, err error) {
	defer rows.Close()
	places := make(map[int64]int, len(coupons))
	for i, c := range coupons {
		places[c.ID] = i
	}
	whole = map[int]bool{}
	for rows.Next() {
		var unit int
		var id, version *int64
		var updated, locked, until, used *time.Time
		var returned *bool
		if err := rows.Scan(&unit, &id, &version, &updated, &locked, &until, &used, &returned); err != nil {
			return nil, err
		}
		if whole[unit] = true; id == nil {
			continue
		}
		c := &coupons[places[*id]]
		c.Version, c.UpdatedAt, c.LockedAt, c.LockedUntil, c.UsedAt, c.Returned = *version, *updated, locked, until, used, *returned
	}
	return whole, rows.Err()
}
