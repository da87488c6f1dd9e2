package access

import (
	"cmp"
	"net/http"
	"slices"
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
	l := h.records(r, q, broken)
	var err error
	if q.Text == "" || len(broken) > 0 {
		var found []shell.Found[staff.Record]
		found, p.Paged, err = l.Page(r)
		p.List = shell.Rows(found)
	} else {
		var next string
		p.List, next, err = h.searched(r, q, l.In(r))
		p.Paged = l.Paged(r, len(p.List), next != "", next)
		p.Export = shell.ExportURL(r)
	}
	if err != nil {
		return err
	}
	if p.Shops, err = h.AllShopsOf(r); err != nil {
		return err
	}
	if shell.Partial(r) {
		return h.Listed(w, r, p.Results(), p.Page())
	}
	p.Actions, err = shell.All(h.Shell, r, h.audits, func(log AuditLog, r *http.Request) ([]string, error) { return log.Actions(r.Context()) }, strings.Compare, 0)
	if err != nil {
		return err
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// records are the records of all databases that q selects, the newest first. A search for a text does
// not fill its pages; see [handlers.searched].
func (h *handlers) records(r *http.Request, q staff.AuditQuery, broken []fault.Field) shell.List[shell.Found[staff.Record], string] {
	head := []string{"id", "at", "actor", "action", "object_kind", "object_id", "shop_number", "reason", "before", "after", "address", "request_id"}
	return shell.Joined(h.Shell, r, h.audits, func(log AuditLog, r *http.Request) shell.List[staff.Record, int64] {
		return shell.List[staff.Record, int64]{Keys: shell.IDs(), Broken: broken, Read: func(before int64, limit int) ([]staff.Record, error) {
			q := q
			q.BeforeID, q.Limit = before, limit
			page, err := log.Search(r.Context(), q)
			return page.List, err
		}, KeyOf: func(x staff.Record) int64 { return x.ID }, File: shell.FileOf("audit", head, func(x staff.Record) []any {
			return []any{x.ID, x.At, x.Actor, x.Action, x.ObjectKind, x.ObjectID, x.ShopNumber, x.Reason, string(x.Before), string(x.After), x.Address, x.RequestID}
		})}
	}, func(a, b staff.Record) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Action, b.Action), cmp.Compare(a.ObjectID, b.ObjectID))
	})
}

// searched returns records with a text, as far as each database looks at once, and the next place, ""
// at the end of all logs. A page has the records of all databases, the newest first.
func (h *handlers) searched(r *http.Request, q staff.AuditQuery, place string) (list []staff.Record, next string, err error) {
	at := shell.SplitKeys(place, len(h.audits))
	got, err := shell.Across(h.Shell, r, shell.Numbers(len(h.audits)), func(n int, r *http.Request) (staff.AuditPage, error) {
		q := q
		q.BeforeID = shell.IDs().Parse(at[n])
		return h.audits[n].Search(r.Context(), q)
	})
	if err != nil {
		return nil, "", err
	}
	more := false
	for n, page := range got {
		if page == nil {
			continue
		}
		if more = more || page.More; page.More {
			at[n] = shell.IDs().Text(page.Next)
		} else if len(page.List) > 0 {
			at[n] = shell.IDs().Text(page.List[len(page.List)-1].ID)
		}
		list = append(list, page.List...)
	}
	slices.SortStableFunc(list, func(a, b staff.Record) int { return b.At.Compare(a.At) })
	if more {
		next = shell.JoinKeys(at)
	}
	return list, next, nil
}

func (h *handlers) exportAudit(w http.ResponseWriter, r *http.Request) error {
	_, q, broken := h.auditQuery(r)
	l := h.records(r, q, broken)
	if q.Text == "" || len(broken) > 0 {
		return l.Send(h.Shell, w, r)
	}
	q.Limit = shell.ExportPage
	return l.File.Send(h.Shell, w, r, func(write func(shell.Found[staff.Record]) error) error {
		for place, more := "", true; more; more = place != "" {
			list, next, err := h.searched(r, q, place)
			if err == nil && len(shell.Frame(r).Silent) > 0 {
				err = shell.ErrSilent
			}
			for _, x := range list {
				if err == nil {
					err = write(shell.Found[staff.Record]{Row: x})
				}
			}
			if err != nil {
				return err
			}
			place = next
		}
		return nil
	})
}
