package parts

import "dropbell/domain/delivery"

// SMSCost is what text messages cost in one currency.
type SMSCost struct {
	Currency string `json:"currency" doc:"Empty for parts that were sent without a price list." example:"CNY"`
	Parts    int64  `json:"parts" doc:"Parts of text messages that a provider took." example:"300"`
	Micros   int64  `json:"cost_micros" doc:"Their cost by the price list of the time, in millionths of a unit of the currency." example:"13500000"`
}

// SMSCostsOf returns costs as the API shows them.
func SMSCostsOf(list delivery.SMSCosts) []SMSCost {
	out := make([]SMSCost, len(list))
	for i, c := range list {
		out[i] = SMSCost(c)
	}
	return out
}
