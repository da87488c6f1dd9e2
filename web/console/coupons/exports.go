package coupons

import (
	"encoding/json"
	"net/http"
	"strconv"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/web/console/shell"
)

// exportCoupons sends every coupon that is found.
func (h *handlers) exportCoupons(w http.ResponseWriter, r *http.Request) error {
	p, q, ok := h.couponQuery(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	if !ok || p.Search == "" {
		shell.Redirect(w, r, "/coupons")
		return nil
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "template_id", "template_name", "shop_number", "user_id", "state", "origin", "issued_at", "expires_at", "order_id", "discount", "currency"}
	return h.Export(w, r, "coupons", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *coupon.Listed) ([]coupon.Listed, error) {
			if last != nil {
				q.BeforeID = last.ID
			}
			return h.Coupons.List(r.Context(), shell.Actor(r), q)
		}, func(x coupon.Listed) error {
			return s.Row(x.ID, x.TemplateID, x.TemplateName, x.ShopNumber, int64(x.UserID), string(x.At(x.Now)), x.Origin, x.IssuedAt, x.ExpiresAt,
				x.OrderID, int64(x.Discount), x.Rule.Currency)
		})
	})
}

// exportLocks sends every coupon that an order holds.
func (h *handlers) exportLocks(w http.ResponseWriter, r *http.Request) error {
	head := []string{"id", "template_id", "template_name", "shop_number", "user_id", "order_id", "discount", "currency", "locked_at", "locked_until"}
	return h.Export(w, r, "locks", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *coupon.Listed) ([]coupon.Listed, error) {
			var after coupon.LockCursor
			if last != nil {
				after = coupon.LockCursor{Until: *last.LockedUntil, ID: last.ID}
			}
			return h.Coupons.OpenLocks(r.Context(), shell.Actor(r), after, shell.ExportPage)
		}, func(l coupon.Listed) error {
			return s.Row(l.ID, l.TemplateID, l.TemplateName, l.ShopNumber, int64(l.UserID), l.OrderID, int64(l.Discount), l.Rule.Currency, l.LockedAt, l.LockedUntil)
		})
	})
}

// exportGrants sends the lists of users who are given coupons: of the template
// that is named, or of all.
func (h *handlers) exportGrants(w http.ResponseWriter, r *http.Request) error {
	q := coupon.GrantQuery{Limit: shell.ExportPage}
	var err error
	if q.TemplateID, err = namedTemplate(r); err != nil {
		return err
	}
	head := []string{"id", "template_id", "shop_number", "title", "dry_run", "why", "state", "total", "done", "failed", "reason", "detail",
		"created_by", "created_at", "started_at", "finished_at", "file"}
	return h.Export(w, r, "grants", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *job.Job) ([]job.Job, error) {
			if last != nil {
				q.Before = last.ID
			}
			return h.Grants.List(r.Context(), shell.Actor(r), q)
		}, func(j job.Job) error {
			var p coupon.GrantParams
			_ = json.Unmarshal(j.Params, &p) // was written by this program
			return s.Row(j.ID, p.TemplateID, j.ShopNumber, j.Title, p.DryRun, p.Reason, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail,
				j.CreatedBy, j.CreatedAt, j.StartedAt, j.FinishedAt, p.File)
		})
	})
}

// exportBatches sends the batches of redeem codes, without the codes: of the
// template that is named, or of all.
func (h *handlers) exportBatches(w http.ResponseWriter, r *http.Request) error {
	q := redeemcode.Query{Limit: shell.ExportPage}
	var err error
	if q.TemplateID, err = namedTemplate(r); err != nil {
		return err
	}
	head := []string{"id", "template_id", "template_name", "shop_number", "state", "count", "generated", "used", "created_by", "created_at", "ready_at",
		"revoked_at", "revoked_by", "revoke_reason"}
	return h.Export(w, r, "code-batches", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *redeemcode.Batch) ([]redeemcode.Batch, error) {
			if last != nil {
				q.Before = last.ID
			}
			return h.Codes.Batches(r.Context(), shell.Actor(r), q)
		}, func(b redeemcode.Batch) error {
			state := string(b.State)
			if b.Stopped() {
				state = "stopped"
			}
			return s.Row(b.ID, b.TemplateID, b.TemplateName, b.ShopNumber, state, b.Count, b.Generated, b.Used, b.CreatedBy, b.CreatedAt, b.ReadyAt,
				b.RevokedAt, b.RevokedBy, b.RevokeReason)
		})
	})
}

// namedTemplate is the template whose lists are meant, 0 for those of all.
func namedTemplate(r *http.Request) (int64, error) {
	typed := r.FormValue("template")
	if typed == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(typed, 10, 64)
	if err != nil || id <= 0 {
		return 0, shell.ErrNoPage
	}
	return id, nil
}
