package draw

import (
	"context"

	"dropbell/domain/reminder"
)

// Fairness says how the entries of a draw fared.
type Fairness struct {
	Draw Draw
	// Reasons counts the struck entries by their public reason, the most frequent first.
	Reasons []Count
	// TakenBack counts the winners' coupons that were returned to the stock.
	TakenBack int64
	// Doors are the doors of the drop with their entries; none = the drop has no doors, or the entries were removed
	// after their retention.
	Doors []DoorShare
	// Growth is how the number of entries grew.
	Growth []reminder.Growth
}

// DoorShare is what became of the entries through one door.
type DoorShare struct {
	CardDoor
	Entered, Won int64
}

// PerWinner is how many entries there were for each one that won; 0 = none has won.
func (f Fairness) PerWinner() float64 {
	if f.Draw.Won == 0 {
		return 0
	}
	return float64(f.Draw.Entries()) / float64(f.Draw.Won)
}

// Fairer counts how the entries of draws fared.
type Fairer interface {
	// Fairness returns [ErrNoDraw] before the first card.
	Fairness(ctx context.Context, templateID int64) (Fairness, error)
}
