package template

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/field"
	"dropbell/domain/message"
	"dropbell/domain/money"
	"dropbell/domain/wording"
)

// Limits of a spec.
const (
	MaxName  = 120
	MaxStock = 1_000_000_000
	// MaxHouseholdLimit bounds the coupons of a household, as the limit per user is bounded.
	MaxHouseholdLimit = 1000
	MaxAmount         = money.Amount(1_000_000_000_000)
	MaxHorizon        = 2 * 365 * 24 * time.Hour
)

// Check returns a [fault.Fields] that names every rule that s breaks, or nil. Whether the opening
// is in the future is checked at publication, not for drafts.
func (s Spec) Check() error { return s.check(Spec{}) }

// check is Check for a published drop with the spec promised: its currency and name are accepted
// even if today's rules would refuse them.
func (s Spec) check(promised Spec) error {
	e := &fault.Fields{}
	if s.ShopNumber <= 0 {
		e.Add("shop_number", "rule.shop_number", "must be a positive number")
	}
	if s.Name != promised.Name && strings.ContainsAny(s.Name, lineBreaks) {
		e.Add("name", "rule.one_line", "must be one line")
	} else {
		checkText(e, "name", s.Name, 1, MaxName)
	}
	for _, f := range Fields.With(field.Lines) {
		checkText(e, f.Name, f.Of(&s).String(), 0, f.Max())
	}
	s.checkDiscount(e, promised.Currency)
	s.checkReach(e)
	s.checkTimes(e)
	s.checkNotices(e)
	s.checkWaitlist(e)
	s.checkOpening(e)
	s.Stacking.check(e)
	return e.Err()
}

func (s Spec) checkDiscount(e *fault.Fields, promised string) {
	if !money.ValidCurrency(s.Currency) && (s.Currency != promised || promised == "") {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
	// Fields that the kind does not use are not stored, see Own, but are checked too.
	var off, threshold, most money.Amount // the least of each
	percent := 0
	switch s.Kind {
	case AmountOff:
		off = 1
	case ThresholdOff:
		off, threshold = 1, 1
	case PercentOff:
		percent, most = 1, 1
	default:
		e.Add("kind", "rule.kind", "must be amount_off, threshold_off or percent_off")
	}
	checkAmount(e, "amount_off", s.AmountOff, off)
	checkAmount(e, "threshold", s.Threshold, threshold)
	checkAmount(e, "max_off", s.MaxOff, most)
	if s.PercentOff < percent || s.PercentOff > 100 {
		e.Add("percent_off", "rule.percent", "must be between 1 and 100")
	}
	if s.Kind == ThresholdOff && s.AmountOff > s.Threshold {
		e.Add("amount_off", "rule.amount_over_threshold", "must not exceed the threshold")
	}
}

func checkAmount(e *fault.Fields, name string, a, least money.Amount) {
	if a < least || a > MaxAmount {
		e.Add(name, "rule.amount", "must be between %d and %d minor units", least, MaxAmount)
	}
}

func (s Spec) checkReach(e *fault.Fields) {
	named := 0
	switch s.Target {
	case WholeShop:
	case Product:
		named = 1
	default:
		e.Add("target", "rule.target", "must be shop or product")
	}
	checkText(e, "product", s.Product, named, MaxName)
	if s.Stock < 1 || s.Stock > MaxStock {
		e.Add("stock", "rule.stock", "must be between 1 and %d", MaxStock)
	}
	if s.PerUserLimit < 1 || s.PerUserLimit > 1000 {
		e.Add("per_user_limit", "rule.per_user_limit", "must be between 1 and 1000")
	}
	switch {
	case s.HouseholdLimit < 0 || s.HouseholdLimit > MaxHouseholdLimit:
		e.Add("household_limit", "rule.household_limit", "must be between %d and %d", 0, MaxHouseholdLimit)
	case s.HouseholdLimit > 0 && s.OpeningMode.Drawn():
		e.Add("household_limit", "rule.household_draw", "must be 0 in a draw: each entry is of one user")
	}
	if s.Obtain != ByClaim && s.Obtain != ByCode {
		e.Add("obtain", "rule.obtain", "must be claim or code")
	}
	if s.ClaimMode != Durable && s.ClaimMode != Gate {
		e.Add("claim_mode", "rule.claim_mode", "must be durable or gate")
	}
	if s.HoldOutPercent < 0 || s.HoldOutPercent > delivery.MaxHoldOut {
		e.Add("hold_out_percent", "rule.hold_out", "must be between %d and %d percent", 0, delivery.MaxHoldOut)
	}
	switch s.Protection {
	case "", Unprotected, Standard, Strict:
	default:
		e.Add("protection", "rule.protection", "must be off, standard or strict")
	}
	CheckClaimURL(e, s.ClaimURL)
}

// CheckClaimURL adds an error to e unless the claim address is empty or readers may be sent
// there.
func CheckClaimURL(e *fault.Fields, address string) {
	if address != "" && (!message.Followed(address) || !utf8.ValidString(address) || len(address) > 500) {
		e.Add("claim_url", "rule.claim_url", "must be an http or https address of at most 500 characters")
	}
}

func (s Spec) checkTimes(e *fault.Fields) {
	whole := func(name string, t time.Time) {
		if t.IsZero() {
			e.Add(name, "rule.required", "is required")
		} else if t.Nanosecond() != 0 {
			e.Add(name, "rule.whole_second", "must be a whole second")
		} else if t.Year() > 9000 {
			e.Add(name, "rule.too_far", "lies too far in the future")
		} else if t.Year() < 2000 { // the year 0 cannot even be written as JSON in every zone
			e.Add(name, "rule.opens_ahead", "must lie in the future")
		}
	}
	whole("opens_at", s.OpensAt)
	whole("closes_at", s.ClosesAt)
	if !s.OpensAt.IsZero() && !s.ClosesAt.IsZero() && !s.ClosesAt.After(s.OpensAt) {
		e.Add("closes_at", "rule.closes_after_opens", "must be after the opening")
	}
	if s.ValidHours < 0 || s.ValidHours > 24*3650 {
		e.Add("valid_hours", "rule.valid_hours", "must be between 1 and 87600 hours")
	}
	switch {
	case s.ValidUntil == nil && s.ValidHours == 0:
		e.Add("valid_hours", "rule.validity", "give valid_hours or valid_until")
	case s.ValidUntil != nil && s.ValidHours != 0:
		e.Add("valid_hours", "rule.validity_one", "give either valid_hours or valid_until, not both")
	case s.ValidUntil != nil && !s.ValidUntil.After(s.OpensAt):
		e.Add("valid_until", "rule.valid_until", "must be after the opening")
	case s.ValidUntil != nil && s.ValidUntil.Year() > 9000:
		e.Add("valid_until", "rule.too_far", "lies too far in the future")
	}
}

// CheckOpening returns a [fault.Fields] unless the opening is after now, and not so far ahead
// that it must be a mistake.
func (s Spec) CheckOpening(now time.Time) error {
	e := &fault.Fields{}
	if !s.OpensAt.After(now) {
		e.Add("opens_at", "rule.opens_ahead", "must lie in the future")
	} else if s.OpensAt.Sub(now) > MaxHorizon {
		e.Add("opens_at", "rule.too_far", "lies more than two years ahead")
	}
	return e.Err()
}

// MaxBehind is how far back the opening of a draft may lie when it is set: a request may be
// repeated, and a form sent, after the opening has passed.
const MaxBehind = 24 * time.Hour

// CheckDraftOpening returns a [fault.Fields] if the opening lies further back than [MaxBehind],
// so that it must be a mistake. Publishing requires more: [Spec.CheckOpening].
func (s Spec) CheckDraftOpening(now time.Time) error {
	e := &fault.Fields{}
	if s.OpensAt.Before(now.Add(-MaxBehind)) {
		e.Add("opens_at", "rule.opens_ahead", "must lie in the future")
	}
	return e.Err()
}

// lineBreaks may be in descriptions; names are one line, without tabs.
const lineBreaks = "\r\n\t"

// CheckText adds an error to e unless the text can be stored and shown and has least to most characters; least
// is 0 or 1.
func CheckText(e *fault.Fields, name, text string, least, most int) {
	checkText(e, name, text, least, most)
}

func checkText(e *fault.Fields, name, text string, least, most int) {
	n := utf8.RuneCountInString(text)
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		e.Add(name, "rule.text", "must be valid text without NUL characters")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }):
		e.Add(name, "rule.text", "must not contain control characters")
	case strings.ContainsFunc(text, wording.TurnsAround):
		e.Add(name, "rule.text", "must not contain characters that turn text around")
	case n > most:
		e.Add(name, "rule.too_long", "must have at most %d characters", most)
	case least > 0 && strings.TrimSpace(text) == "":
		e.Add(name, "rule.required", "is required")
	}
}

// ShopName returns the name of a shop as it is stored: one line, without surrounding blanks. It
// returns a [fault.Fields] if the name is invalid.
func ShopName(typed string) (string, error) {
	name, e := strings.TrimSpace(typed), &fault.Fields{}
	if strings.ContainsAny(name, lineBreaks) {
		e.Add("name", "rule.one_line", "must be one line")
	} else {
		checkText(e, "name", name, 1, MaxName)
	}
	return name, e.Err()
}
