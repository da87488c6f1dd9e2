// Package search answers the console's search: shops, drops, campaigns, users, coupons, orders and
// redeem codes by name or number, and commands, including the commands of one drop or campaign.
// Every kind is found by the use case behind its own page, so that the search shows no more than
// the pages do.
package search

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/redeemcode"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	searchpages "dropbell/views/pages/search"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// shown is how many hits of a kind are shown.
	shown = 5
	// commandsShown is how many commands are shown before anything is typed.
	commandsShown = 6
	// mostRecent is how many objects the browser may request by number.
	mostRecent = 6
	// shortestName is from how many characters on people are searched by name.
	shortestName = 2
	// patience bounds the search for one kind. Each kind is read by an index within milliseconds; a
	// slow query for one kind must not delay the other kinds.
	patience = 1500 * time.Millisecond
)

// People finds users.
type People interface {
	// Suggest returns up to limit users of each match: by number, by the beginning of the name, and
	// by contact. With contacts, the beginning of a contact matches; otherwise only a complete
	// contact.
	Suggest(ctx context.Context, text string, contacts bool, limit int) ([]user.User, error)
	// Names returns the names of the users with these ids; users without a name are left out.
	Names(ctx context.Context, ids []user.ID) (map[user.ID]string, error)
}

// Deps are the dependencies of the search.
type Deps struct {
	Templates *template.Service
	Campaigns *campaign.Service
	Users     People
	Coupons   *coupon.Admin
	Codes     *redeemcode.Service
	// Segments names segments and lists.
	Segments *segment.Service
	// Others are the dependencies of the further databases in which the search looks too.
	Others []Deps
}

type handlers struct {
	*shell.Shell
	Deps
	// cells are the dependencies for all databases, these first.
	cells []Deps
}

// Routes returns the routes of the search.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d, cells: append([]Deps{d}, d.Others...)}
	sh.NamesFrom(h.named)
	sh.PeopleFrom(d.Users.Names)
	return []shell.Route{
		shell.Get("/search", staff.View, h.search),
		shell.Get("/search/choices/{kind}", staff.View, h.offerNames),
		// The typed text may be an address or a code, so it is sent in a body: logs and browser
		// histories keep addresses of pages.
		shell.Report(shell.Post("/search", staff.View, h.search)),
	}
}

func (h *handlers) search(w http.ResponseWriter, r *http.Request) error {
	text := strings.TrimSpace(r.PostFormValue("q"))
	p := searchpages.Results{Search: text, Options: shell.Partial(r) && r.PostFormValue("page") == ""}
	var err error
	if text == "" {
		p.Groups, err = h.start(r)
	} else if utf8.RuneCountInString(text) <= ui.MaxSearch {
		p.Groups, err = h.find(r, text)
	}
	if err != nil {
		return err
	}
	return h.Either(w, r, p.Part(), p.Page())
}

// start returns the groups that are shown before anything is typed.
func (h *handlers) start(r *http.Request) ([]searchpages.Group, error) {
	recent, err := h.recent(r)
	commands := hitsOf(ui.Commands(r.Context(), ""), searchpages.CommandHit)
	if shell.Partial(r) {
		commands = commands[:min(len(commands), commandsShown)]
	}
	if err != nil {
		return nil, err
	}
	actions, err := h.actions(r, "")
	return []searchpages.Group{{ID: "actions", Hits: actions}, {ID: "recent", Hits: recent}, {ID: "commands", Hits: commands}}, err
}

// A finder finds one kind of thing.
type finder struct {
	id   string
	find func(*http.Request, string) ([]searchpages.Hit, error)
	note func(*http.Request, string) string
}

func (h *handlers) finders() []finder {
	return []finder{{"actions", h.actions, nil}, {"shops", h.findShops, nil}, {"drops", h.findDrops, nil}, {"campaigns", h.findCampaigns, nil},
		{"people", h.findPeople, h.aboutPeople}, {"coupons", h.findCoupons, nil}}
}

// find searches every kind. A kind whose search takes too long says so; the other kinds are shown.
func (h *handlers) find(r *http.Request, text string) ([]searchpages.Group, error) {
	groups := []searchpages.Group{{ID: "commands", Hits: hitsOf(ui.Commands(r.Context(), text), searchpages.CommandHit)}}
	for _, f := range h.finders() {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		g := searchpages.Group{ID: f.id}
		hits, err := f.find(r.WithContext(ctx), text)
		slow := ctx.Err() != nil && r.Context().Err() == nil
		cancel()
		switch {
		case slow || fault.KeyOf(err) == "fault.database_slow":
			g.Note = shell.Say(r, "find.slow")
		case err != nil:
			return nil, err
		default:
			g.Hits = hits
			if f.note != nil {
				g.Note = f.note(r, text)
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func hitsOf[T any](list []T, hit func(T) searchpages.Hit) []searchpages.Hit {
	hits := make([]searchpages.Hit, len(list))
	for i, v := range list {
		hits[i] = hit(v)
	}
	return hits
}

// someOf returns the first hits, and a last hit that leads to the complete list.
func someOf[T any](r *http.Request, list []T, hit func(T) searchpages.Hit, all, text string) []searchpages.Hit {
	hits := hitsOf(list[:min(len(list), shown)], hit)
	if len(list) > shown {
		hits = append(hits, searchpages.Hit{Icon: "list-details", Title: shell.Say(r, "find.all"), URL: all + "?" + url.Values{"q": {text}}.Encode()})
	}
	return hits
}

func (h *handlers) findShops(r *http.Request, text string) ([]searchpages.Hit, error) {
	all, err := h.AllShopsOf(r)
	list := slices.DeleteFunc(all, func(s template.Shop) bool {
		return !strings.Contains(strings.ToLower(s.Name), strings.ToLower(text)) && s.Number != numberIn(text)
	})
	return someOf(r, list, func(s template.Shop) searchpages.Hit {
		return searchpages.ShopHit(s, shell.Actor(r).Can(staff.ManageTemplates, s.Number))
	}, "/shops", text), err
}

func (h *handlers) findDrops(r *http.Request, text string) ([]searchpages.Hit, error) {
	list, err := h.drops(r, template.Query{Search: numberOr(text), Descending: true, Limit: shown + 1})
	n := numberIn(text)
	slices.SortStableFunc(list, func(a, b template.Template) int { return exactFirst(a.ID == n, b.ID == n) })
	return someOf(r, list, func(t template.Template) searchpages.Hit { return searchpages.DropHit(r.Context(), t) }, "/templates", text), err
}

func (h *handlers) findCampaigns(r *http.Request, text string) ([]searchpages.Hit, error) {
	list, err := h.campaigns(r, campaign.Query{Search: numberOr(text), Limit: shown + 1})
	n := numberIn(text)
	slices.SortStableFunc(list, func(a, b campaign.Status) int { return exactFirst(a.ID == n, b.ID == n) })
	return someOf(r, list, func(s campaign.Status) searchpages.Hit { return searchpages.CampaignHit(r.Context(), s.Campaign) }, "/campaigns", text), err
}

func exactFirst(a, b bool) int {
	return cmp.Compare(map[bool]int{true: 0, false: 1}[a], map[bool]int{true: 0, false: 1}[b])
}

// people returns users whose name, address or number begins with the text. Staff who may not see
// contacts get masked users, and find an address only as a whole.
func (h *handlers) people(r *http.Request, text string, limit int) ([]user.User, error) {
	contacts := shell.Actor(r).SeesContacts()
	list, err := h.Users.Suggest(r.Context(), text, contacts, limit)
	for i, u := range list {
		if !contacts {
			list[i] = u.Masked()
		}
	}
	return list, err
}

func (h *handlers) findPeople(r *http.Request, text string) ([]searchpages.Hit, error) {
	id, numbered := user.ParseID(digits(text))
	if numbered != nil && utf8.RuneCountInString(text) < shortestName {
		return nil, nil
	}
	if numbered == nil {
		text = id.String()
	}
	list, err := h.people(r, text, shown+1)
	hits := someOf(r, list, func(u user.User) searchpages.Hit { return searchpages.PersonHit(r.Context(), u) }, "/users", text)
	if numbered == nil && err == nil && !slices.ContainsFunc(list, func(u user.User) bool { return u.ID == id }) {
		hits = append(hits, searchpages.StrangerHit(r.Context(), id))
	}
	return hits, err
}

// aboutPeople explains how users are found, and which members see their contacts.
func (h *handlers) aboutPeople(r *http.Request, text string) string {
	_, numbered := user.ParseID(digits(text))
	switch {
	case !shell.Actor(r).SeesContacts():
		return shell.Say(r, "find.masked")
	case numbered != nil && utf8.RuneCountInString(text) < shortestName:
		return shell.Say(r, "find.people_short")
	}
	return ""
}

// findCoupons finds coupons by number, the coupons of an order, and the coupon of a redeem code.
func (h *handlers) findCoupons(r *http.Request, text string) ([]searchpages.Hit, error) {
	ctx := r.Context()
	var hits []searchpages.Hit
	if n := numberIn(text); n != 0 {
		list, err := h.coupons(r, coupon.Query{ID: n, Limit: 1})
		if err != nil {
			return nil, err
		}
		hits = hitsOf(list, func(l coupon.Listed) searchpages.Hit { return searchpages.CouponHit(ctx, l) })
	}
	if coupon.CheckOrderID(text) == nil {
		list, err := h.coupons(r, coupon.Query{OrderID: text, Limit: shown + 1})
		if err != nil {
			return nil, err
		}
		hits = append(hits, hitsOf(list[:min(len(list), shown)], func(l coupon.Listed) searchpages.Hit { return searchpages.OrderHit(ctx, text, l) })...)
		if len(list) > shown {
			hits = append(hits, searchpages.Hit{Icon: "list-details", Title: shell.Say(r, "find.all"),
				URL: "/coupons?" + url.Values{"by": {"order"}, "q": {text}}.Encode()})
		}
	}
	codes, err := shell.Across(h.Shell, r, h.cells, func(d Deps, r *http.Request) (redeemcode.Finding, error) {
		return d.Codes.Check(r.Context(), shell.Actor(r), text)
	})
	for _, f := range codes {
		if err == nil && f != nil && f.Batch.ID != 0 {
			hits = append(hits, searchpages.CodeHit(ctx, *f))
		}
	}
	return hits, err
}

// digits removes the "#" before a number as pages write it, "#12".
func digits(text string) string { return strings.TrimPrefix(shell.Narrow(text), "#") }

// numberIn returns the positive number that the text is, 0 for any other text.
func numberIn(text string) int64 {
	n, err := strconv.ParseInt(digits(text), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// numberOr is the number that the text is, as digits, or the text.
func numberOr(text string) string {
	if n := numberIn(text); n != 0 {
		return strconv.FormatInt(n, 10)
	}
	return text
}

// recent returns the objects whose addresses the browser kept, as the viewer may see them now. The
// browser keeps numbers only.
func (h *handlers) recent(r *http.Request) (hits []searchpages.Hit, err error) {
	for place := range strings.SplitSeq(r.PostFormValue("recent"), " ") {
		kind, digits, _ := strings.Cut(place, "/")
		id, bad := strconv.ParseInt(digits, 10, 64)
		if bad != nil || id <= 0 || len(hits) == mostRecent {
			continue
		}
		hit, err := h.open(r, kind, id)
		if unseen(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hit.URL != "" {
			hits = append(hits, hit)
		}
	}
	return hits, nil
}

// open loads one object by kind and number; for an unknown kind it returns the zero hit.
func (h *handlers) open(r *http.Request, kind string, id int64) (searchpages.Hit, error) {
	ctx := r.Context()
	switch kind {
	case "templates":
		t, err := h.drop(r, id)
		return searchpages.DropHit(ctx, t), err
	case "campaigns":
		s, err := h.campaign(r, id)
		return searchpages.CampaignHit(ctx, s.Campaign), err
	case "coupons":
		l, err := h.coupon(r, id)
		return searchpages.CouponHit(ctx, l), err
	case "users":
		list, err := h.people(r, strconv.FormatInt(id, 10), 1)
		if i := slices.IndexFunc(list, func(u user.User) bool { return u.ID == user.ID(id) }); err == nil && i >= 0 {
			return searchpages.PersonHit(ctx, list[i]), nil
		}
		return searchpages.StrangerHit(ctx, user.ID(id)), err
	}
	return searchpages.Hit{}, nil
}
