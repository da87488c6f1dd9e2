// Package report sums up the results of a drop: how many users it reached and how
// late, how many coupons were claimed and used, the cost, and a comparison with
// earlier drops. A report holds no personal data; it can be shared by a link.
package report

import (
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/forecast"
	"dropbell/domain/money"
	"dropbell/domain/reminder"
	"dropbell/domain/review"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

// Figures are the numbers that every drop has, from counters that are kept for
// good. Pages that compare drops show these numbers.
type Figures struct {
	Template template.Template
	// Progress and Late are about the reminders of the present opening.
	Progress reminder.Progress
	Late     delivery.Lateness
	// AfterOpening is an upper bound of the reminders that were recorded as sent
	// after the opening. Its precision is the spans of a [delivery.Lateness].
	AfterOpening int64
	// Opened is how many users opened the link in a message about the drop.
	Opened int64
	// Total is the number of coupons to give. Issued of them are given; Writing of
	// them are accepted by a gate and not stored yet.
	Total, Issued, Writing int64
	// Tally counts the coupons by state.
	Tally coupon.Tally
	// Money is what the drop earned.
	Money Money
	// SoldOutAfter is the time from the opening until no coupon was left for the first
	// time; 0 if coupons are left, not counting those kept for the waitlist.
	SoldOutAfter time.Duration
}

// Left returns how many coupons can still be given.
func (f Figures) Left() int64 { return max(0, f.Total-f.Issued-f.Writing) }

// Given returns how many coupons were given and not returned to the stock since.
func (f Figures) Given() int64 { return f.Tally.Issued - f.Tally.Returned }

// PerCoupon returns the revenue for each given coupon; 0 if none was given.
func (f Figures) PerCoupon() money.Amount { return f.Money.Revenue().Per(f.Given()) }

// Average returns the average discount of a used coupon; 0 if none was used.
func (f Figures) Average() money.Amount { return f.Tally.Discounted.Per(f.Tally.Used) }

// Outstanding returns the sum of the discounts if all coupons that can still be
// used are used; false if that depends on the orders.
func (f Figures) Outstanding() (money.Amount, bool) {
	if f.Template.Kind == template.PercentOff {
		return 0, false
	}
	return money.Amount(f.Tally.Unused()+f.Tally.Locked) * f.Template.AmountOff, true
}

// People counts users, each once. All fields but Others count users who had booked
// a reminder when the count was made.
type People struct {
	Booked, Reminded, Opened, Claimed, Used int64
	// Others are users who got a coupon without having booked a reminder.
	Others int64
	// Partial says that some of the rows were deleted after their retention, so the
	// counts are too low.
	Partial bool
	// CountedAt is when the users were counted, if that was before the rows were deleted;
	// nil = just now, from the rows.
	CountedAt *time.Time
}

// Sheet is the balance sheet of one channel over all slots of the opening.
type Sheet struct {
	Channel delivery.Channel
	delivery.Counts
}

// A Past is an earlier drop of the same shop.
type Past struct {
	Figures
	// People is counted only for the drop that a report is compared with.
	People People
	Growth []reminder.Growth
	Sales  claim.Curve
}

// A Report is everything about one drop.
type Report struct {
	Figures
	People People
	// Sheets are counted from the rows, for channels with recipients; Difference is
	// the sum of their differences from the counters. Archived says that the rows of
	// some slots were deleted after their retention; Sheets then hold the counters.
	Sheets     []Sheet
	Difference int64
	Archived   bool
	Growth     []reminder.Growth
	Sales      claim.Curve
	// Hours are the drop's orders by hour.
	Hours []Hour
	History
	// Other is the drop that the report is compared with: at first the last of Earlier, nil if
	// there is none.
	Other *Past
	// Brakes are the public figures of a protected drop, nil of other drops.
	Brakes *review.Counts
	// Draw says how the entries of the drop's draw fared, nil for a drop without one.
	Draw *draw.Fairness
	// Wait is the waitlist; the zero Sheet of a drop without one.
	Wait waitlist.Sheet
	// Refused are the refused claims of a drop with doors, by door.
	Refused []door.Refusal
	// Outcomes are the forecasts made before slots fired, each with the actual number.
	// Accuracy is the accuracy of the forecasts of the last drops.
	Outcomes []forecast.Outcome
	Accuracy forecast.Accuracy
	// At is when the report was made.
	At time.Time
}

// figuresOf sums up the drop's reminders.
func figuresOf(t template.Template, c reminder.Cockpit) Figures {
	f := Figures{Template: t, Progress: c.Progress(), Late: delivery.Lateness{}, Opened: c.Opened}
	for _, r := range c.Rows {
		for _, l := range r.Lanes {
			f.Late = f.Late.Plus(l.Late)
			f.AfterOpening += l.Late.After(r.OpensAt.Sub(r.LateFrom()))
		}
	}
	return f
}

// sheetsOf adds up the lines of the present openings of t by channel. It uses the counters if
// there are no lines, or if some slots have none any more.
func sheetsOf(lines []reminder.BalanceLine, c reminder.Cockpit, t template.Template) (list []Sheet, off int64, archived bool) {
	var counted, kept [delivery.Channels]delivery.Counts
	for _, l := range lines {
		if t.OpensOn(l.Slot.OpensAt) {
			counted[l.Channel] = counted[l.Channel].Plus(l.Counted)
			off += l.Difference()
		}
	}
	for _, r := range c.Rows {
		for i, l := range r.Lanes {
			kept[i] = kept[i].Plus(l.Counts)
		}
	}
	for i := range kept {
		archived = archived || counted[i].Reserved < kept[i].Reserved && off == 0
	}
	if archived {
		counted = kept
	}
	for i, n := range counted {
		if n.Reserved > 0 {
			list = append(list, Sheet{delivery.Channel(i), n})
		}
	}
	return list, off, archived
}
