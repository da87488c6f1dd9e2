package audience

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/timeline"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	"dropbell/web/console/shell"
)

const (
	userReservations = 10
	dueReservations  = 50 // among which the reminder that is due first is searched
	userCoupons      = 10
	userOrders       = 5
	inboxPreview     = 10
	earnedDays       = 30
)

// userSearch is the search text; longer texts find no user.
func userSearch(r *http.Request) string {
	text := strings.TrimSpace(r.FormValue("q"))
	if len(text) > shell.MaxSearch {
		return ""
	}
	if id, err := user.ParseID(shell.Narrow(text)); err == nil {
		return id.String()
	}
	return text
}

func (h *handlers) findUsers(w http.ResponseWriter, r *http.Request) error {
	p := audiencepages.Users{Search: strings.TrimSpace(r.FormValue("q"))}
	var err error
	if p.List, p.Paged, err = h.users(r).Page(r); err != nil {
		return err
	}
	if !shell.Actor(r).Can(staff.ManageUsers, 0) {
		p.Export = ""
	}
	if p.Search == "" {
		if err := h.fillRecent(r, &p); err != nil {
			return err
		}
	}
	if id, err := user.ParseID(userSearch(r)); err == nil && !slices.ContainsFunc(p.List, func(u user.User) bool { return u.ID == id }) {
		p.Unknown = id
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// fillRecent reads what the page shows without a search: the customers of all databases with the newest
// acts, and what all databases earned. A user has the row of the newest act.
func (h *handlers) fillRecent(r *http.Request, p *audiencepages.Users) error {
	type part struct {
		recent []shell.Found[timeline.Customer]
		used   int64
		earned report.Overview
	}
	p.Ways = audiencepages.Ways{Channels: h.Channels.Set(), VerifiedOnly: h.VerifiedOnly}
	if err := h.UseShopsZone(r, 0); err != nil {
		return err
	}
	got, err := shell.Across(h.Shell, r, shell.Numbers(len(h.cells)), func(n int, r *http.Request) (v part, err error) {
		ctx, by := r.Context(), shell.Actor(r)
		recent, err := h.cells[n].Timeline.Recent(ctx, by, shell.PageSize)
		for _, c := range recent {
			v.recent = append(v.recent, shell.Found[timeline.Customer]{Row: c, Cell: n})
		}
		if err == nil {
			v.used, err = h.cells[n].Timeline.Used(ctx, by)
		}
		if err == nil {
			v.earned, err = h.cells[n].Reports.Earned(ctx, by, 0, earnedDays, shell.Frame(r).DayZone())
		}
		return v, err
	})
	if err != nil {
		return err
	}
	var all []shell.Found[timeline.Customer]
	for n, v := range got {
		switch {
		case v == nil:
			continue
		case n == 0:
			p.Earned = v.earned
		default:
			p.Earned = p.Earned.Plus(v.earned)
		}
		all, p.Used = append(all, v.recent...), p.Used+v.used
	}
	if len(got) == 1 {
		p.Recent = shell.Rows(all)
		return nil
	}
	slices.SortStableFunc(all, func(a, b shell.Found[timeline.Customer]) int {
		return cmp.Or(b.Row.Last.At.Compare(a.Row.Last.At), cmp.Compare(a.Row.User.ID, b.Row.User.ID))
	})
	p.Pages = map[user.ID]string{}
	for _, c := range all {
		if id := c.Row.User.ID; p.Pages[id] == "" && len(p.Recent) < shell.PageSize {
			p.Recent, p.Pages[id] = append(p.Recent, c.Row), h.InCell(r, c.Cell, "/users/"+id.String())
		}
	}
	return h.sumWorth(r, p.Recent)
}

// sumWorth sets what each of the customers is worth to the sum over all databases.
func (h *handlers) sumWorth(r *http.Request, list []timeline.Customer) error {
	ids := make([]user.ID, len(list))
	for i, c := range list {
		ids[i], list[i].Worth = c.User.ID, timeline.Worth{}
	}
	got, err := shell.Across(h.Shell, r, h.cells, func(d Deps, r *http.Request) (map[user.ID]timeline.Worth, error) {
		return d.Timeline.Worths(r.Context(), shell.Actor(r), ids)
	})
	for _, worth := range got {
		if worth == nil {
			continue
		}
		for i, c := range list {
			list[i].Worth = c.Worth.Plus((*worth)[c.User.ID])
		}
	}
	return err
}

// users returns the users that the search finds; none without a search text.
func (h *handlers) users(r *http.Request) shell.List[user.User, user.ID] {
	text := userSearch(r)
	return shell.List[user.User, user.ID]{Keys: shell.UserIDs(), KeyOf: func(u user.User) user.ID { return u.ID }, Read: func(after user.ID, limit int) ([]user.User, error) {
		if text == "" {
			return nil, nil
		}
		return h.usersFound(r, text, after, limit)
	}, File: shell.FileOf("users", []string{"id", "name", "email", "phone", "locale", "timezone", "opted_out", "phone_verified"}, func(u user.User) []any {
		return []any{int64(u.ID), u.Name, u.Email, u.Phone, u.Locale, u.Timezone, optedOut(u), strconv.FormatBool(!u.PhoneVerifiedAt.IsZero())}
	})}
}

// usersFound returns users as the viewer may see them. Without the permission to see contacts,
// contacts are masked, and only a complete contact finds a user.
func (h *handlers) usersFound(r *http.Request, text string, after user.ID, limit int) ([]user.User, error) {
	if shell.Actor(r).SeesContacts() {
		return h.Users.Find(r.Context(), text, after, limit)
	}
	list, err := h.Users.FindNamed(r.Context(), text, after, limit)
	for i, u := range list {
		list[i] = u.Masked()
	}
	return list, err
}

// revealContacts shows the contacts of one user to staff who see them masked, and records it. The
// number of users shown per hour is bounded.
func (h *handlers) revealContacts(w http.ResponseWriter, r *http.Request) error {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return shell.ErrNoPage
	}
	e := staff.Entry{Actor: shell.Actor(r), Action: "user.show_contacts", ObjectKind: "user", ObjectID: id.String()}
	if shops := e.Actor.Shops; len(shops) > 0 {
		e.ShopNumber = shops[0]
	}
	if err := h.Audit.RecordRevealed(r.Context(), e); err != nil {
		return err
	}
	return h.drawUser(w, r, true)
}

func (h *handlers) showUser(w http.ResponseWriter, r *http.Request) error {
	return h.drawUser(w, r, false)
}

func (h *handlers) drawUser(w http.ResponseWriter, r *http.Request, revealed bool) error {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return shell.ErrNoPage
	}
	p := audiencepages.User{User: user.User{ID: id}, Ways: audiencepages.Ways{Channels: h.Channels.Set(), VerifiedOnly: h.VerifiedOnly}}
	switch u, err := h.Users.User(r.Context(), id); {
	case err == nil:
		p.User, p.Known, p.Masked = u, true, !revealed && !shell.Actor(r).SeesContacts()
		if p.Suppression, err = h.suppressionOf(r, u); err != nil {
			return err
		}
		if p.Household, err = h.People.HouseholdSize(r.Context(), shell.Actor(r), u); err != nil {
			return err
		}
		if p.Masked {
			p.User = u.Masked()
		}
	case !errors.Is(err, user.ErrNotFound):
		return err
	}
	if shell.Partial(r) {
		if err := h.fillHistory(r, id, &p.History); err != nil {
			return err
		}
		return h.Show(w, r, http.StatusOK, p.Lines())
	}
	if p.Erasure, err = h.People.Erasure(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	all, err := h.Reminders.Reservations(r.Context(), id, max(0, before), dueReservations)
	if err != nil {
		return err
	}
	// Staff who are limited to shops see only data of these shops.
	hidden := func(shop int64) bool { return !shell.Actor(r).Can(staff.View, shop) }
	unseen := func(v reminder.View) bool { return hidden(v.ShopNumber) }
	if p.Past = before > 0; !p.Past {
		p.Due = audiencepages.FirstDue(slices.DeleteFunc(slices.Clone(all), unseen))
	}
	if len(all) > userReservations {
		all = all[:userReservations]
		p.Next = shell.WithQuery(r, "before", strconv.FormatInt(all[userReservations-1].TemplateID, 10))
	}
	if p.Inbox, err = h.Inbox.Page(r.Context(), id, time.Time{}, inboxPreview); err != nil {
		return err
	}
	if p.Coupons, err = h.Coupons.List(r.Context(), shell.Actor(r), coupon.Query{UserID: id, Limit: userCoupons + 1}); err != nil {
		return err
	}
	if len(p.Coupons) > userCoupons {
		p.Coupons, p.MoreCoupons = p.Coupons[:userCoupons], true
	}
	if p.Orders, err = h.Carts.OrdersOf(r.Context(), id, shell.Actor(r).Shops, userOrders); err != nil {
		return err
	}
	if p.Received, err = h.Letters.To(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	if p.Worth, err = h.Timeline.Worth(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	if err := h.fillHistory(r, id, &p.History); err != nil {
		return err
	}
	p.Reservations = slices.DeleteFunc(all, unseen)
	p.Inbox.Items = slices.DeleteFunc(p.Inbox.Items, func(it inbox.Message) bool { return hidden(it.ShopNumber) })
	if len(shell.Actor(r).Shops) > 0 {
		p.Inbox.Unread = 0
		for _, it := range p.Inbox.Items {
			if !it.Read {
				p.Inbox.Unread++
			}
		}
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// exportUsers sends all users that the search finds. It needs the permission to manage users and is
// recorded, because contacts leave the system.
func (h *handlers) exportUsers(w http.ResponseWriter, r *http.Request) error {
	text := userSearch(r)
	if text == "" {
		shell.Redirect(w, r, "/users")
		return nil
	}
	if err := h.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "user.export", ObjectKind: "user", After: map[string]string{"search": text}}); err != nil {
		return err
	}
	return h.users(r).Send(h.Shell, w, r)
}

// optedOut lists the channels that a user has opted out of.
func optedOut(u user.User) (names string) {
	for _, ch := range delivery.AllChannels() {
		if u.OptOuts&(1<<ch) != 0 {
			names += " " + ch.String()
		}
	}
	return names
}
