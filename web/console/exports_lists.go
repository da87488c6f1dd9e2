package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/segment"
	"dropbell/web/console/shell"
)

// exportSegments sends every segment and list that the search finds.
func (c *Console) exportSegments(w http.ResponseWriter, r *http.Request) error {
	q := segment.Query{Search: strings.TrimSpace(r.FormValue("q")), Limit: shell.ExportPage}
	head := []string{"id", "name", "kind", "members", "counted_at", "version", "created_by", "created_at", "updated_at"}
	return c.Export(w, r, "segments", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *segment.Segment) ([]segment.Segment, error) {
			if last != nil {
				q.After.UpdatedAt, q.After.ID = last.UpdatedAt, last.ID
			}
			return c.Segments.Segments(r.Context(), shell.Actor(r), q)
		}, func(g segment.Segment) error {
			return s.Row(g.ID, g.Name, string(g.Kind), g.Members, g.CountedAt, g.Version, g.CreatedBy, g.CreatedAt, g.UpdatedAt)
		})
	})
}

// exportLocks sends every coupon that an order holds.
func (c *Console) exportLocks(w http.ResponseWriter, r *http.Request) error {
	head := []string{"id", "template_id", "template_name", "shop_number", "user_id", "order_id", "discount", "currency", "locked_at", "locked_until"}
	return c.Export(w, r, "locks", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *coupon.Listed) ([]coupon.Listed, error) {
			var after coupon.LockCursor
			if last != nil {
				after = coupon.LockCursor{Until: *last.LockedUntil, ID: last.ID}
			}
			return c.Coupons.OpenLocks(r.Context(), shell.Actor(r), after, shell.ExportPage)
		}, func(l coupon.Listed) error {
			return s.Row(l.ID, l.TemplateID, l.TemplateName, l.ShopNumber, int64(l.UserID), l.OrderID, int64(l.Discount), l.Rule.Currency, l.LockedAt, l.LockedUntil)
		})
	})
}

// exportWork sends every job that the list's filter selects.
func (c *Console) exportWork(w http.ResponseWriter, r *http.Request) error {
	p, q := workQuery(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "kind", "title", "shop_number", "state", "total", "done", "failed", "reason", "detail", "created_by", "created_at", "started_at", "finished_at"}
	return c.Export(w, r, "jobs", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *job.Job) ([]job.Job, error) {
			if last != nil {
				q.Before = last.ID
			}
			return c.Jobs.Jobs(r.Context(), shell.Actor(r), q)
		}, func(j job.Job) error {
			return s.Row(j.ID, j.Kind, j.Title, j.ShopNumber, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail,
				j.CreatedBy, j.CreatedAt, j.StartedAt, j.FinishedAt)
		})
	})
}

// exportGrants sends the lists of users who are given coupons: of the template
// that is named, or of all.
func (c *Console) exportGrants(w http.ResponseWriter, r *http.Request) error {
	q := coupon.GrantQuery{Limit: shell.ExportPage}
	var err error
	if q.TemplateID, err = namedTemplate(r); err != nil {
		return err
	}
	head := []string{"id", "template_id", "shop_number", "title", "dry_run", "why", "state", "total", "done", "failed", "reason", "detail",
		"created_by", "created_at", "started_at", "finished_at", "file"}
	return c.Export(w, r, "grants", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *job.Job) ([]job.Job, error) {
			if last != nil {
				q.Before = last.ID
			}
			return c.Grants.List(r.Context(), shell.Actor(r), q)
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
func (c *Console) exportBatches(w http.ResponseWriter, r *http.Request) error {
	q := redeemcode.Query{Limit: shell.ExportPage}
	var err error
	if q.TemplateID, err = namedTemplate(r); err != nil {
		return err
	}
	head := []string{"id", "template_id", "template_name", "shop_number", "state", "count", "generated", "used", "created_by", "created_at", "ready_at",
		"revoked_at", "revoked_by", "revoke_reason"}
	return c.Export(w, r, "code-batches", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *redeemcode.Batch) ([]redeemcode.Batch, error) {
			if last != nil {
				q.Before = last.ID
			}
			return c.Codes.Batches(r.Context(), shell.Actor(r), q)
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

// exportShops sends the shops that the viewer may see.
func (c *Console) exportShops(w http.ResponseWriter, r *http.Request) error {
	list, err := c.ShopsOf(r)
	if err != nil {
		return err
	}
	return c.Export(w, r, "shops", []string{"shop_number", "name", "timezone"}, func(s *shell.Sheet) error {
		for _, x := range list {
			if err := s.Row(x.Number, x.Name, x.Timezone); err != nil {
				return err
			}
		}
		return nil
	})
}
