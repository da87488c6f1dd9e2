package messages

import (
	"net/http"
	"slices"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// languages completes the page by its tabs: the languages that have a text, the chosen language, and
// the languages of readers that have none.
func (h *handlers) languages(r *http.Request, a about, book *message.Book, p *messagepages.Editor) error {
	written := map[string]int{} // by language: for how many channels
	tags := []string{}
	for _, c := range message.Channels() {
		for _, tag := range book.Languages(p.Kind, c) {
			if written[tag]++; !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags)
	readers, known, err := h.readers(r, a, tags, p)
	if err != nil {
		return err
	}
	if !slices.Contains(tags, p.Language) {
		tags = append(tags, p.Language)
		p.Missing = slices.DeleteFunc(p.Missing, func(m message.Missing) bool { return m.Language == p.Language })
	}
	others := book.Find(p.Kind, message.Email, "").Key.Language // what readers of other languages get
	for _, tag := range tags {
		t := pageparts.LanguageTab{Tag: tag, URL: p.AddressOf(tag), Current: tag == p.Language}
		if n, all := written[tag], len(message.Channels()); n < all {
			t.Note = shell.Say(r, "language.partly", n, all)
		}
		if n := readers.Of[tag]; known && written[tag] > 0 {
			if tag == others {
				n += readers.Other
			}
			t.Readers = &n
		}
		for _, m := range readers.Missing {
			if m.Language == tag {
				t.Note = pageparts.MissingText(r.Context(), m)
			}
		}
		p.Tabs = append(p.Tabs, t)
	}
	return nil
}

// readers counts the readers of the texts by language: the customers who have reserved a reminder of
// the drop, and all customers for a shop and for a drop that nobody has reserved. It is not known for
// members who may not see audiences, and where it takes too long.
func (h *handlers) readers(r *http.Request, a about, tags []string, p *messagepages.Editor) (message.Readers, bool, error) {
	audience, words := campaign.Audience{Kind: campaign.Everybody}, "language.of_all"
	locales, err := map[string]int64{}, error(nil)
	if a.place.Template != 0 {
		words = "language.of_drop"
		locales, err = h.Readers.Locales(r.Context(), shell.Actor(r), campaign.Audience{Kind: campaign.Reserved, ID: a.place.Template})
	}
	if err == nil && len(locales) == 0 {
		words = "language.of_all"
		locales, err = h.Readers.Locales(r.Context(), shell.Actor(r), audience)
	}
	if fault.KindOf(err) != 0 {
		return message.Readers{}, false, nil
	}
	if err != nil {
		return message.Readers{}, false, err
	}
	readers := message.ReadersOf(tags, locales)
	p.Missing, p.Counted = slices.Clone(readers.Missing), shell.Frame(r).Locale.N(words, readers.Total())
	return readers, true, nil
}
