package shop

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"dropbell/sdk/go/api"
)

// line is one line of a cart or order. Its id in Dropbell is the name of the form's field.
type line struct {
	ID, Name, Latin              string
	Price                        int64 // of one piece, in minor units
	Quantity, Returned, Discount int64
}

// Left is how many pieces of the line can still come back.
func (l line) Left() int64 { return l.Quantity - l.Returned }

// Amount is the price of the whole line before discounts.
func (l line) Amount() int64 { return l.Price * l.Quantity }

func cup() product { return product{"白瓷茶杯", "White porcelain cup", 1200} }

// maxPieces is how many pieces of one product an order can have.
const maxPieces = 9

// cartOf returns the lines that the form names; without them one packet of tea.
func cartOf(r *http.Request) (lines []line) {
	for _, p := range []struct {
		id    string
		usual string
		product
	}{{"tea", "1", tea()}, {"cup", "0", cup()}} {
		text := r.FormValue(p.id)
		if text == "" {
			text = p.usual
		}
		n, _ := strconv.ParseInt(text, 10, 64) // nonsense is none
		lines = append(lines, line{ID: p.id, Name: p.Name, Latin: p.Latin, Price: p.Price, Quantity: max(0, min(n, maxPieces))})
	}
	return lines
}

// bought are the lines that are not empty.
func bought(lines []line) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.Quantity == 0 })
}

func total(lines []line) (sum int64) {
	for _, l := range lines {
		sum += l.Amount()
	}
	return sum
}

func cartLines(lines []line) (list []api.CartLine) {
	for _, l := range lines {
		list = append(list, api.CartLine{Id: l.ID, Product: new(l.ID), Quantity: l.Quantity, Amount: l.Amount()})
	}
	return list
}

// offer is what the user's coupons do for a cart.
type offer struct {
	Coupons []coupon
	// Discount is that of the best coupons together.
	Discount int64
}

// offer asks Dropbell which coupons of the user the lines can use, and which ones are best.
func (s *Shop) offer(ctx context.Context, user string, lines []line) (o offer, err error) {
	list, err := s.coupons(ctx, user)
	if err != nil || len(list) == 0 || len(lines) == 0 {
		return o, err
	}
	number := Number
	answer, err := s.client.QualifyCouponsWithResponse(ctx, &api.QualifyCouponsParams{XUserID: &user},
		api.QualifyWish{Order: api.CartOrder{ShopNumber: &number, Currency: "CNY", Lines: cartLines(lines)}})
	if err != nil {
		return o, err
	}
	for _, c := range list {
		for _, u := range answer.JSON200.Usable {
			if u.Coupon == c.ID {
				c.Usable, c.Discount = true, u.Discount
			}
		}
		for _, u := range answer.JSON200.Unusable {
			if u.Coupon == c.ID && u.Missing != nil {
				c.Missing = *u.Missing
			}
		}
		c.Best = slices.Contains(answer.JSON200.Best.Coupons, c.ID)
		o.Coupons = append(o.Coupons, c)
	}
	o.Discount = answer.JSON200.Best.Discount
	return o, nil
}

// giveBack returns pieces of a line to Dropbell, and the coupons with their last line, and says what to pay back.
// refund is the shop's id of the return.
func (s *Shop) giveBack(ctx context.Context, o *order, refund string, at int, pieces int64) error {
	l := &o.Lines[at]
	if len(o.Coupons) == 0 {
		o.step("%d × %s came back; %s are paid back.", pieces, l.Latin, yuan(pieces*l.Price))
		l.Returned += pieces
		return nil
	}
	answer, err := s.client.RefundOrderWithResponse(ctx, o.ID, nil, api.OrderRefund{RefundId: &refund, Lines: &[]api.RefundLine{{Id: l.ID, Quantity: pieces}}})
	if err != nil {
		return err
	}
	l.Returned += pieces
	o.step("%d × %s came back; %s are paid back.", pieces, l.Latin, yuan(answer.JSON200.PayBack))
	if claw := answer.JSON200.Clawback; claw > 0 {
		o.step("%s of the discount are lost: the rest of the order is below the coupon's threshold.", yuan(claw))
	}
	if n := len(answer.JSON200.Coupons); n > 0 {
		o.step("The coupon is back.")
	}
	return nil
}
