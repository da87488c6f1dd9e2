package template

import "dropbell/domain/fault"

// Waitlist says who gets stock that comes back after a drop sold out.
type Waitlist string

// The ways. Without a waitlist, stock that comes back goes to the next tap.
const (
	NoWaitlist Waitlist = "off"
	// IssueNext gives the coupon to the user who is next on the waitlist.
	IssueNext Waitlist = "issue"
)

// Waits reports whether users can join a waitlist of the drop.
func (s Spec) Waits() bool { return s.Waitlist != "" && s.Waitlist != NoWaitlist }

func (s Spec) checkWaitlist(e *fault.Fields) {
	switch {
	case s.Waits() && s.Waitlist != IssueNext:
		e.Add("waitlist", "rule.waitlist", "must be off or issue")
	case s.Waits() && s.Obtain == ByCode:
		e.Add("waitlist", "rule.waitlist_codes", "must be off for coupons that are obtained with redeem codes")
	}
}
