package drops

import (
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// exportTemplates sends every template that the list's filter selects.
func (h *handlers) exportTemplates(w http.ResponseWriter, r *http.Request) error {
	p, q, err := h.templateQuery(r)
	if err != nil {
		return err
	}
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	q.Limit, q.After = shell.ExportPage, template.Cursor{}
	head := []string{"id", "shop_number", "shop_name", "name", "state", "kind", "amount_off", "threshold", "percent_off", "max_off", "currency",
		"target", "product", "stock", "issued", "per_user_limit", "opens_at", "closes_at", "valid_hours", "valid_until", "obtain", "claim_mode"}
	now := h.Now()
	return h.Export(w, r, "templates", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *template.Template) ([]template.Template, error) {
			if last != nil {
				q.After = template.Cursor{OpensAt: last.OpensAt, ID: last.ID}
			}
			return h.Templates.Templates(r.Context(), shell.Actor(r), q)
		}, func(t template.Template) error {
			return s.Row(t.ID, t.ShopNumber, t.ShopName, t.Name, string(t.State(now)), string(t.Kind), int64(t.AmountOff), int64(t.Threshold), t.PercentOff,
				int64(t.MaxOff), t.Currency, string(t.Target), t.Product, t.Stock, t.Issued, t.PerUserLimit, t.OpensAt, t.ClosesAt, t.ValidHours,
				t.ValidUntil, string(t.Obtain), string(t.ClaimMode))
		})
	})
}

// exportShops sends the shops that the viewer may see.
func (h *handlers) exportShops(w http.ResponseWriter, r *http.Request) error {
	list, err := h.ShopsOf(r)
	if err != nil {
		return err
	}
	return h.Export(w, r, "shops", []string{"shop_number", "name", "timezone"}, func(s *shell.Sheet) error {
		for _, x := range list {
			if err := s.Row(x.Number, x.Name, x.Timezone); err != nil {
				return err
			}
		}
		return nil
	})
}
