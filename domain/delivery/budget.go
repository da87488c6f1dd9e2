package delivery

import "time"

// A BudgetTaking is where parts of text messages were taken from.
type BudgetTaking struct {
	Day  time.Time // midnight UTC
	Drop int64     // 0 = no drop's
}

// BudgetShort is a budget of text messages that has no room.
type BudgetShort uint8

// The budgets that may be short.
const (
	BudgetEnough    BudgetShort = iota // none is
	BudgetDayShort                     // the day's
	BudgetDropShort                    // the drop's
)
