package coupons

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/redeemcode"
	"dropbell/domain/template"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// allCodes shows the batches of all templates.
func (h *handlers) allCodes(w http.ResponseWriter, r *http.Request) error {
	var p couponpages.Codes
	if err := h.fillCodes(r, &p, 0); err != nil {
		return err
	}
	return h.Either(w, r, p.Batches(), p.Page())
}

// listCodes shows the batches of one template.
func (h *handlers) listCodes(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p, err := h.codesPage(r, t)
	if err != nil {
		return err
	}
	return h.Either(w, r, p.Batches(), p.Page())
}

func (h *handlers) codesPage(r *http.Request, t template.Template) (couponpages.Codes, error) {
	p := couponpages.Codes{Template: &t, RequestKey: rand.Text()}
	if err := h.Codes.MayGenerate(t); err != nil {
		p.Closed = ui.FaultText(r.Context(), err)
		if errors.Is(err, redeemcode.ErrEnded) {
			p.Closed = shell.Say(r, "codes.closed")
		}
	}
	if err := h.fillCodes(r, &p, t.ID); err != nil {
		return p, err
	}
	var err error
	p.Supply, err = h.Codes.Supply(r.Context(), shell.Actor(r), t.ID)
	return p, err
}

// fillCodes reads one page of batches; templateID 0 = all templates.
func (h *handlers) fillCodes(r *http.Request, p *couponpages.Codes, templateID int64) (err error) {
	p.Before = h.allBatches(r, templateID).In(r)
	found, paged, err := h.allBatches(r, templateID).Page(r)
	p.List, p.Paged = shell.Rows(found), paged
	return err
}

// allBatches returns the batches of all databases: of one template, or of all (0).
func (h *handlers) allBatches(r *http.Request, templateID int64) shell.List[shell.Found[redeemcode.Batch], string] {
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[redeemcode.Batch, int64] {
		return h.batches(r, templateID)
	}, func(a, b redeemcode.Batch) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

// batches returns the batches of this database.
func (h *handlers) batches(r *http.Request, templateID int64) shell.List[redeemcode.Batch, int64] {
	return shell.List[redeemcode.Batch, int64]{Keys: shell.IDs(), Read: func(before int64, limit int) ([]redeemcode.Batch, error) {
		return h.Codes.Batches(r.Context(), shell.Actor(r), redeemcode.Query{TemplateID: templateID, Before: before, Limit: limit})
	}, KeyOf: func(b redeemcode.Batch) int64 { return b.ID }, File: shell.FileOf("code-batches",
		[]string{"id", "template_id", "template_name", "shop_number", "state", "count", "generated", "used", "created_by", "created_at", "ready_at",
			"revoked_at", "revoked_by", "revoke_reason"},
		func(b redeemcode.Batch) []any {
			state := string(b.State)
			if b.Stopped() {
				state = "stopped"
			}
			return []any{b.ID, b.TemplateID, b.TemplateName, b.ShopNumber, state, b.Count, b.Generated, b.Used, b.CreatedBy, b.CreatedAt, b.ReadyAt,
				b.RevokedAt, b.RevokedBy, b.RevokeReason}
		})}
}

// exportedBatches returns the batches, without the codes, of the named template, or of all
// templates.
func (h *handlers) exportedBatches(r *http.Request) (id int64, l shell.List[shell.Found[redeemcode.Batch], string], err error) {
	id, err = namedTemplate(r)
	return id, h.allBatches(r, id), err
}

// generateCodes starts a batch.
func (h *handlers) generateCodes(w http.ResponseWriter, r *http.Request, t template.Template) error {
	typed := strings.TrimSpace(r.PostFormValue("count"))
	count, err := shell.TypedCount(typed)
	var broken []fault.Field
	if err != nil {
		var e fault.Fields
		e.Add("count", "rule.code_count", "must be between 1 and %d", redeemcode.MaxCount)
		broken = e.List
	} else {
		_, err = h.Codes.Generate(r.Context(), shell.Actor(r), t.ID, count, shell.CreationKey(r))
		broken = shell.FieldsOf(err)
	}
	if len(broken) > 0 {
		return h.askAgain(w, r, t, typed, broken)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.CodesURL(t.ID), ui.Good, shell.Frame(r).Locale.N("codes.started", count))
}

func (h *handlers) askAgain(w http.ResponseWriter, r *http.Request, t template.Template, typed string, broken []fault.Field) error {
	p, err := h.codesPage(r, t)
	if err != nil {
		return err
	}
	p.Count, p.Errors = typed, broken
	return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
}

// exportCodes sends one batch, or all that are not revoked.
func (h *handlers) exportCodes(w http.ResponseWriter, r *http.Request) error {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return err
	}
	var batch int64
	if typed := r.FormValue("batch"); typed != "" {
		if batch, err = strconv.ParseInt(typed, 10, 64); err != nil || batch <= 0 {
			return redeemcode.ErrBatchNotFound
		}
	}
	x, err := h.Codes.Export(r.Context(), shell.Actor(r), t.ID, batch)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("codes-%d.csv", t.ID)
	if batch != 0 {
		name = fmt.Sprintf("codes-%d-%d.csv", t.ID, batch)
	}
	out := shell.NewDownload(w, name)
	if err := h.Codes.Write(r.Context(), x, out); err != nil {
		return out.Broken(h.Shell, r, err)
	}
	return nil
}

func (h *handlers) loadBatch(r *http.Request) (template.Template, redeemcode.Batch, error) {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return t, redeemcode.Batch{}, err
	}
	id, err := strconv.ParseInt(r.PathValue("batch"), 10, 64)
	if err != nil || id <= 0 {
		return t, redeemcode.Batch{}, shell.ErrNoPage
	}
	b, err := h.Codes.Batch(r.Context(), shell.Actor(r), t.ID, id)
	return t, b, err
}

func (h *handlers) confirmRevokeCodes(w http.ResponseWriter, r *http.Request) error {
	t, b, err := h.loadBatch(r)
	if err != nil {
		return err
	}
	if b.State == redeemcode.Revoked {
		return h.revokedAlready(w, r, t, b)
	}
	return h.Ask(w, r, http.StatusOK, h.revokeQuestion(r, t, b))
}

func (h *handlers) revokeQuestion(r *http.Request, t template.Template, b redeemcode.Batch) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	crumbs := append(shell.TemplateCrumbs(r, t), ui.Crumb{Label: l.T("codes.title"), URL: pageparts.CodesURL(t.ID)})
	return pageparts.Confirmation{Active: "templates", Crumbs: crumbs, ConfirmProps: ui.ConfirmProps{
		Title:  l.T("codes.confirm.title", strconv.FormatInt(b.ID, 10)),
		Points: []string{l.N("codes.confirm.1", b.Count-b.Used), l.N("codes.confirm.2", b.Used)},
		Action: fmt.Sprintf("%s/%d/revoke", pageparts.CodesURL(t.ID), b.ID), Cancel: pageparts.CodesURL(t.ID),
		Submit: l.T("codes.revoke"), Kind: "danger", NeedsReason: true}}
}

func (h *handlers) revokeCodes(w http.ResponseWriter, r *http.Request) error {
	t, b, err := h.loadBatch(r)
	if err != nil {
		return err
	}
	_, err = h.Codes.Revoke(r.Context(), shell.Actor(r), t.ID, b.ID, shell.Reason(r))
	if broken := shell.FieldsOf(err); len(broken) > 0 {
		p := h.revokeQuestion(r, t, b)
		p.Reason, p.ReasonError = shell.Reason(r), ui.FieldText(r.Context(), broken[0])
		return h.Ask(w, r, http.StatusUnprocessableEntity, p)
	}
	if errors.Is(err, redeemcode.ErrRevoked) {
		return h.revokedAlready(w, r, t, b)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.CodesURL(t.ID), ui.Good, shell.Say(r, "codes.revoked_now"))
}

// revokedAlready answers the revocation of a batch that was revoked meanwhile: it counts as done,
// with the reason that the list shows.
func (h *handlers) revokedAlready(w http.ResponseWriter, r *http.Request, t template.Template, b redeemcode.Batch) error {
	return h.Done(w, r, pageparts.CodesURL(t.ID), ui.Info, shell.Say(r, "codes.revoked_already", strconv.FormatInt(b.ID, 10)))
}

// checkCode shows the state of a code. It changes nothing; it is a POST because logs and browser
// histories would keep a code in an address.
func (h *handlers) checkCode(w http.ResponseWriter, r *http.Request) error {
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (redeemcode.Finding, error) {
		return h.Codes.Check(r.Context(), shell.Actor(r), r.PostFormValue("code"))
	})
	if err != nil {
		return err
	}
	f := *got[0]
	for _, other := range got[1:] {
		switch {
		case f.Verdict != redeemcode.NeverIssued:
		case other == nil:
			return shell.ErrSilent
		default:
			f = *other
		}
	}
	p := couponpages.CodeCheck{Finding: &f}
	if f.Verdict == redeemcode.Unreadable || f.Verdict == redeemcode.Forged {
		p.Typed = strings.TrimSpace(r.PostFormValue("code"))
	}
	if f.Use != nil {
		h.NamePeople(r, f.Use.UserID)
	}
	return h.Either(w, r, p.Card(), p.Page())
}
