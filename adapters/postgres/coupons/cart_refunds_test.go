package coupons_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/cart"
	"dropbell/domain/money"
)

// TestNoRefundIsNettedTwice mixes refunds of lines of an order with refunds of its single coupons, in any order, with events that are
// handled at any time. A model by brute force knows the amount that each drop gave back: an order counts once, with the
// drop's coupon of the lowest id, by a refund of that coupon if it came before all refunds of the order, and otherwise by the
// lines that came back. When all has come back, the drops have earned nothing.
func TestNoRefundIsNettedTwice(t *testing.T) {
	o := newOrdering(t)
	other := o.Published(time.Hour).ID
	o.Exec(`update templates set max_per_order = 5, stock = 1000000, stack_group = 'any', stacks_with = 'any' where id in ($1, $2)`, o.drop.ID, other)
	drops := []int64{o.drop.ID, other}
	ctx := o.Context()
	sums := func(d int64) (now [6]int64) {
		o.Must(o.SQL.QueryRow(ctx, `select coalesce(sum(orders) filter (where not refund), 0), coalesce(sum(ordered) filter (where not refund), 0), coalesce(sum(discount) filter (where not refund), 0),
			coalesce(sum(orders) filter (where refund), 0), coalesce(sum(ordered) filter (where refund), 0), coalesce(sum(discount) filter (where refund), 0)
			from sale_hours where template_id = $1`, d).Scan(&now[0], &now[1], &now[2], &now[3], &now[4], &now[5]))
		return now
	}
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		order, before := fmt.Sprint("N-", n), [2][6]int64{sums(drops[0]), sums(drops[1])}
		o.Exec(`delete from outbox`)
		var ids []int64
		of := map[int64]int{}
		for range rapid.IntRange(1, 3).Draw(r, "coupons") {
			drop := rapid.IntRange(0, 1).Draw(r, "drop")
			id := o.issueTo(7, drops[drop])
			ids, of[id] = append(ids, id), drop
		}
		w := wish(order, 0, 8000, ids...)
		taken, err := o.lock(w)
		o.Must(err)
		_, err = o.orders.Confirm(ctx, "", 7, order, 0)
		o.Must(err)
		off := [2]money.Amount{}
		for _, u := range taken.Order.Uses {
			off[of[u.Coupon]] += u.Off
		}
		counting := [2]int64{}
		for _, id := range slices.Backward(ids) {
			counting[of[id]] = id
		}
		single := map[int64]bool{}
		lines, returned := []money.Amount{0, 0}, money.Amount(0)
		alone := [2]bool{}
		for range rapid.IntRange(0, 5).Draw(r, "steps") {
			switch step := rapid.SampledFrom([]string{"single", "line 1", "line 1", "line 2", "relay", "recount"}).Draw(r, "step"); step {
			case "single":
				id := rapid.SampledFrom(ids).Draw(r, "coupon")
				if _, err := o.steps.Refund(ctx, "", id, order); err == nil && returned == 0 && !single[id] {
					single[id] = true
					alone[of[id]] = alone[of[id]] || id == counting[of[id]]
				}
			case "relay":
				o.relay()
			case "recount":
				for _, d := range drops {
					_, err := o.tallies.RecountSales(ctx, d)
					o.Must(err)
				}
			default:
				i := int(step[5] - '1')
				l := taken.Order.Lines[i]
				if lines[i] == l.Amount {
					continue
				}
				_, err := o.orders.Refund(ctx, "", 7, order, cart.Return{ID: fmt.Sprint("R-", i, "-", lines[i]), Lines: []cart.ReturnedLine{{ID: l.ID, Quantity: 1}}})
				o.Must(err)
				lines[i] += l.Amount / money.Amount(l.Quantity)
				returned = lines[0] + lines[1]
			}
		}
		check := func(when string) {
			o.relay()
			for i, d := range drops {
				now := sums(d)
				var paid, back [3]int64
				for j := range 3 {
					paid[j], back[j] = now[j]-before[i][j], now[j+3]-before[i][j+3]
				}
				want := [3]int64{}
				if counting[i] != 0 {
					want = [3]int64{1, int64(taken.Order.Amount()), int64(off[i])}
				}
				if paid != want {
					r.Fatalf("%s drop %d counted %v, want %v", when, i, paid, want)
				}
				switch whole := returned == taken.Order.Amount(); {
				case counting[i] == 0, returned == 0 && !alone[i]:
					want[0], want[1] = 0, 0
				case !whole && !alone[i]:
					want[0], want[1] = 0, int64(returned)
				}
				if back[0] != want[0] || back[1] != want[1] || back[2] > paid[2] || back[2] < 0 || want[0] == 1 && when == "in the end" && back[2] != paid[2] {
					r.Fatalf("%s drop %d took back %v of %v, want %v; alone %v, %d returned", when, i, back, paid, want, alone, returned)
				}
				if off, err := o.tallies.SalesOff(ctx, d); err != nil || off != 0 {
					r.Fatalf("%s the sums of drop %d are off by %d, %v", when, i, off, err)
				}
			}
		}
		check("after the steps")
		if returned < taken.Order.Amount() {
			_, err = o.orders.Refund(ctx, "", 7, order, cart.Return{})
			o.Must(err)
			returned = taken.Order.Amount()
		}
		check("in the end")
	})
}
