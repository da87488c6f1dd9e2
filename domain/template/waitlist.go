package template

import "dropbell/domain/fault"

// Waitlist says who gets stock that comes back after a drop sold out.
type Waitlist string

// The ways. Without a waitlist, stock that comes back goes to the next tap.
const (
	NoWaitlist Waitlist = "off"
	// IssueNext gives the coupon to the user who is next on the waitlist.
	IssueNext Waitlist = "issue"
	// OfferNext keeps the coupon for the user who is next on the waitlist, to be accepted within
	// [Spec].AcceptMinutes.
	OfferNext Waitlist = "offer"
)

// RefundTo says who has a coupon after its order was refunded.
type RefundTo string

// The receivers. A coupon that returns to the stock is no longer its holder's. RefundToNobody is of single refunds of
// orders alone: the coupon stays used.
const (
	RefundToHolder RefundTo = "holder"
	RefundToStock  RefundTo = "stock"
	RefundToNobody RefundTo = "nobody"
)

// Limits of waitlists and of coupons that return to the stock.
const (
	MinAcceptMinutes     = 5
	MaxAcceptMinutes     = 1440
	DefaultAcceptMinutes = 30
	MaxUseWithinHours    = 8760
)

// Waits reports whether users can join a waitlist of the drop.
func (s Spec) Waits() bool { return s.Waitlist != "" && s.Waitlist != NoWaitlist }

func (s Spec) checkWaitlist(e *fault.Fields) {
	switch {
	case s.Waits() && s.Waitlist != IssueNext && s.Waitlist != OfferNext:
		e.Add("waitlist", "rule.waitlist", "must be off, issue or offer")
	case s.Waits() && s.Obtain == ByCode:
		e.Add("waitlist", "rule.waitlist_codes", "must be off for coupons that are obtained with redeem codes")
	case s.Waitlist == OfferNext && s.AcceptMinutes != 0 && (s.AcceptMinutes < MinAcceptMinutes || s.AcceptMinutes > MaxAcceptMinutes):
		e.Add("accept_minutes", "rule.accept_minutes", "must be between %d and %d minutes", MinAcceptMinutes, MaxAcceptMinutes)
	}
	switch {
	case s.UseWithinHours < 0 || s.UseWithinHours > MaxUseWithinHours:
		e.Add("use_within_hours", "rule.use_within_hours", "must be between 0 and %d hours", MaxUseWithinHours)
	case s.UseWithinHours > 0 && s.Obtain == ByCode:
		e.Add("use_within_hours", "rule.use_within_codes", "must be 0 for coupons that are obtained with redeem codes: a code gives one coupon")
	case s.UseWithinHours > 0 && s.ValidHours > 0 && s.UseWithinHours >= s.ValidHours:
		e.Add("use_within_hours", "rule.use_within_valid", "must be less than valid_hours: an expired coupon does not return to the stock")
	}
	switch {
	case s.RefundTo != "" && s.RefundTo != RefundToHolder && s.RefundTo != RefundToStock:
		e.Add("refund_to", "rule.refund_to", "must be holder or stock")
	case s.RefundTo == RefundToStock && s.Obtain == ByCode:
		e.Add("refund_to", "rule.refund_to_codes", "must be holder for coupons that are obtained with redeem codes: a code gives one coupon")
	}
}
