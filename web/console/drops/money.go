package drops

import (
	"net/http"
	"time"

	"dropbell/domain/report"
	"dropbell/web/console/shell"
)

// moneyFile has the orders that used coupons, by hour and currency; amounts are minor units.
func moneyFile(name string) shell.File[report.Hour] {
	return shell.FileOf(name, []string{"hour", "currency", "paid", "paid_amount", "paid_discount", "refunds", "refunded_amount", "refunded_discount"}, func(h report.Hour) []any {
		return []any{h.From.UTC().Format(time.RFC3339), h.Currency, h.Paid, int64(h.PaidAmount), int64(h.PaidDiscount), h.Refunds, int64(h.RefundedAmount), int64(h.RefundedDiscount)}
	})
}

// exportMoney sends the drop's orders by hour.
func (h *handlers) exportMoney(w http.ResponseWriter, r *http.Request, id int64) error {
	_, hours, err := h.Reports.Earning(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return moneyFile("money").Send(h.Shell, w, r, shell.Each(hours))
}

// exportEarned sends the orders of the member's shops over the last days, by hour.
func (h *handlers) exportEarned(w http.ResponseWriter, r *http.Request) error {
	if err := h.UseShopsZone(r, 0); err != nil {
		return err
	}
	got, err := shell.AcrossAll(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (report.Overview, error) {
		return h.Reports.Earned(r.Context(), shell.Actor(r), 0, earnedDays, shell.Frame(r).DayZone())
	})
	if err != nil {
		return err
	}
	o := *got[0]
	for _, of := range got[1:] {
		o = o.Plus(*of)
	}
	return moneyFile("money").Send(h.Shell, w, r, shell.Each(o.Hours))
}
