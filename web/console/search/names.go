package search

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"dropbell/domain/campaign"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// choicesShown is how many names a field offers.
const choicesShown = 10

// named finds objects by name, as the viewer may see them; see [shell.Names].
func (h *handlers) named(r *http.Request, kind shell.NameKind, text string, limit int) ([]shell.Name, error) {
	list, err := h.choices(r, kind, text, limit)
	names := make([]shell.Name, len(list))
	for i, c := range list {
		names[i] = shell.Name{ID: c.ID, Name: c.Name}
	}
	return names, err
}

// choices are the things of the kind that the text may mean.
func (h *handlers) choices(r *http.Request, kind shell.NameKind, text string, limit int) (list []pageparts.NameChoice, err error) {
	if utf8.RuneCountInString(text) > ui.MaxSearch {
		return nil, nil
	}
	add := func(id int64, name string, hint ...string) {
		c := pageparts.NameChoice{ID: id, Name: name}
		for _, s := range hint {
			if s != "" {
				c.Hint += " · " + s
			}
		}
		list = append(list, c)
	}
	switch kind {
	case shell.Drops:
		all, err := h.drops(r, template.Query{Search: text, Descending: true, Limit: limit})
		for _, t := range all {
			add(t.ID, t.Name, t.ShopName, shell.Frame(r).Locale.DateTime(t.OpensAt, t.Zone()))
		}
		return list, err
	case shell.Campaigns:
		all, err := h.campaigns(r, campaign.Query{Search: text, Limit: limit})
		for _, s := range all {
			add(s.ID, s.Name, s.ShopName, shell.Say(r, "campaign.state."+string(s.State)))
		}
		return list, err
	case shell.Segments:
		all, err := h.Segments.Segments(r.Context(), shell.Actor(r), segment.Query{Search: text, Limit: limit})
		for _, s := range all {
			add(s.ID, s.Name)
		}
		return list, err
	case shell.People:
		if utf8.RuneCountInString(text) < shortestName {
			return nil, nil
		}
		all, err := h.people(r, text, limit)
		for _, u := range all {
			add(int64(u.ID), u.Name, u.Email, u.Phone)
		}
		return list, err
	}
	return nil, shell.ErrNoPage
}

// chosen returns the number in a text that a field has offered, "" for other text.
func chosen(text string) string {
	if ref := shell.TemplateRef(text); ref != text {
		return ref
	}
	return text
}

// offerNames answers a field with the names that its text may mean.
func (h *handlers) offerNames(w http.ResponseWriter, r *http.Request) error {
	text := chosen(strings.TrimSpace(r.FormValue(r.FormValue("field"))))
	if id, err := user.ParseID(digits(text)); err == nil {
		text = id.String()
	}
	list, err := h.choices(r, shell.NameKind(r.PathValue("kind")), text, choicesShown)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, pageparts.NameChoices(list))
}
