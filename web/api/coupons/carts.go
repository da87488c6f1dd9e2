package coupons

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/cart"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// CartLine is one line of an order.
type CartLine struct {
	ID       string `json:"id" minLength:"1" maxLength:"64" doc:"Names the line within the order: 1 to 64 bytes without spaces." example:"1"`
	Product  string `json:"product,omitempty" maxLength:"120" doc:"As templates name it. Without it no coupon for one product applies to the line." example:"tea"`
	Quantity int64  `json:"quantity" minimum:"1" maximum:"1000000" example:"2"`
	Amount   int64  `json:"amount" minimum:"0" maximum:"1000000000000000" doc:"The price of the whole line before discounts, in minor units." example:"3000"`
}

// CartOrder is an order that is being put together.
type CartOrder struct {
	ShopNumber string     `json:"shop_number,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"If given, coupons of other shops cannot be used." example:"10"`
	Currency   string     `json:"currency" doc:"ISO 4217." example:"CNY"`
	Lines      []CartLine `json:"lines" minItems:"1" maxItems:"200" nullable:"false"`
}

// QualifyWish asks which coupons an order can use.
type QualifyWish struct {
	UserID  string    `json:"user_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The owner of the coupons. Not needed with the user's own token or with X-User-ID; if given, both must agree." example:"1001"`
	Order   CartOrder `json:"order"`
	Coupons []string  `json:"coupons,omitempty" maxItems:"30" nullable:"false" doc:"The coupons to look at. Without it: the newest 100 unused coupons of the user." example:"[\"1\"]"`
}

// LineShare is the part of a discount that is one line's.
type LineShare struct {
	ID     string `json:"id" doc:"The id of the line." example:"1"`
	Amount int64  `json:"amount" doc:"Minor units." example:"500"`
}

// UsableCoupon is a coupon that the order can use.
type UsableCoupon struct {
	Coupon   string      `json:"coupon" doc:"The coupon's id." example:"1"`
	Discount int64       `json:"discount" doc:"What the coupon takes off, in minor units." example:"1000"`
	Lines    []LineShare `json:"lines" nullable:"false" doc:"The discount by line, without lines that have none; adds up to discount."`
}

// UnusableCoupon is a coupon that the order cannot use.
type UnusableCoupon struct {
	Coupon  string `json:"coupon" doc:"The coupon's id." example:"2"`
	Reason  string `json:"reason" enum:"other_currency,other_shop,product_not_in_cart,below_threshold,nothing_to_take_off,coupon_not_found,locked,used,expired,refunded,revoked,suspended" doc:"coupon_not_found: it does not exist or belongs to another user. locked to suspended: its state." example:"below_threshold"`
	Missing int64  `json:"missing,omitempty" doc:"For below_threshold: by how much the order must grow, in minor units." example:"1200"`
}

// BestCoupons is the combination that takes the most off.
type BestCoupons struct {
	Coupons  []string       `json:"coupons" nullable:"false" doc:"The ids in the order in which the coupons take effect; empty = no coupon can be used." example:"[\"1\"]"`
	Discount int64          `json:"discount" doc:"Of all of them together, in minor units. Send it as expect_discount of the lock." example:"1000"`
	Lines    []LineShare    `json:"lines" nullable:"false" doc:"The discount by line, without lines that have none; adds up to discount."`
	Uses     []UsableCoupon `json:"uses" nullable:"false" doc:"What each coupon takes off within the combination."`
	Exact    bool           `json:"exact" doc:"false = there were too many coupons to try all combinations; the best that was found." example:"true"`
}

// SoonExpiring is a usable coupon that expires soon.
type SoonExpiring struct {
	Coupon    string    `json:"coupon" doc:"The coupon's id." example:"1"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Qualified says what a user's coupons do for an order.
type Qualified struct {
	Usable      []UsableCoupon   `json:"usable" nullable:"false" doc:"Each coupon by itself, the largest discount first."`
	Unusable    []UnusableCoupon `json:"unusable" nullable:"false"`
	Best        BestCoupons      `json:"best"`
	ExpiresSoon []SoonExpiring   `json:"expires_soon" nullable:"false" doc:"The usable coupons that expire within 72 hours, the earliest first."`
}

func (h *handlers) cartRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForOwners}, Method: http.MethodPost, Path: "/coupons/qualify", ID: "qualify-coupons",
		Summary: "Which coupons an order can use, and which together are best",
		Description: "Stores nothing and holds nothing. Coupons for products take effect first, then amounts off, then percentages of what is left; a threshold looks at the part " +
			"that is not discounted yet. An order uses at most 5 coupons, whose drops must name each other's stack_group.",
		Example: `{"user_id":"1001","order":{"currency":"CNY","lines":[{"id":"1","product":"tea","quantity":2,"amount":3000},{"id":"2","product":"cup","quantity":1,"amount":800}]}}`}, h.qualify)
}

func (h *handlers) qualify(ctx context.Context, in *struct{ Body QualifyWish }) (*struct{ Body Qualified }, error) {
	owner, err := ownerOf(ctx, in.Body.UserID)
	if err == nil && owner == 0 {
		err = pipeline.Refused("body.user_id", "is required with a key that names no user in X-User-ID")
	}
	c, bad := in.Body.Order.cart("body.order.")
	err = pipeline.Merge(err, bad)
	only := make([]int64, len(in.Body.Coupons))
	for i, text := range in.Body.Coupons {
		id, bad := pipeline.ParseID("body.coupons["+strconv.Itoa(i)+"]", text)
		only[i], err = id, pipeline.Merge(err, bad)
	}
	if err != nil {
		return nil, err
	}
	a, err := h.Carts.Qualify(ctx, owner, c, only)
	if err != nil {
		return nil, below("order.", err)
	}
	return &struct{ Body Qualified }{qualifiedJSON(c, a)}, nil
}

// ownerOf returns the user that a body and the credentials name; 0 = neither does.
func ownerOf(ctx context.Context, typed string) (user.ID, error) {
	named := pipeline.UserOf(ctx)
	if typed == "" {
		return named, nil
	}
	id, err := pipeline.ParseID("body.user_id", typed)
	if err == nil && named != 0 && named != user.ID(id) {
		err = pipeline.Refused("body.user_id", "is another user than the token or X-User-ID names; leave it out")
	}
	return user.ID(id), err
}

func (o CartOrder) cart(at string) (cart.Cart, error) {
	c := cart.Cart{Currency: o.Currency}
	for _, l := range o.Lines {
		c.Lines = append(c.Lines, cart.Line{ID: l.ID, Product: l.Product, Quantity: l.Quantity, Amount: money.Amount(l.Amount)})
	}
	if o.ShopNumber == "" {
		return c, nil
	}
	shop, err := pipeline.ParseID(at+"shop_number", o.ShopNumber)
	c.Shop = shop
	return c, err
}

// below returns err with its fields below the field at of the body.
func below(at string, err error) error {
	broken, ok := errors.AsType[*fault.Fields](err)
	if !ok {
		return err
	}
	e := &fault.Fields{List: slices.Clone(broken.List)}
	for i := range e.List {
		e.List[i].Name = at + e.List[i].Name
	}
	return e
}

func sharesJSON(c cart.Cart, shares []money.Amount) []LineShare {
	list := []LineShare{}
	for i, share := range shares {
		if share > 0 {
			list = append(list, LineShare{c.Lines[i].ID, int64(share)})
		}
	}
	return list
}

func usesJSON(c cart.Cart, uses []cart.Use) []UsableCoupon {
	list := make([]UsableCoupon, len(uses))
	for i, u := range uses {
		list[i] = UsableCoupon{pipeline.Decimal(u.Coupon), int64(u.Off), sharesJSON(c, u.Shares)}
	}
	return list
}

func qualifiedJSON(c cart.Cart, a cart.Answer) Qualified {
	best := BestCoupons{Coupons: []string{}, Discount: int64(a.Best.Discount), Lines: sharesJSON(c, a.Best.Lines(len(c.Lines))), Uses: usesJSON(c, a.Best.Uses), Exact: a.Best.Exact}
	for _, id := range a.Best.Coupons() {
		best.Coupons = append(best.Coupons, pipeline.Decimal(id))
	}
	q := Qualified{Usable: usesJSON(c, a.Usable), Unusable: make([]UnusableCoupon, len(a.Unusable)), Best: best, ExpiresSoon: make([]SoonExpiring, len(a.ExpiresSoon))}
	for i, u := range a.Unusable {
		q.Unusable[i] = UnusableCoupon{pipeline.Decimal(u.Coupon), string(u.Reason), int64(u.Missing)}
	}
	for i, t := range a.ExpiresSoon {
		q.ExpiresSoon[i] = SoonExpiring{pipeline.Decimal(t.ID), time.UnixMicro(t.ExpiresAt).UTC()}
	}
	return q
}
