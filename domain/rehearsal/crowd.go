package rehearsal

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// FirstUser is the first of the made-up users of a rush. Ids of real users are below it.
const FirstUser = user.ID(1) << 62

// strangers is how many thousandths of the made-up users come through no door, if no door is for all users.
const strangers = 50

// A Crowd knows through which door of a drop each user of a rehearsal comes. Made-up users are shared among the doors as the
// customers who claimed from the drop or reserved reminders of it are. Other users, those of a shop that tries its checkout, come through the
// last door. It implements [claim.KnownMembers].
type Crowd struct{}

// Door implements [claim.Members].
func (Crowd) Door(ctx context.Context, t *template.Template, by user.ID) (int, error) {
	if place := (Crowd{}).Known(ctx, t, by); place > 0 {
		return place, nil
	}
	if slices.ContainsFunc(t.Doors, func(d template.Door) bool { return d.Who == template.ToCodes }) {
		return 0, claim.ErrCodeNeeded
	}
	return 0, claim.ErrNotEligible
}

// Known implements [claim.KnownMembers]; it returns 0 for strangers and for drops without doors.
func (Crowd) Known(_ context.Context, t *template.Template, by user.ID) int {
	if len(t.Doors) == 0 {
		return 0
	}
	if by < FirstUser {
		return len(t.Doors)
	}
	point := int(uint64(by-FirstUser) * 617 % 1000) // neighbours come through different doors
	for i, share := range DoorShares(t.Doors) {
		if point -= share; point < 0 {
			return i + 1
		}
	}
	return 0
}

// DoorShares returns how many thousandths of the made-up users come through each door. The sum is below 1000 if no door is for all users.
func DoorShares(doors []template.Door) []int {
	list, left := make([]int, len(doors)), 1000
	if !slices.ContainsFunc(doors, func(d template.Door) bool { return d.Who == template.ToAll }) {
		left -= strangers
	}
	for i, d := range doors {
		switch {
		case d.Who == template.ToAll || i == len(doors)-1:
			list[i] = left
		case d.Claimed != nil && *d.Claimed > 0:
			list[i] = min(left, *d.Claimed)
		case d.Booked != nil && *d.Booked > 0:
			list[i] = min(left, *d.Booked)
		default:
			list[i] = left / (len(doors) - i)
		}
		left -= list[i]
	}
	return list
}

// evening is how the customers of an opening come where no earlier drop shows it, in hundredths by second: the most in the first
// second, and ever fewer within [RushTakes].
var evening = []int64{30, 18, 13, 10, 8, 6, 5, 4, 3, 3}

// Arrivals returns the seconds of a rush of about n customers. curve has the coupons that an earlier drop issued in each second. Customers come as it
// says, but no second has less than half of what an evening without a curve has: coupons that are sold out do not keep customers away. No second has more than most.
func Arrivals(n int64, curve []int64, most int64) []int64 {
	curve = curve[:min(len(curve), len(evening))]
	var sum int64
	for _, c := range curve {
		sum += c
	}
	weights, all := make([]float64, len(evening)), 0.0
	for i, e := range evening {
		weights[i] = float64(e)
		if sum > 0 {
			weights[i] /= 2
			if i < len(curve) {
				weights[i] = max(weights[i], 100*float64(curve[i])/float64(sum))
			}
		}
		all += weights[i]
	}
	list, came, given := make([]int64, len(evening)), 0.0, int64(0)
	for i, w := range weights {
		came += w
		until := int64(float64(n)*came/all + 0.5)
		list[i] = min(max(1, most), until-given)
		given = until
	}
	return list
}

// SoldOutAfter returns after how long customers who come as arrivals says have taken stock coupons; 0 = they do not take all of them.
func SoldOutAfter(arrivals []int64, stock int64) time.Duration {
	var came int64
	for i, n := range arrivals {
		if n > 0 && came+n >= stock {
			return time.Duration(i)*time.Second + time.Duration(float64(stock-came)/float64(n)*float64(time.Second))
		}
		came += n
	}
	return 0
}
