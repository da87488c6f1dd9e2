package console

import (
	"net/http"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
)

// exportTemplates sends every template that the list's filter selects.
func (c *Console) exportTemplates(w http.ResponseWriter, r *http.Request) error {
	p, q, err := c.templateQuery(r)
	if err != nil {
		return err
	}
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	q.Limit, q.After = shell.ExportPage, template.Cursor{}
	head := []string{"id", "shop_number", "shop_name", "name", "state", "kind", "amount_off", "threshold", "percent_off", "max_off", "currency",
		"target", "product", "stock", "issued", "per_user_limit", "opens_at", "closes_at", "valid_hours", "valid_until", "obtain", "claim_mode"}
	now := c.Now()
	return c.Export(w, r, "templates", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *template.Template) ([]template.Template, error) {
			if last != nil {
				q.After = template.Cursor{OpensAt: last.OpensAt, ID: last.ID}
			}
			return c.Templates.Templates(r.Context(), shell.Actor(r), q)
		}, func(t template.Template) error {
			return s.Row(t.ID, t.ShopNumber, t.ShopName, t.Name, string(t.State(now)), string(t.Kind), int64(t.AmountOff), int64(t.Threshold), t.PercentOff,
				int64(t.MaxOff), t.Currency, string(t.Target), t.Product, t.Stock, t.Issued, t.PerUserLimit, t.OpensAt, t.ClosesAt, t.ValidHours,
				t.ValidUntil, string(t.Obtain), string(t.ClaimMode))
		})
	})
}

// exportUsers sends everybody whom the search finds. Contacts leave the house
// here: it takes the right to manage users, and is recorded.
func (c *Console) exportUsers(w http.ResponseWriter, r *http.Request) error {
	text := userSearch(r)
	if text == "" {
		shell.Redirect(w, r, "/users")
		return nil
	}
	if err := c.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "user.export", ObjectKind: "user", After: map[string]string{"search": text}}); err != nil {
		return err
	}
	head := []string{"id", "name", "email", "phone", "locale", "timezone", "opted_out"}
	return c.Export(w, r, "users", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *user.User) ([]user.User, error) {
			after := user.ID(0)
			if last != nil {
				after = last.ID
			}
			return c.usersFound(r, text, after, shell.ExportPage)
		}, func(u user.User) error {
			return s.Row(int64(u.ID), u.Name, u.Email, u.Phone, u.Locale, u.Timezone, optedOut(u))
		})
	})
}

// optedOut names the channels over which a user does not want to hear anything.
func optedOut(u user.User) (names string) {
	for _, ch := range delivery.AllChannels() {
		if u.OptOuts&(1<<ch) != 0 {
			names += " " + ch.String()
		}
	}
	return names
}

// exportDeadLetters sends every dead letter that the filter selects.
func (c *Console) exportDeadLetters(w http.ResponseWriter, r *http.Request) error {
	_, f, broken := typedFilter(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	head := []string{"batch_id", "user_id", "channel", "template_id", "template_name", "reason", "detail", "attempts", "first_at", "last_at", "worthless_after",
		"kind", "campaign_id", "campaign_name"}
	return c.Export(w, r, "dead-letters", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *delivery.DeadLetter) ([]delivery.DeadLetter, error) {
			var batch int64
			var id user.ID
			if last != nil {
				batch, id = last.BatchID, last.UserID
			}
			return c.DeadLetters.List(r.Context(), shell.Actor(r), f, batch, id, shell.ExportPage)
		}, func(d delivery.DeadLetter) error {
			var campaignID any
			if d.Kind == delivery.KindCampaign {
				campaignID = d.OwnerID
			}
			return s.Row(d.BatchID, int64(d.UserID), d.Channel.String(), d.TemplateID, d.TemplateName, d.Reason, d.Detail, d.Attempts,
				d.FirstAt, d.LastAt, d.WorthlessAfter, string(d.Kind), campaignID, d.OwnerName)
		})
	})
}

// exportCampaigns sends every campaign that the list's filter selects.
func (c *Console) exportCampaigns(w http.ResponseWriter, r *http.Request) error {
	p, q := c.campaignQuery(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "shop_number", "shop_name", "name", "state", "channel", "audience", "starts_at", "ends_at", "reserved", "sent", "skipped", "expired", "dead", "in_flight"}
	return c.Export(w, r, "campaigns", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *campaign.Status) ([]campaign.Status, error) {
			if last != nil {
				q.BeforeID = last.ID
			}
			return c.Campaigns.Campaigns(r.Context(), shell.Actor(r), q)
		}, func(x campaign.Status) error {
			n := x.Progress
			return s.Row(x.ID, x.Shop, x.ShopName, x.Name, string(x.State), x.Channel.String(), string(x.Audience.Kind), x.StartsAt, x.EndsAt,
				n.Reserved, n.Sent, n.Skipped, n.Expired, n.Dead, n.InFlight)
		})
	})
}

// exportCoupons sends every coupon that is found.
func (c *Console) exportCoupons(w http.ResponseWriter, r *http.Request) error {
	p, q, ok := couponQuery(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	if !ok || p.Search == "" {
		shell.Redirect(w, r, "/coupons")
		return nil
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "template_id", "template_name", "shop_number", "user_id", "state", "origin", "issued_at", "expires_at", "order_id", "discount", "currency"}
	return c.Export(w, r, "coupons", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *coupon.Listed) ([]coupon.Listed, error) {
			if last != nil {
				q.BeforeID = last.ID
			}
			return c.Coupons.List(r.Context(), shell.Actor(r), q)
		}, func(x coupon.Listed) error {
			return s.Row(x.ID, x.TemplateID, x.TemplateName, x.ShopNumber, int64(x.UserID), string(x.At(x.Now)), x.Origin, x.IssuedAt, x.ExpiresAt,
				x.OrderID, int64(x.Discount), x.Rule.Currency)
		})
	})
}
