package past

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/coupon"
	"dropbell/domain/money"
)

// owned is a coupon with the steps of its life.
type owned struct {
	user             int64
	issued, expires  time.Time
	state            coupon.State
	order            string
	discount         money.Amount
	lockedAt, usedAt *time.Time
	log              []coupon.Operation
	returned         bool
}

// step changes the state and logs it.
func (c *owned) step(s coupon.Step, to coupon.State, order, by string, at time.Time) *coupon.Operation {
	at = at.Truncate(time.Microsecond)
	c.log = append(c.log, coupon.Operation{OrderID: order, Step: s, Outcome: coupon.Done, From: c.state, To: to, By: by, At: at, Discount: c.discount})
	c.state = to
	switch to {
	case coupon.Locked:
		c.order, c.lockedAt = order, &at
	case coupon.Used:
		c.usedAt = &at
	default:
		c.order, c.discount, c.lockedAt, c.usedAt = "", 0, nil, nil
	}
	return &c.log[len(c.log)-1]
}

const (
	till   = "key:1 Till"
	system = "system"
)

// storeCoupons lets users claim, pay and return, and stores the rows.
func (d *made) storeCoupons(ctx context.Context) error {
	d.claim()
	for i := range d.coupons {
		d.live(&d.coupons[i])
	}
	d.revoke()
	ids, err := nextIDs(ctx, d.tx, "coupons", len(d.coupons))
	if err != nil {
		return err
	}
	rows := &table{name: "coupons", columns: []string{"id", "template_id", "user_id", "claim_id", "origin", "state", "issued_at", "expires_at", "order_id", "locked_at",
		"discount", "used_at", "updated_at", "version", "returned"}}
	counts := &table{name: "claim_counts", columns: []string{"template_id", "user_id", "issued"}}
	seconds := &table{name: "claim_seconds", columns: []string{"template_id", "second", "issued"}}
	var log []coupon.Operation
	issued, returned := 0, 0
	for i, c := range d.coupons {
		updated := c.issued
		for _, op := range c.log {
			op.CouponID, updated = ids[i], op.At
			log = append(log, op)
		}
		rows.add(ids[i], d.id, c.user, d.r.Int64N(math.MaxInt64-1)+1, "claim", string(c.state), c.issued, c.expires, c.order, c.lockedAt,
			int64(c.discount), c.usedAt, updated, int64(len(c.log)), c.returned)
		counts.add(d.id, c.user, int32(1))
		second := c.issued.Truncate(time.Second)
		if n := len(seconds.rows); n > 0 && seconds.rows[n-1][1] == second {
			seconds.rows[n-1][2] = seconds.rows[n-1][2].(int64) + 1
		} else {
			seconds.add(d.id, second, int64(1))
		}
		issued++
		if c.returned {
			returned++
		}
	}
	slices.SortStableFunc(log, func(a, b coupon.Operation) int { return a.At.Compare(b.At) })
	lines := &table{name: "coupon_operations", columns: []string{"coupon_id", "order_id", "step", "outcome", "from_state", "to_state", "order_amount", "eligible", "discount", "actor", "reason", "at"}}
	for _, op := range log {
		lines.add(op.CouponID, op.OrderID, string(op.Step), op.Outcome, string(op.From), string(op.To), int64(op.OrderAmount), int64(op.Eligible), int64(op.Discount), op.By, op.Reason, op.At)
	}
	if err := store(ctx, d.tx, rows, counts, seconds, lines); err != nil {
		return err
	}
	_, err = d.tx.Exec(ctx, `update templates set issued = $2, returned = $3 where id = $1`, d.id, issued-returned, returned)
	return err
}

// attempt is one user's claim.
type attempt struct {
	user int64
	at   time.Time
}

// claim draws the claims; the first ones get the stock.
func (d *made) claim() {
	var attempts []attempt
	try := func(user int64, after time.Duration) {
		at := d.OpensAt.Add(after).Truncate(time.Microsecond)
		if after >= d.Paused[0] && after < d.Paused[1] { // the user tries again at the end of the pause
			at = d.OpensAt.Add(d.Paused[1] + (after-d.Paused[0])/10).Truncate(time.Microsecond)
		}
		if at.Before(d.closes) && at.Before(d.now) {
			attempts = append(attempts, attempt{user, at})
		}
	}
	reserved := map[int64]bool{}
	for _, b := range d.bookers {
		reserved[b.id] = true
		switch chance := d.r.Float64(); {
		case chance < d.Tries:
			try(b.id, 40*time.Millisecond+time.Duration(d.r.ExpFloat64()*float64(d.Rush)))
		default:
			if c := d.campaign; c.asks(coupon.StepLock, b.id, d.r.Float64()) {
				try(b.id, c.After+time.Duration(60+d.r.ExpFloat64()*9000)*time.Second)
			}
		}
	}
	others := int(d.Others * float64(d.Bookers))
	for _, i := range d.r.Perm(len(d.known)) {
		if p := d.known[i]; others > 0 && !reserved[p.id] {
			try(p.id, time.Second+time.Duration(d.r.ExpFloat64()*3*float64(d.Rush)))
			others--
		}
	}
	slices.SortFunc(attempts, func(a, b attempt) int { return a.at.Compare(b.at) })
	for _, a := range attempts[:min(len(attempts), int(d.Stock))] {
		d.coupons = append(d.coupons, owned{user: a.user, issued: a.at, expires: a.at.Add(time.Duration(d.ValidHours) * time.Hour), state: coupon.Unused})
	}
}

// live takes the coupon through its life up to now.
func (d *made) live(c *owned) {
	span := c.expires.Sub(c.issued)
	at := c.issued.Add(2*time.Minute + time.Duration(math.Pow(d.r.Float64(), 2.4)*.9*float64(span)))
	uses := d.r.Float64() < d.Uses
	if k := d.campaign; k != nil && k.uses() {
		// Owners use it before the campaign, or after it as far as it moves them.
		if at.After(k.StartsAt) {
			uses = false
		}
		if !uses {
			uses, at = k.asks(coupon.StepConfirm, c.user, d.r.Float64()), k.StartsAt.Add(time.Duration((.02+.9*d.r.Float64())*float64(c.expires.Sub(k.StartsAt))))
		}
	}
	if uses {
		d.pay(c, at)
	}
	if c.state == coupon.Unused && c.expires.Before(d.now) {
		c.step(coupon.StepExpire, coupon.Expired, "", system, c.expires)
	}
}

// pay uses the coupon for an order at that time, if it has come. Some payments fail first, and
// some orders are returned.
func (d *made) pay(c *owned, at time.Time) {
	number := d.Key[:2] + "-" + strconv.FormatInt(at.Unix(), 36) + strconv.FormatInt(c.user, 36)
	if d.r.Float64() < .06 && d.passed(at.Add(-20*time.Minute), c) {
		d.lock(c, number+"-0", at.Add(-20*time.Minute))
		if d.r.Float64() < .7 {
			c.step(coupon.StepRelease, coupon.Unused, number+"-0", till, at.Add(-18*time.Minute))
		} else {
			c.step(coupon.StepTimeout, coupon.Unused, number+"-0", system, at.Add(-5*time.Minute))
		}
	}
	if !d.passed(at, c) {
		return
	}
	d.lock(c, number, at)
	paid := at.Add(time.Duration(15+d.r.IntN(80)) * time.Second)
	c.step(coupon.StepConfirm, coupon.Used, number, till, paid)
	back := paid.Add(time.Duration(4+d.r.IntN(90)) * time.Hour)
	if d.r.Float64() < .045 && back.Before(d.now) {
		to := coupon.Unused
		if !back.Before(c.expires) {
			to = coupon.Expired
		}
		c.step(coupon.StepRefund, to, number, till, back)
	}
}

// passed reports whether the coupon can be paid with at that time, and the order has ended by now.
func (d *made) passed(at time.Time, c *owned) bool {
	return at.After(c.issued) && at.Add(2*time.Minute).Before(d.now) && at.Add(2*time.Minute).Before(c.expires)
}

// lock holds the coupon for an order of a likely amount.
func (d *made) lock(c *owned, number string, at time.Time) {
	amount := money.Amount(float64(d.Basket)*math.Exp(.42*d.r.NormFloat64())) / 100 * 100
	amount = max(amount, d.Threshold+money.Amount(d.r.IntN(40)*100), d.AmountOff+900)
	order, rule := coupon.Order{ID: number, Amount: amount}, coupon.RuleOf(d.Spec)
	eligible, err := rule.Eligible(order)
	if err == nil {
		c.discount, err = rule.Discount(order)
	}
	if err != nil {
		panic(fmt.Sprintf("an order of the plan breaks the rule of its drop: %v", err))
	}
	op := c.step(coupon.StepLock, coupon.Locked, number, till, at)
	op.OrderAmount, op.Eligible = amount, eligible
}

// revoke takes a few coupons back to the stock, on behalf of staff.
func (d *made) revoke() {
	left := d.Revoked
	for i := range d.coupons {
		if c := &d.coupons[i]; left > 0 && c.state == coupon.Expired && len(c.log) == 1 {
			c.state, c.log, c.returned = coupon.Unused, nil, true
			c.step(coupon.StepRevoke, coupon.Revoked, "", d.member(), c.issued.Add(3*time.Hour)).Reason = "claimed by a script"
			left--
		}
	}
}

// OnSale returns the history's drop that is on sale, and a few of its coupons that no order holds.
func OnSale(ctx context.Context, tx pgx.Tx) (drop int64, coupons []int64, err error) {
	if err := tx.QueryRow(ctx, `select id from templates where request_key = 'demo: afternoon'`).Scan(&drop); err != nil {
		return 0, nil, err
	}
	rows, err := tx.Query(ctx, `select id from coupons where template_id = $1 and state in ('unused', 'locked') and expires_at > now() + interval '1 day' order by id limit 4`, drop)
	if err != nil {
		return 0, nil, err
	}
	coupons, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	return drop, coupons, err
}
