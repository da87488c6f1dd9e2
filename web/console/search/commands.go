package search

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/template"
	pageparts "dropbell/views/pages/parts"
	searchpages "dropbell/views/pages/search"
	"dropbell/web/console/shell"
)

// namedShown is how many drops and how many campaigns commands are offered for by name.
const namedShown = 3

// A thing is a drop or a campaign, with the commands that the viewer may use on it.
type thing struct {
	name     string
	commands []pageparts.Command
}

// told returns the commands whose label fits accepts, in the viewer's language or in English.
func (t thing) told(r *http.Request, fits func(label string) bool) (hits []searchpages.Hit) {
	english := shell.Frame(r).Languages[0]
	for _, c := range t.commands {
		if label := shell.Say(r, c.Label); fits(label) || fits(english.T(c.Label)) {
			hits = append(hits, searchpages.Hit{Icon: c.Icon, URL: c.URL, Title: label, Detail: t.name})
		}
	}
	return hits
}

func dropThing(r *http.Request, t template.Template) thing {
	return thing{t.Name, pageparts.DropCommands(r.Context(), t)}
}

func campaignThing(r *http.Request, c campaign.Campaign) thing {
	return thing{c.Name, pageparts.CampaignCommands(r.Context(), c)}
}

// actions returns the commands of one drop or campaign that the text means. The text is a command
// on the page of the drop, the drop's name, or both, "pause moon cake". Without a text the result
// is all commands of the page from which the search was opened.
func (h *handlers) actions(r *http.Request, text string) ([]searchpages.Hit, error) {
	here, err := h.here(r)
	if err != nil {
		return nil, err
	}
	hits := here.told(r, func(label string) bool { return strings.Contains(strings.ToLower(label), strings.ToLower(text)) })
	if text == "" {
		return hits, nil
	}
	things, alone, err := h.called(r, text)
	if err != nil {
		return nil, err
	}
	if alone {
		hits = append(hits, things[0].told(r, func(string) bool { return true })...)
	}
	for _, name := range names(r, text) {
		things, _, err := h.called(r, name.rest)
		if err != nil {
			return nil, err
		}
		for _, t := range things {
			hits = append(hits, t.told(r, func(label string) bool { return strings.EqualFold(label, name.command) })...)
		}
	}
	return once(hits), nil
}

// here returns the drop or campaign whose page the viewer sees; on other pages it returns the zero
// thing.
func (h *handlers) here(r *http.Request) (t thing, err error) {
	address := r.Header.Get("HX-Current-URL")
	if address == "" {
		address = r.Referer() // the page from which a browser without scripts came
	}
	page, err := url.Parse(address)
	if err != nil {
		return thing{}, nil
	}
	place := strings.Split(strings.Trim(page.Path, "/"), "/")
	if len(place) < 2 {
		return thing{}, nil
	}
	id, err := strconv.ParseInt(place[1], 10, 64)
	if err != nil || id <= 0 {
		return thing{}, nil
	}
	switch place[0] {
	case "templates":
		var drop template.Template
		if drop, err = h.drop(r, id); err == nil {
			t = dropThing(r, drop)
		}
	case "campaigns":
		var status campaign.Status
		if status, err = h.campaign(r, id); err == nil {
			t = campaignThing(r, status.Campaign)
		}
	default:
		return thing{}, nil
	}
	if unseen(err) {
		return thing{}, nil
	}
	return t, err
}

// called returns the drops and campaigns with the name or number. alone reports that there is
// exactly one.
func (h *handlers) called(r *http.Request, text string) (things []thing, alone bool, err error) {
	drops, err := h.drops(r, template.Query{Search: numberOr(text), Descending: true, Limit: namedShown})
	if err != nil {
		return nil, false, err
	}
	campaigns, err := h.campaigns(r, campaign.Query{Search: numberOr(text), Limit: namedShown})
	if err != nil {
		return nil, false, err
	}
	for _, d := range drops {
		things = append(things, dropThing(r, d))
	}
	for _, c := range campaigns {
		things = append(things, campaignThing(r, c.Campaign))
	}
	return things, len(things) == 1, nil
}

// A naming is a text read as the label of a command and the name of a thing.
type naming struct{ command, rest string }

// names reads the text as a command before or after a name. Chinese has no space between command
// and name.
func names(r *http.Request, text string) (list []naming) {
	lower := strings.ToLower(text)
	for _, label := range labels(r) {
		command := strings.ToLower(label)
		for _, cut := range []func(string, string) (string, bool){strings.CutPrefix, strings.CutSuffix} {
			rest, ok := cut(lower, command)
			spaced := rest != strings.TrimSpace(rest) || []rune(command)[0] > 0x2e80
			if rest = strings.TrimSpace(rest); ok && spaced && rest != "" {
				list = append(list, naming{command, rest})
			}
		}
	}
	return list
}

// labels returns the labels of all commands of drops and campaigns, in the viewer's language and in
// English, each once.
func labels(r *http.Request) (list []string) {
	known := map[string]bool{}
	for _, l := range []interface{ T(string, ...any) string }{shell.Frame(r).Locale, shell.Frame(r).Languages[0]} {
		for _, key := range pageparts.CommandLabels() {
			if label := l.T(key); !known[label] {
				known[label] = true
				list = append(list, label)
			}
		}
	}
	return list
}

// once removes hits with the same address as an earlier hit.
func once(hits []searchpages.Hit) (list []searchpages.Hit) {
	known := map[string]bool{}
	for _, hit := range hits {
		if !known[hit.URL] {
			known[hit.URL] = true
			list = append(list, hit)
		}
	}
	return list
}
