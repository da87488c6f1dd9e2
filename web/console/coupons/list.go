package coupons

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// NoticeCalendar keeps how many notices there are per day.
type NoticeCalendar interface {
	// NoticeDays returns the days from the first to the last that have
	// notices, of the shops given (none = all) and of one template or all (0).
	NoticeDays(ctx context.Context, from, to time.Time, shops []int64, templateID int64) ([]coupon.NoticeDay, error)
}

// Tallies counts the coupons of a template by state.
type Tallies interface {
	// Tally counts the states of the template's coupons, as far as events have arrived.
	Tally(ctx context.Context, templateID int64) (coupon.Tally, error)
}

func (h *handlers) findCoupons(w http.ResponseWriter, r *http.Request) error {
	p, q, ok := h.couponQuery(r)
	ok = ok && len(p.Errors) == 0
	var err error
	if p.Broken = !ok; ok && p.Search != "" {
		var found []shell.Found[coupon.Listed]
		if found, p.Paged, err = h.allCoupons(r, q).Page(r); err != nil {
			return err
		}
		p.List = shell.Rows(found)
	}
	shell.NameEach(h.Shell, r, p.List, personOf)
	if ok && q.TemplateID != 0 {
		if p.Tally, err = h.tallyOf(r, q.TemplateID); err != nil {
			return err
		}
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

func personOf(l coupon.Listed) user.ID { return l.UserID }

// allCoupons returns the coupons of all databases that q selects.
func (h *handlers) allCoupons(r *http.Request, q coupon.Query) shell.List[shell.Found[coupon.Listed], string] {
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[coupon.Listed, int64] { return h.coupons(r, q) }, func(a, b coupon.Listed) int {
		return cmp.Or(b.IssuedAt.Compare(a.IssuedAt), cmp.Compare(b.ID, a.ID))
	})
}

// coupons returns the coupons of this database that q selects.
func (h *handlers) coupons(r *http.Request, q coupon.Query) shell.List[coupon.Listed, int64] {
	return shell.List[coupon.Listed, int64]{Keys: shell.IDs(), Read: func(before int64, limit int) ([]coupon.Listed, error) {
		q.BeforeID, q.Limit = before, limit
		return h.Coupons.List(r.Context(), shell.Actor(r), q)
	}, KeyOf: func(l coupon.Listed) int64 { return l.ID }, File: shell.FileOf("coupons",
		[]string{"id", "template_id", "template_name", "shop_number", "user_id", "state", "origin", "issued_at", "expires_at", "order_id", "discount", "currency", "door"},
		func(l coupon.Listed) []any {
			var door any
			if l.Door > 0 {
				door = l.Door
			}
			return []any{l.ID, l.TemplateID, l.TemplateName, l.ShopNumber, int64(l.UserID), string(l.At(l.Now)), l.Origin, l.IssuedAt, l.ExpiresAt,
				l.OrderID, int64(l.Discount), l.Rule.Currency, door}
		})}
}

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
	q.Doors = true
	return h.allCoupons(r, q).Send(h.Shell, w, r)
}

// template returns a template with the place of its database.
func (h *handlers) template(r *http.Request, id int64) (template.Template, int, error) {
	return shell.First(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (template.Template, error) {
		return h.Templates.Template(r.Context(), shell.Actor(r), id)
	})
}

// tallyOf is nil of a template that there is not, or not for this viewer.
func (h *handlers) tallyOf(r *http.Request, id int64) (*pageparts.Tally, error) {
	t, place, err := h.template(r, id)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Denied {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	y, err := h.cells[place].Tallies.Tally(r.Context(), id)
	return &pageparts.Tally{Template: t, Tally: y}, err
}

// couponQuery reads the search text. ok is false if no coupon can match it.
func (h *handlers) couponQuery(r *http.Request) (p couponpages.Coupons, q coupon.Query, ok bool) {
	p = couponpages.Coupons{By: r.FormValue("by"), Search: strings.TrimSpace(r.FormValue("q"))}
	var broken fault.Fields
	p.State = coupon.State(strings.TrimSpace(r.FormValue("state")))
	q.State = shell.Choice(r, "state", coupon.States(), &broken)
	shell.Choice(r, "by", couponpages.CouponSearches(), &broken)
	p.Errors = broken.List
	n, err := strconv.ParseInt(shell.Narrow(p.Search), 10, 64)
	isID := err == nil && n > 0
	if kind, named := map[string]shell.NameKind{"template": shell.Drops, "user": shell.People, "": shell.People}[p.By]; named && !isID && p.Search != "" {
		n = h.Named(r, kind, "q", p.Search, &fault.Fields{})
		isID = n > 0
	}
	switch p.By {
	case "order":
		q.OrderID = p.Search
		return p, q, p.Search == "" || coupon.CheckOrderID(p.Search) == nil
	case "coupon":
		q.ID = n
	case "template":
		q.TemplateID = n
	default:
		p.By, q.UserID = "user", user.ID(n)
	}
	return p, q, p.Search == "" || isID
}

func (h *handlers) listLocks(w http.ResponseWriter, r *http.Request) error {
	by := shell.Actor(r)
	p, locks, err := h.allLocks(r)
	if err != nil {
		return err
	}
	found, paged, err := locks.Page(r)
	if err != nil {
		return err
	}
	p.List, p.Paged = shell.Rows(found), paged
	shell.NameEach(h.Shell, r, p.List, personOf)
	p.MayRelease = func(shop int64) bool { return by.Can(staff.Operate, shop) }
	return h.Show(w, r, http.StatusOK, p.Page())
}

// allLocks are the coupons of all databases that orders hold, the lock that ends next first.
func (h *handlers) allLocks(r *http.Request) (p couponpages.Locks, l shell.List[shell.Found[coupon.Listed], string], _ error) {
	return p, shell.Joined(h.Shell, r, h.cells, (*handlers).locks, func(a, b coupon.Listed) int {
		return cmp.Or(a.LockedUntil.Compare(*b.LockedUntil), cmp.Compare(a.ID, b.ID))
	}), nil
}

// locks are the coupons of this database that orders hold.
func (h *handlers) locks(r *http.Request) shell.List[coupon.Listed, shell.Place] {
	return shell.List[coupon.Listed, shell.Place]{Keys: shell.Places("-"), Read: func(after shell.Place, limit int) ([]coupon.Listed, error) {
		return h.Coupons.OpenLocks(r.Context(), shell.Actor(r), coupon.LockCursor{Until: after.At, ID: after.ID}, limit)
	}, KeyOf: func(l coupon.Listed) shell.Place { return shell.Place{At: *l.LockedUntil, ID: l.ID} }, File: shell.FileOf("locks",
		[]string{"id", "template_id", "template_name", "shop_number", "user_id", "order_id", "discount", "currency", "locked_at", "locked_until"},
		func(l coupon.Listed) []any {
			return []any{l.ID, l.TemplateID, l.TemplateName, l.ShopNumber, int64(l.UserID), l.OrderID, int64(l.Discount), l.Rule.Currency, l.LockedAt, l.LockedUntil}
		})}
}

func (h *handlers) showCoupon(w http.ResponseWriter, r *http.Request, id int64) error {
	l, log, err := h.Coupons.Coupon(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	again, err := h.Coupons.Given(r.Context(), id)
	if err != nil {
		return err
	}
	h.NamePeople(r, l.UserID)
	return h.Show(w, r, http.StatusOK, couponpages.CouponDetail{Coupon: l, Log: log, Again: again, MayRelease: shell.Actor(r).Can(staff.Operate, l.ShopNumber),
		MayRevoke: shell.Actor(r).Can(staff.ManageUsers, l.ShopNumber)}.Page())
}

// couponStep is the confirmation of the step in the address.
func (h *handlers) couponStep(r *http.Request, l coupon.Listed, broken string) pageparts.Confirmation {
	loc, order := shell.Frame(r).Locale, r.FormValue("order")
	p := pageparts.Confirmation{Active: "coupons", Crumbs: []ui.Crumb{{Label: loc.T("nav.coupons"), URL: "/coupons"},
		{Label: loc.T("coupon.title", strconv.FormatInt(l.ID, 10)), URL: pageparts.CouponURL(l.ID)}},
		ConfirmProps: ui.ConfirmProps{Cancel: pageparts.CouponURL(l.ID), Kind: "danger", Reason: shell.Reason(r), NeedsReason: true, ReasonError: broken}}
	if r.PathValue("step") == "revoke" {
		h.NamePeople(r, l.UserID)
		p.Title, p.Submit, p.Action = loc.T("coupon.revoke.title"), loc.T("coupon.revoke"), pageparts.CouponURL(l.ID)+"/revoke"
		p.Points = []string{loc.T("coupon.revoke.1", ui.PersonText(r.Context(), l.UserID), l.TemplateName), loc.T("coupon.revoke.2")}
		p.Inside = couponpages.ReturnChoice(r.PostFormValue("stock") != "")
		return p
	}
	p.Title, p.Submit, p.Action = loc.T("locks.release.title", order), loc.T("locks.release"), pageparts.CouponURL(l.ID)+"/release"
	p.Points = []string{loc.T("locks.release.1"), loc.T("locks.release.2")}
	p.Hidden = [][2]string{{"order", order}}
	return p
}

func (h *handlers) confirmCouponStep(w http.ResponseWriter, r *http.Request, l coupon.Listed) error {
	if couponRefusal(r, l) != nil {
		return h.refuseCouponStep(w, r, l)
	}
	return h.Ask(w, r, http.StatusOK, h.couponStep(r, l, ""))
}

// couponRefusal says why the step in the address cannot be taken, nil if it can.
func couponRefusal(r *http.Request, l coupon.Listed) error {
	if r.PathValue("step") == "revoke" {
		return l.MayRevoke()
	}
	return l.MayRelease(r.FormValue("order"))
}

// refuseCouponStep answers why the step has no confirmation.
func (h *handlers) refuseCouponStep(w http.ResponseWriter, r *http.Request, l coupon.Listed) error {
	p := h.couponStep(r, l, "")
	p.Action, p.Submit, p.Kind, p.Hidden, p.Inside, p.NoReason = "", "", "", nil, nil, true
	if r.PathValue("step") == "revoke" {
		p.Title, p.Points = shell.Say(r, "coupon.revoke.not"), []string{shell.Say(r, "coupon.revoke.not."+string(l.At(l.Now)))}
	} else {
		p.Title, p.Points = shell.Say(r, "coupon.release.title"), []string{noLock(r, l)}
	}
	return h.Ask(w, r, http.StatusConflict, p)
}

// noLock returns why the order in the address has no lock that could be ended.
func noLock(r *http.Request, l coupon.Listed) string {
	switch order := r.FormValue("order"); {
	case l.State != coupon.Locked && l.State != coupon.Used:
		return shell.Say(r, "coupon.release.none")
	case order == "":
		return shell.Say(r, "coupon.release.unnamed")
	case order == l.OrderID:
		return shell.Say(r, "coupon.release.used", order)
	default:
		return shell.Say(r, "coupon.release.other", order)
	}
}

// ownCoupon loads the coupon in the address if the viewer may take the step.
func (h *handlers) ownCoupon(r *http.Request) (coupon.Listed, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return coupon.Listed{}, err
	}
	l, _, err := h.Coupons.Coupon(r.Context(), shell.Actor(r), id)
	if err != nil {
		return l, err
	}
	needs := staff.Operate
	if r.PathValue("step") == "revoke" {
		needs = staff.ManageUsers
	}
	return l, shell.Actor(r).May(needs, l.ShopNumber)
}

func (h *handlers) takeCouponStep(w http.ResponseWriter, r *http.Request) error {
	l, err := h.ownCoupon(r)
	if err != nil {
		return err
	}
	said := "coupon.revoked"
	if r.PathValue("step") == "revoke" {
		_, err = h.Coupons.Revoke(r.Context(), shell.Actor(r), l.ID, shell.Reason(r), r.PostFormValue("stock") != "")
	} else {
		said = "locks.released"
		_, err = h.Coupons.Release(r.Context(), shell.Actor(r), l.ID, r.PostFormValue("order"), shell.Reason(r))
	}
	if broken := shell.FieldsOf(err); broken != nil && ui.ErrorOf(r.Context(), broken, "reason") != "" {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.couponStep(r, l, ui.ErrorOf(r.Context(), broken, "reason")))
	}
	if errors.Is(err, coupon.ErrNotUsable) { // show what there is now
		now, again := h.ownCoupon(r)
		if again == nil && couponRefusal(r, now) != nil {
			return h.refuseCouponStep(w, r, now)
		}
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.CouponURL(l.ID), ui.Good, shell.Say(r, said))
}

func (h *handlers) showNotices(w http.ResponseWriter, r *http.Request) error {
	p := couponpages.NoticeCalendar{Today: shell.DateIn(h.Now(), h.DefaultZone)}
	p.Month = ui.ParseMonth(r.FormValue("month"), p.Today)
	from, end := ui.MonthSpan(shell.Frame(r).Locale, p.Month)
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]coupon.NoticeDay, error) {
		return h.Notices.NoticeDays(r.Context(), from, end.AddDate(0, 0, -1), shell.Actor(r).Shops, 0)
	})
	if err != nil {
		return err
	}
	for d := from; d.Before(end); d = d.AddDate(0, 0, 1) {
		day := coupon.NoticeDay{Day: d}
		for _, days := range got {
			if days == nil {
				continue
			}
			if i := slices.IndexFunc(*days, func(n coupon.NoticeDay) bool { return n.Day.Equal(d) }); i >= 0 {
				day = day.Plus((*days)[i])
			}
		}
		p.Days = append(p.Days, day)
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// namedTemplate returns the template whose lists are selected; 0 = the lists of all templates.
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
