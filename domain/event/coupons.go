package event

import "time"

// Names of events about coupons after their issue.
const (
	CouponsChanged = "coupons.changed.v1"
	// CouponChanged is announced by programs from before [CouponsChanged], and read while any
	// of them may run or their events wait.
	CouponChanged  = "coupon.changed.v1"
	CouponsExpired = "coupons.expired.v1"
	BudgetReached  = "budget.reached.v1"
)

// MaxCouponChanges is the most changes in one event.
const MaxCouponChanges = 500

// CouponChanges is the payload of [CouponsChanged]: the steps of one committed group that
// changed states of coupons, by ascending operation id.
type CouponChanges struct {
	Changes []Coupon `json:"changes"`
}

// Coupon is one step of one coupon that changed its state. It is also the payload of
// [CouponChanged].
type Coupon struct {
	CouponID   int64  `json:"coupon_id,string"`
	TemplateID int64  `json:"template_id,string"`
	UserID     int64  `json:"user_id,string"`
	OrderID    string `json:"order_id,omitempty"`
	Step       string `json:"step"`
	From       string `json:"from"`
	To         string `json:"to"`
	// Discount is the amount that the coupon takes, or took, off the order.
	Discount int64 `json:"discount"`
	// OrderAmount is the amount of the order before discounts, for steps lock, confirm
	// and refund.
	OrderAmount int64 `json:"order_amount,omitempty"`
	// LockedUntil is when a new lock expires.
	LockedUntil *time.Time `json:"locked_until,omitempty"`
	// OperationID is the line of the coupon's log: of two events of one coupon the
	// later event has the greater number.
	OperationID int64     `json:"operation_id,string"`
	At          time.Time `json:"at"`
}

// Budget is the payload of [BudgetReached]: the coupons that were issued can take off 80 %
// of a budget (Level near), or no further coupon fits (used_up). Scope is drop or shop, and
// Subject the drop's id or the shop's number. Amounts are minor units of Currency.
type Budget struct {
	Scope      string    `json:"scope"`
	Subject    int64     `json:"subject,string"`
	ShopNumber int64     `json:"shop_number,string"`
	Currency   string    `json:"currency"`
	Amount     int64     `json:"amount"`
	Used       int64     `json:"used"`
	Level      string    `json:"level"`
	At         time.Time `json:"at"`
}

// ExpiredCoupons says that so many coupons of a template have expired.
type ExpiredCoupons struct {
	TemplateID int64 `json:"template_id,string"`
	Coupons    int64 `json:"coupons"`
}

// Expired is the payload of [CouponsExpired]: the sums of one swept group.
type Expired struct {
	At      time.Time        `json:"at"`
	Expired []ExpiredCoupons `json:"expired"`
}
