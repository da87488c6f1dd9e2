package report

import (
	"context"
	"errors"

	"dropbell/domain/claim"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/review"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

// Curves returns how a drop sold.
type Curves interface {
	Curve(ctx context.Context, templateID int64, points int) (claim.Curve, error)
	// Waits returns the counters of the drop's waitlist.
	Waits(ctx context.Context, templateID int64) (waitlist.Sheet, error)
}

// Brakes counts the coupons that were taken back from scripts.
type Brakes interface {
	Counts(ctx context.Context, templateID int64) (review.Counts, error)
}

// brakes returns the public figures of a protected drop, nil of other drops.
func (s *Service) brakes(ctx context.Context, t template.Template) (*review.Counts, error) {
	if !t.Protected() {
		return nil, nil
	}
	c, err := s.Brakes.Counts(ctx, t.ID)
	return &c, err
}

// RefusedOf returns the refused claims of a drop with doors, by door.
func (s *Service) RefusedOf(ctx context.Context, t template.Template) ([]door.Refusal, error) {
	if len(t.Doors) == 0 {
		return nil, nil
	}
	return s.Doors.DoorRefusals(ctx, t.ID)
}

// fairness returns how the entries of the drop's draw fared, nil for a drop without one.
func (s *Service) fairness(ctx context.Context, t template.Template) (*draw.Fairness, error) {
	if !t.OpeningMode.Drawn() {
		return nil, nil
	}
	f, err := s.Draws.Fairness(ctx, t.ID)
	if errors.Is(err, draw.ErrNoDraw) {
		return nil, nil
	}
	return &f, err
}

// Refusals returns how many claims were refused; known is false for a drop that does not count them.
func (r Report) Refusals() (n int64, known bool) {
	for _, of := range r.Refused {
		n += of.Claims
	}
	if r.Brakes != nil { // these are among those of the doors, if the drop has both
		n = max(n, r.Brakes.Refused)
	}
	return n, r.Brakes != nil || len(r.Template.Doors) > 0
}

// PerCoupon returns how many claims there were for each coupon that was issued; 0 = not known.
func (r Report) PerCoupon() float64 {
	refused, known := r.Refusals()
	if !known || r.Tally.Issued == 0 {
		return 0
	}
	return float64(r.Tally.Issued+refused) / float64(r.Tally.Issued)
}
