// Package parts holds the parts that answers of several subjects of the API share.
package parts

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/template"
)

// Account counts the outcomes of the reminders of one slot and channel.
type Account struct {
	Reserved int64 `json:"reserved" doc:"Reminders reserved when the slot fired; always the sum of those that follow."`
	Sent     int64 `json:"sent"`
	Skipped  int64 `json:"skipped"`
	Expired  int64 `json:"expired"`
	Dead     int64 `json:"dead"`
	InFlight int64 `json:"in_flight"`
}

// AccountOf returns the account of the counts.
func AccountOf(n delivery.Counts) Account {
	return Account{n.Reserved, n.Sent, n.Skipped, n.Expired, n.Dead, n.InFlight}
}

// Reported are the parts of sent messages of which their provider has reported.
type Reported struct {
	Delivered  int64 `json:"delivered" doc:"Of those sent: the provider reports that they arrived." example:"0"`
	Bounced    int64 `json:"bounced" doc:"Of those sent: the provider reports that they were not delivered, for good or for a reason that may pass." example:"0"`
	Complained int64 `json:"complained" doc:"Of those delivered: the recipient marked the message as spam." example:"0"`
}

// ReportedOf returns the counts of provider reports.
func ReportedOf(t feedback.Tally) Reported { return Reported{t.Delivered, t.Bounced, t.Complained} }

// Discount is the value of a coupon, in minor units of the currency.
type Discount struct {
	Kind       string `json:"kind" enum:"amount_off,threshold_off,percent_off" example:"amount_off"`
	AmountOff  int64  `json:"amount_off,omitempty" doc:"Minor units of the currency." example:"1000"`
	Threshold  int64  `json:"threshold,omitempty" doc:"Least order value, in minor units." example:"5000"`
	PercentOff int    `json:"percent_off,omitempty" example:"20"`
	MaxOff     int64  `json:"max_off,omitempty" doc:"Largest discount of a percentage, in minor units." example:"3000"`
	Currency   string `json:"currency" doc:"ISO 4217." example:"CNY"`
}

// DiscountOf returns the discount of a template's coupons.
func DiscountOf(s template.Spec) Discount {
	return Discount{Kind: string(s.Kind), AmountOff: int64(s.AmountOff), Threshold: int64(s.Threshold),
		PercentOff: s.PercentOff, MaxOff: int64(s.MaxOff), Currency: s.Currency}
}

// Rule is a segment's rule as it was sent; the domain reads it.
type Rule json.RawMessage

// UnmarshalJSON keeps the text.
func (r *Rule) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// MarshalJSON writes the text.
func (r Rule) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// Schema leaves the rule's form to the description: the form is recursive, and the rule's own
// errors name the place better than a schema could.
func (Rule) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
		Description: `{"all":[…]}, {"any":[…]} or {"none":[…]} of rules, or a condition {"field","op","values"}; see GET /admin/segment-fields.`,
		Examples:    []any{map[string]any{"all": []any{map[string]any{"field": "attribute", "name": "tier", "op": "is", "values": []string{"gold"}}}}}}
}
