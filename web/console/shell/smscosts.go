package shell

import (
	"strconv"
	"strings"

	"dropbell/domain/delivery"
)

// SMSHead returns the names of the columns of [SMSCells].
func SMSHead() []string { return []string{"sms_parts", "sms_cost_micros", "sms_currency"} }

// SMSCells returns the cells of what text messages cost: the number of parts, and for each currency
// the cost in millionths of its unit and its code. Several currencies are separated by "; ".
func SMSCells(costs delivery.SMSCosts) []any {
	var micros, currencies []string
	for _, c := range costs.Priced() {
		micros, currencies = append(micros, strconv.FormatInt(c.Micros, 10)), append(currencies, c.Currency)
	}
	return []any{costs.Parts(), strings.Join(micros, "; "), strings.Join(currencies, "; ")}
}
