package redeemcode

import (
	"context"
	"errors"

	"dropbell/domain/claim"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// CheckResult is the verdict on a code that staff looked up.
type CheckResult string

// The verdicts. Elsewhere belongs to a shop that the asker is not in charge of.
const (
	Unreadable  CheckResult = "unreadable"   // not sixteen symbols of a code
	Forged      CheckResult = "forged"       // the check value is wrong: mistyped or made up
	NeverIssued CheckResult = "never_issued" // well made, but belongs to no batch
	NotReadyYet CheckResult = "not_ready"    // of a batch that is not, or never was, finished
	Withdrawn   CheckResult = "revoked"
	Spent       CheckResult = "used"
	Good        CheckResult = "good"
	Elsewhere   CheckResult = "elsewhere"
)

// The verdicts on good codes whose drop gives nothing away now or ever again.
const (
	Unpublished CheckResult = "draft"
	NotYet      CheckResult = "not_started"
	Halted      CheckResult = "paused"
	GoneAll     CheckResult = "sold_out"
	Over        CheckResult = "ended"
	CalledOff   CheckResult = "cancelled"
	NotByCode   CheckResult = "not_by_code"
)

// A Finding is the result of looking up a code.
type Finding struct {
	Verdict CheckResult
	Code    Code // as it was read, for showing it well grouped
	// Serial, Batch and Place (from 1, in the batch) are set if there is a batch.
	Serial Serial
	Batch  Batch
	Place  int64
	// Template is the template of the batch, if the code itself is good.
	Template template.Template
	// Use is set if the code was used, even if its batch was revoked since.
	Use *Use
}

// Check reports the result that redeeming the typed code would have now, the reason if
// it does not work, and its user if it was used. It changes nothing.
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
	if err != nil || f.Verdict != Good {
		return f, err
	}
	f.Template, err = s.Store.Template(ctx, f.Batch.TemplateID)
	if f.Template.Obtain != template.ByCode && f.Template.TakesAccessCodes() {
		f.Verdict = accessVerdict(f.Template.State(s.Now()))
	} else {
		f.Verdict = verdictOf(claim.Offer(f.Template, claim.ByCode, s.Now()))
	}
	return f, err
}

// verdictOf returns the verdict on a good code whose redemption would be answered
// with this refusal. Refusals that share a fault differ by identity.
func verdictOf(refusal error) CheckResult {
	switch refusal {
	case nil:
		return Good
	case template.ErrNotFound: // the answer that users get for a draft
		return Unpublished
	case claim.ErrNotStarted:
		return NotYet
	case claim.ErrPaused:
		return Halted
	case claim.ErrSoldOut:
		return GoneAll
	case claim.ErrCancelled:
		return CalledOff
	case claim.ErrTakesNoCode:
		return NotByCode
	}
	return Over
}

// accessVerdict returns the verdict on a good access code of a drop in the state: it can be entered until the drop is
// over.
func accessVerdict(s template.State) CheckResult {
	switch s {
	case template.Draft:
		return Unpublished
	case template.Closed:
		return Over
	case template.Cancelled:
		return CalledOff
	}
	return Good
}

func (b Batch) verdict(used bool) CheckResult {
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
