package pg

import (
	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// WorthColumns are what the coupon of template t is worth, also where there is
// none; see [WorthFields].
const WorthColumns = `case when t.kind = 'percent_off' then t.percent_off else 0 end, coalesce(t.amount_off, 0), coalesce(t.max_off, 0),
	coalesce(t.threshold, 0), coalesce(t.currency, '')`

// WorthFields are where [WorthColumns] go.
func WorthFields(w *message.Worth) []any {
	return []any{&w.Percent, &w.Amount, &w.Most, &w.Threshold, &w.Currency}
}

// SubjectColumns are what messages say of template t, also where there is none; see
// [SubjectFields]. Of a description no more is read than a message can say.
const SubjectColumns = WorthColumns + `, left(coalesce(t.description, ''), 1000)`

// SubjectFields are where [SubjectColumns] go.
func SubjectFields(s *delivery.Subject) []any {
	return append(WorthFields(&s.Worth), &s.Description)
}

// ClaimURL is where coupons of template t of shop h are claimed: its own address,
// else the shop's; empty = nowhere.
const ClaimURL = `coalesce(nullif(t.claim_url, ''), replace(h.claim_url, '{id}', t.id::text), '')`
