package coupons

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// giftPath is the form that gives one customer a coupon.
const giftPath = "/give"

// giftRoutes are the addresses of what staff do with the coupon of one customer.
func (h *handlers) giftRoutes() []shell.Route {
	return []shell.Route{
		shell.Get("/coupons/{id}/{step:refund|reissue|undo|unrefund}", staff.ManageUsers, h.confirmGiftStep),
		shell.Post("/coupons/{id}/{step:refund|reissue|undo|unrefund}", staff.ManageUsers, h.takeGiftStep),
		shell.Get(giftPath, staff.ManageUsers, h.giftForm),
		shell.Post(giftPath, staff.ManageUsers, h.give),
	}
}

// giftForm shows the form; user and template in the address fill it in.
func (h *handlers) giftForm(w http.ResponseWriter, r *http.Request) error {
	p := couponpages.GiftForm{User: r.FormValue("user"), Template: r.FormValue("template"), RequestKey: shell.RequestKey(r)}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// give begins to give the coupon. A form that is sent twice gives one coupon.
func (h *handlers) give(w http.ResponseWriter, r *http.Request) error {
	p := couponpages.GiftForm{User: strings.TrimSpace(r.PostFormValue("user")), Template: strings.TrimSpace(r.PostFormValue("template")),
		Reason: shell.Reason(r), OverLimit: r.PostFormValue("over_limit") != "", RequestKey: shell.RequestKey(r)}
	var broken fault.Fields
	broken.List = shell.Missing(r, "user", "template")
	gift := coupon.Gift{Reason: p.Reason, OverLimit: p.OverLimit}
	gift.UserID = h.NamedUser(r, p.User, &broken)
	gift.TemplateID = h.Named(r, shell.Drops, "template", p.Template, &broken)
	place := 0
	if gift.TemplateID != 0 {
		var err error
		_, place, err = h.template(r, gift.TemplateID)
		if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Denied {
			broken.Add("template", "rule.name_unknown", "nothing has this name; choose a name from the list, or type its number")
		} else if err != nil {
			return err
		}
	}
	if err := coupon.CheckReason(p.Reason); err != nil {
		broken.List = append(broken.List, shell.FieldsOf(err)...)
	}
	if p.Errors = broken.List; len(p.Errors) > 0 {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	return h.cells[place].handOver(w, r, gift, func(status int, why string) error {
		p.Error, p.RequestKey = why, rand.Text()
		return h.Show(w, r, status, p.Page())
	})
}

// handOver begins to give the coupon and waits a moment for the result: it leads to the new
// coupon, or to the page of the work if that takes longer. refused answers why there is no
// coupon.
func (h *handlers) handOver(w http.ResponseWriter, r *http.Request, gift coupon.Gift, refused func(status int, why string) error) error {
	ctx, by := r.Context(), shell.Actor(r)
	u, err := h.Files.Uploads.SaveUpload(ctx, "one.csv", strings.NewReader("user_id\n"+gift.UserID.String()+"\n"), 100, by)
	if err != nil {
		return err
	}
	j, err := h.Grants.Give(ctx, by, gift, u.ID, shell.RequestKey(r))
	if err != nil || j.UploadID != u.ID { // refused, or the form was sent before
		h.Files.Remove(r, u.ID)
	}
	if fault.KindOf(err) == fault.Conflict {
		return refused(http.StatusConflict, ui.FaultText(ctx, err))
	}
	if err != nil {
		return err
	}
	if j, err = h.worked(ctx, by, j); err != nil {
		return err
	}
	result, id, err := h.Grants.Result(ctx, by, j)
	switch {
	case err != nil:
		return err
	case !j.State.Over(), j.State != job.Done, result == coupon.GrantAccepted, result == "":
		return h.Done(w, r, couponpages.GrantURL(j.ID), ui.Info, shell.Say(r, "grants.started"))
	case result == coupon.GrantIssued:
		return h.Done(w, r, pageparts.CouponURL(id), ui.Good, shell.Say(r, "gift.given"))
	}
	return refused(http.StatusConflict, couponpages.GiftRefusal(ctx, result))
}

// worked waits until the job is over, at most as long as a member should wait for a page.
func (h *handlers) worked(ctx context.Context, by staff.Actor, j job.Job) (job.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Patience)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !j.State.Over() {
		select {
		case <-ctx.Done():
			return j, nil
		case <-look.C:
		}
		now, err := h.Jobs.Job(ctx, by, j.ID)
		if ctx.Err() != nil {
			return j, nil
		}
		if err != nil {
			return j, err
		}
		j = now
	}
	return j, nil
}

// giftStep is the confirmation of the step in the address.
func (h *handlers) giftStep(r *http.Request, l coupon.Listed, broken string) pageparts.Confirmation {
	loc, url, step := shell.Frame(r).Locale, pageparts.CouponURL(l.ID), r.PathValue("step")
	h.NamePeople(r, l.UserID)
	person := ui.PersonText(r.Context(), l.UserID)
	p := pageparts.Confirmation{Active: "coupons", Crumbs: []ui.Crumb{{Label: loc.T("nav.coupons"), URL: "/coupons"},
		{Label: loc.T("coupon.title", strconv.FormatInt(l.ID, 10)), URL: url}},
		ConfirmProps: ui.ConfirmProps{Title: loc.T("gift." + step + ".title"), Submit: loc.T("gift." + step), Action: url + "/" + step, Cancel: url,
			Kind: "primary", Reason: shell.Reason(r), NeedsReason: true, ReasonError: broken}}
	switch step {
	case "refund":
		p.Points = []string{loc.T("gift.refund.1", l.OrderID, person), loc.T("gift.refund.2"), loc.T("gift.refund.3")}
		p.Hidden = [][2]string{{"order", l.OrderID}}
	case "reissue":
		p.Points = []string{loc.T("gift.reissue.1", person, l.TemplateName), loc.T("gift.reissue.2"), loc.T("gift.reissue.3")}
		if l.At(l.Now) == coupon.Unused {
			p.Points[1] = loc.T("gift.reissue.2_unused")
		}
		p.Hidden = [][2]string{{"request_key", shell.RequestKey(r)}}
	case "unrefund":
		p.Points = []string{loc.T("gift.unrefund.1"), loc.T("gift.unrefund.2")}
	case "undo":
		p.Kind = "danger"
		p.Points = []string{loc.T("gift.undo.1", person, l.TemplateName), loc.T("gift.undo.2"), loc.T("gift.undo.3")}
	}
	return p
}

// refuseGiftStep answers why the step is not possible.
func (h *handlers) refuseGiftStep(w http.ResponseWriter, r *http.Request, l coupon.Listed, why string) error {
	p := h.giftStep(r, l, "")
	p.Title, p.Points = shell.Say(r, "gift.not"), []string{why}
	p.Action, p.Submit, p.Kind, p.Hidden, p.NoReason = "", "", "", nil, true
	return h.Ask(w, r, http.StatusConflict, p)
}

// giftRefusal says why the step in the address cannot be taken; empty if it can.
func (h *handlers) giftRefusal(r *http.Request, l coupon.Listed, log []coupon.Operation) (string, error) {
	state := string(l.At(l.Now))
	switch r.PathValue("step") {
	case "refund":
		if l.MayRefund() != nil {
			return shell.Say(r, "gift.refund.not"), nil
		}
	case "undo":
		if l.MayUndoGift() != nil {
			return shell.Say(r, "gift.undo.not"), nil
		}
	case "unrefund":
		if _, ok := coupon.UndoableRefund(log); !ok {
			return shell.Say(r, "gift.unrefund.not"), nil
		}
	case "reissue":
		if l.MayReissue() != nil {
			return shell.Say(r, "gift.reissue.not."+state), nil
		}
		again, err := h.Coupons.Given(r.Context(), l.ID)
		if again != 0 {
			return shell.Say(r, "gift.reissue.before", strconv.FormatInt(again, 10)), err
		}
		return "", err
	}
	return "", nil
}

// loadGiftStep loads the coupon in the address for members who may take the step.
func (h *handlers) loadGiftStep(r *http.Request) (l coupon.Listed, no string, err error) {
	id, err := shell.PathID(r)
	if err != nil {
		return l, "", err
	}
	l, log, err := h.Coupons.Coupon(r.Context(), shell.Actor(r), id)
	if err != nil {
		return l, "", err
	}
	if err := shell.Actor(r).May(staff.ManageUsers, l.ShopNumber); err != nil {
		return l, "", err
	}
	no, err = h.giftRefusal(r, l, log)
	return l, no, err
}

func (h *handlers) confirmGiftStep(w http.ResponseWriter, r *http.Request) error {
	l, no, err := h.loadGiftStep(r)
	switch {
	case err != nil:
		return err
	case no != "":
		return h.refuseGiftStep(w, r, l, no)
	}
	return h.Ask(w, r, http.StatusOK, h.giftStep(r, l, ""))
}

// takeGiftStep takes the step. Sending the form again changes nothing.
func (h *handlers) takeGiftStep(w http.ResponseWriter, r *http.Request) error {
	l, no, err := h.loadGiftStep(r)
	if err != nil {
		return err
	}
	if err := coupon.CheckReason(shell.Reason(r)); err != nil {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.giftStep(r, l, ui.ErrorOf(r.Context(), shell.FieldsOf(err), "reason")))
	}
	by, step := shell.Actor(r), r.PathValue("step")
	switch step {
	case "refund":
		_, err = h.Coupons.Refund(r.Context(), by, l.ID, r.PostFormValue("order"), shell.Reason(r))
	case "unrefund":
		_, err = h.Coupons.UndoRefund(r.Context(), by, l.ID, shell.Reason(r))
	case "undo":
		_, err = h.Coupons.UndoGift(r.Context(), by, l.ID, shell.Reason(r))
	case "reissue":
		if l.MayReissue() == nil { // a form that is sent twice leads to the coupon that it gave
			return h.handOver(w, r, coupon.Gift{TemplateID: l.TemplateID, UserID: l.UserID, Reason: shell.Reason(r), Replaces: l.ID}, func(_ int, why string) error {
				return h.refuseGiftStep(w, r, l, why)
			})
		}
		err = coupon.ErrNotUsable
	}
	if errors.Is(err, coupon.ErrNotUsable) {
		if no == "" {
			no = ui.FaultText(r.Context(), err)
		}
		return h.refuseGiftStep(w, r, l, no)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.CouponURL(l.ID), ui.Good, shell.Say(r, "gift."+step+".done"))
}
