package pg

import (
	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// WorthColumns are the worth of a coupon of template t, for [WorthFields]. They
// are also valid without a template t.
const WorthColumns = `case when t.kind = 'percent_off' then t.percent_off else 0 end, coalesce(t.amount_off, 0), coalesce(t.max_off, 0),
	coalesce(t.threshold, 0), coalesce(t.currency, '')`

// WorthFields are the destinations of [WorthColumns].
func WorthFields(w *message.Worth) []any {
	return []any{&w.Percent, &w.Amount, &w.Most, &w.Threshold, &w.Currency}
}

// SubjectColumns are the facts about template t that messages mention, for
// [SubjectFields]. They are also valid without a template t. A description is cut
// to the length that a message can use.
const SubjectColumns = WorthColumns + `, left(coalesce(t.description, ''), 1000), coalesce(t.accept_hours, 0)`

// SubjectFields are the destinations of [SubjectColumns].
func SubjectFields(s *delivery.Subject) []any {
	return append(WorthFields(&s.Worth), &s.Description, &s.AcceptHours)
}

// ClaimURL is the address at which coupons of template t of shop h are claimed:
// the template's own address, otherwise the shop's; empty = none.
const ClaimURL = `coalesce(nullif(t.claim_url, ''), replace(h.claim_url, '{id}', t.id::text), '')`
