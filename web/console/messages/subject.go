package messages

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/template"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// about is the drop or the shop whose texts a page is about.
type about struct {
	place  message.Place
	facts  message.Facts // of a shop: of a made-up drop
	title  string
	active string
	crumbs []ui.Crumb
	url    string
	zone   *time.Location // the shop's
	tabbed bool           // whether the page of the drop has tabs
}

// of answers with the handler for the place in the address.
func (h *handlers) of(find func(*http.Request) (about, error), then func(http.ResponseWriter, *http.Request, about) error) shell.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, err := find(r)
		if err != nil {
			return err
		}
		return then(w, r, a)
	}
}

func (h *handlers) ofTemplate(r *http.Request) (about, error) {
	t, err := shell.TemplateOf(h.Templates)(r)
	if err != nil {
		return about{}, err
	}
	return about{
		place: message.Place{Shop: t.ShopNumber, Template: t.ID}, zone: t.Zone(), active: "templates",
		tabbed: t.Stored != template.Draft,
		title:  shell.Say(r, "message.title", t.Name), crumbs: shell.TemplateCrumbs(r, t), url: shell.TemplateURL(t.ID) + "/message",
		facts: message.Facts{Drop: t.Name, Description: t.Description, Shop: t.ShopName, Worth: t.Worth(), OpensAt: t.OpensAt, Link: t.ClaimAddress(),
			Minutes: message.SampleMinutes, Days: message.SampleDays, Hours: t.AcceptHours},
	}, nil
}

// ofNone is for campaigns of no shop: the address of a mail's page contains all facts that the mail
// needs.
func (h *handlers) ofNone(*http.Request) (about, error) {
	return about{zone: h.DefaultZone}, nil
}

func (h *handlers) ofShop(r *http.Request) (about, error) {
	number, err := shell.PathID(r)
	if err != nil {
		return about{}, err
	}
	list, err := h.ShopsOf(r)
	i := slices.IndexFunc(list, func(s template.Shop) bool { return s.Number == number })
	if err == nil && i < 0 {
		err = shell.ErrNoPage
	}
	if err != nil {
		return about{}, err
	}
	s := list[i]
	facts := message.SampleFacts("")
	facts.Shop = s.Name
	page := "/shops/" + strconv.FormatInt(s.Number, 10)
	return about{
		place: message.Place{Shop: s.Number}, zone: h.ShopZone(s.Timezone), active: "shops",
		title: shell.Say(r, "message.title", s.Name), url: page + "/message", facts: facts,
		crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.shops"), URL: "/shops"}, {Label: s.Name, URL: page}},
	}, nil
}
