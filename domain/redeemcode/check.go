package redeemcode

import (
	"context"
	"errors"

	"dropbell/domain/staff"
)

// Verdict is what a code that staff looked up turned out to be.
type Verdict string

// The verdicts. Elsewhere belongs to a shop that the asker is not in charge of.
const (
	Unreadable  Verdict = "unreadable"   // not sixteen symbols of a code
	Forged      Verdict = "forged"       // the check value is wrong: mistyped or made up
	NeverIssued Verdict = "never_issued" // well made, but belongs to no batch
	NotReadyYet Verdict = "not_ready"    // of a batch that is not, or never was, finished
	Withdrawn   Verdict = "revoked"
	Spent       Verdict = "used"
	Good        Verdict = "good"
	Elsewhere   Verdict = "elsewhere"
)

// A Finding is what there is to say about a code.
type Finding struct {
	Verdict Verdict
	Code    Code // as it was read, for showing it well grouped
	// Serial, Batch and Place (from 1, in the batch) are set if there is a batch.
	Serial Serial
	Batch  Batch
	Place  int64
	// Use is set if the code was used, even if its batch was revoked since.
	Use *Use
}

// Check says what the code that somebody typed is, why it does not work, and
// who used it. It changes nothing.
func (s *Service) Check(ctx context.Context, by staff.Actor, typed string) (Finding, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Finding{}, err
	}
	code, err := Parse(typed)
	if err != nil {
		return Finding{Verdict: Unreadable}, nil
	}
	f := Finding{Verdict: Forged, Code: code}
	if f.Serial, err = s.Keys.Serial(code); err != nil {
		return f, nil
	}
	f.Batch, err = s.Store.BatchOf(ctx, f.Serial)
	if errors.Is(err, ErrBatchNotFound) || err == nil && f.Batch.Key != code.Key() {
		return Finding{Verdict: NeverIssued, Code: code, Serial: f.Serial}, nil
	}
	if err != nil {
		return f, err
	}
	if !by.Can(staff.View, f.Batch.ShopNumber) {
		return Finding{Verdict: Elsewhere, Code: code}, nil
	}
	f.Place = int64(f.Serial-f.Batch.First) + 1
	use, used, err := s.Store.UseOf(ctx, f.Serial)
	if used {
		f.Use = &use
	}
	f.Verdict = f.Batch.verdict(used)
	return f, err
}

func (b Batch) verdict(used bool) Verdict {
	switch {
	case used:
		return Spent
	case b.State == Revoked:
		return Withdrawn
	case b.State != Ready:
		return NotReadyYet
	}
	return Good
}
