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

// A BudgetOwner is the drop or the campaign that text messages belong to. The zero value is neither:
// tests and verification codes. Only drops have budgets of their own.
type BudgetOwner struct {
	Drop, Campaign int64 // at most one is set
}

// BudgetOwnerOf returns the owner of messages about s.
func BudgetOwnerOf(s *Subject) BudgetOwner {
	switch {
	case s == nil, s.Kind == KindTest, s.Kind == KindVerification:
		return BudgetOwner{}
	case s.Kind == KindCampaign:
		return BudgetOwner{Campaign: s.OwnerID}
	}
	return BudgetOwner{Drop: s.TemplateID}
}

// A BudgetTaking is where parts of text messages were taken from.
type BudgetTaking struct {
	Day  time.Time // midnight UTC
	Hour time.Time // of the owner's cost; the zero time without an owner
	BudgetOwner
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
