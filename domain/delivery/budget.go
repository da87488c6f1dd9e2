package delivery

import "time"

// A BudgetSize is the amount that text messages take from budgets.
type BudgetSize struct {
	Parts int64
	// Micros is what the parts cost, in millionths of a unit of the price list's currency.
	Micros int64
}

// Plus returns the sum of both.
func (s BudgetSize) Plus(o BudgetSize) BudgetSize {
	return BudgetSize{s.Parts + o.Parts, s.Micros + o.Micros}
}

// A BudgetTaking is where parts of text messages were taken from.
type BudgetTaking struct {
	Day  time.Time // midnight UTC
	Drop int64     // 0 = no drop's
}

// BudgetShort is a budget of text messages that has no room.
type BudgetShort uint8

// The budgets that may be short.
const (
	BudgetEnough     BudgetShort = iota // none is
	BudgetDayShort                      // the day's, in parts
	BudgetDropShort                     // the drop's
	BudgetMoneyShort                    // the day's, in money
)
