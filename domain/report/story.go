package report

import (
	"time"

	"dropbell/domain/money"
	"dropbell/domain/template"
)

// A Story is the figures of the sentence that a report begins with. A part whose number is
// unknown, or which did not happen, is left out of the sentence; its Known field is false.
type Story struct {
	Coupons  CouponPart
	Reminded RemindedPart
	Used     UsedPart
	Compared ComparedPart
}

// CouponPart is how many coupons were given.
type CouponPart struct {
	Known         bool
	Issued, Total int64
	// GoneIn is the time from the opening to the last coupon; 0 if coupons are left.
	GoneIn time.Duration
}

// RemindedPart is how many users got a reminder of the present opening.
type RemindedPart struct {
	Known  bool
	People int64
	// Late is an upper bound of the reminders that were recorded as sent after the opening;
	// with 0 all were sent before. Opened is set once the drop has opened: until then more
	// reminders may be sent.
	Late   int64
	Opened bool
}

// UsedPart is how many coupons are used, and what customers paid for the orders.
type UsedPart struct {
	Known   bool
	Coupons int64
	// Revenue is 0 if the amounts are unknown, or if all orders were refunded.
	Revenue  money.Amount
	Currency string
}

// ComparedPart is by how much the revenue differs from an earlier drop in the same currency.
type ComparedPart struct {
	Known           bool
	Drop            string
	Revenue, Before money.Amount // Before > 0
	// Used of the Given coupons of the drop are used, and UsedThen of the GivenThen coupons of the earlier drop. All are 0 if one of the
	// drops gave none.
	Used, Given, UsedThen, GivenThen int64
}

// Story returns the figures of the sentence.
func (r Report) Story() Story {
	other := r.Other
	opened := !r.At.Before(r.Template.OpensAt)
	s := Story{
		Coupons:  CouponPart{r.Issued > 0, r.Issued, r.Total, r.SoldOutAfter},
		Reminded: RemindedPart{!r.People.Partial && r.People.Reminded > 0, r.People.Reminded, r.AfterOpening, opened},
		Used:     UsedPart{r.Tally.Used > 0, r.Tally.Used, max(0, r.Money.Revenue()), r.Template.Currency},
	}
	if other == nil || s.Used.Revenue == 0 || r.Template.State(r.At) != template.Closed || other.Template.State(r.At) != template.Closed {
		return s
	}
	if before := other.Money.Revenue(); before > 0 && other.Template.Currency == r.Template.Currency {
		s.Compared = ComparedPart{Known: true, Drop: other.Template.Name, Revenue: s.Used.Revenue, Before: before}
		if r.Given() > 0 && other.Given() > 0 {
			s.Compared.Used, s.Compared.Given, s.Compared.UsedThen, s.Compared.GivenThen = r.Tally.Used, r.Given(), other.Tally.Used, other.Given()
		}
	}
	return s
}

// A Stage is one step on the way to the use of a coupon.
type Stage struct {
	// Key is "booked", "reminded", "opened", "claimed" or "used" of users, and "entries", "stock", "given", "won" or
	// "coupons_used" of a drop without reminders.
	Key string
	// People is the number of users who took the step, or of entries or coupons. Change is the difference from the stage
	// before: negative for users who were lost, positive for users who took this step without
	// the one before.
	People, Change int64
	// Share is People of the first stage, from 0 on. All stages have this baseline.
	Share float64
}

// Funnel returns the stages in their order.
func (p People) Funnel() []Stage {
	return stages(Stage{Key: "booked", People: p.Booked}, Stage{Key: "reminded", People: p.Reminded}, Stage{Key: "opened", People: p.Opened},
		Stage{Key: "claimed", People: p.Claimed}, Stage{Key: "used", People: p.Used})
}

// CouponFunnel returns the stages of a drop without reminders: from the entries of its draw, otherwise from its stock.
func (r Report) CouponFunnel() []Stage {
	used := Stage{Key: "coupons_used", People: r.Tally.Used}
	if r.Draw != nil {
		return stages(Stage{Key: "entries", People: r.Draw.Draw.Entries()}, Stage{Key: "won", People: r.Draw.Draw.Won}, Stage{Key: "coupons_given", People: r.Given()}, used)
	}
	return stages(Stage{Key: "stock", People: r.Total}, Stage{Key: "given", People: r.Given()}, used)
}

// stages sets the changes and shares of the stages.
func stages(list ...Stage) []Stage {
	for i := range list {
		if list[0].People > 0 {
			list[i].Share = float64(list[i].People) / float64(list[0].People)
		}
		if i > 0 {
			list[i].Change = list[i].People - list[i-1].People
		}
	}
	return list
}
