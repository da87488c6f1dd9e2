package access

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// auditQuery reads the filter of records, and returns the fields that cannot be read.
func (h *handlers) auditQuery(r *http.Request) (accesspages.AuditFilter, staff.AuditQuery, []fault.Field) {
	typed := func(name string) string {
		s := strings.TrimSpace(r.FormValue(name))
		if utf8.RuneCountInString(s) > shell.MaxSearch {
			s = string([]rune(s)[:shell.MaxSearch])
		}
		return s
	}
	f := accesspages.AuditFilter{Kind: typed("kind"), Object: typed("id"), Actor: typed("actor"), Action: typed("action"), Text: typed("q"),
		Security: typed("security") != "", Shop: typed("shop"), From: typed("from"), To: typed("to")}
	q := staff.AuditQuery{ObjectKind: f.Kind, ObjectID: f.Object, Actor: f.Actor, Action: f.Action, Text: f.Text, Security: f.Security,
		Shops: shell.Actor(r).Shops, Limit: shell.PageSize, Reasons: pageparts.SystemReasons(r.Context(), f.Text)}
	read := h.Filter(r)
	q.From, q.To = read.Days()
	q.ShopNumber = read.Shop()
	return f, q, read.Broken.List
}

func (h *handlers) showAudit(w http.ResponseWriter, r *http.Request) error {
	f, q, broken := h.auditQuery(r)
	p := accesspages.Audit{Filter: f}
	p.Errors, q.BeforeID = broken, shell.IDs().In(r)
	if len(broken) == 0 {
		page, err := h.Audit.Search(r.Context(), q)
		if err != nil {
			return err
		}
		p.List, p.Paged = page.List, shell.IDs().Paged(r, len(page.List), page.More, page.Next)
		p.Export = shell.ExportURL(r)
	}
	var err error
	if p.Shops, err = h.ShopsOf(r); err != nil {
		return err
	}
	if shell.Partial(r) {
		return h.Listed(w, r, p.Results(), p.Page())
	}
	if p.Actions, err = h.Audit.Actions(r.Context()); err != nil {
		return err
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

func (h *handlers) exportAudit(w http.ResponseWriter, r *http.Request) error {
	_, q, broken := h.auditQuery(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "at", "actor", "action", "object_kind", "object_id", "shop_number", "reason", "before", "after", "address", "request_id"}
	return shell.FileOf("audit", head, func(x staff.Record) []any {
		return []any{x.ID, x.At, x.Actor, x.Action, x.ObjectKind, x.ObjectID, x.ShopNumber, x.Reason, string(x.Before), string(x.After), x.Address, x.RequestID}
	}).Send(h.Shell, w, r, func(write func(staff.Record) error) error {
		for more := true; more; {
			page, err := h.Audit.Search(r.Context(), q)
			if err == nil {
				err = shell.Each(page.List)(write)
			}
			if err != nil {
				return err
			}
			more, q.BeforeID = page.More, page.Next
		}
		return nil
	})
}
