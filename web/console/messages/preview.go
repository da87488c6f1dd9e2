package messages

import (
	"io"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// historyLength is how many versions of a text are shown.
const historyLength = 20

// reader is for whom previews are shown.
type reader struct {
	message.Reader
	id user.ID // 0 = a made-up one
}

// number is the user's number, empty for a made-up person.
func (r reader) number() string {
	if r.id == 0 {
		return ""
	}
	return r.id.String()
}

// readerOf returns the user with the typed number, or a made-up person in the shop's zone. Every
// preview has a name for the greeting.
func (h *handlers) readerOf(r *http.Request, a about, typed string) (reader, error) {
	sample := reader{Reader: message.Reader{Name: shell.Say(r, "message.sample"), Zone: a.zone}}
	id := h.NamedUser(r, typed, &fault.Fields{}) // the form says what is wrong with it
	if id == 0 {
		return sample, nil
	}
	u, err := h.Users.Preferences(r.Context(), id)
	if err != nil {
		return sample, err
	}
	return reader{message.Reader{Name: u.Name, Locale: u.Locale, Zone: u.Zone()}, id}, nil
}

// previews returns the typed texts of all channels as the reader gets them.
func (h *handlers) previews(r *http.Request, a about, book *message.Book, e messagepages.Editor, to reader) pageparts.Previews {
	p := pageparts.Previews{Reader: to.Name}
	if to.id != 0 {
		p.Reader = strings.TrimSpace(to.Name + " #" + to.id.String())
		if got := book.Find(e.Kind, message.Email, to.Locale).Key.Language; got != e.Language {
			p.Other = pageparts.LanguageName(r.Context(), got)
		}
	}
	for _, t := range e.Texts {
		p.List = append(p.List, h.preview(r, a, book, t.Channel, message.Draft{Kind: e.Kind, Language: e.Language, Text: t.Text}, to))
	}
	return p
}

// factsFor returns the facts of a message over the channel. If the channel's messages have tracked
// links, the link is as long as the reader's own.
func (h *handlers) factsFor(a about, c message.Channel, k message.Kind, to user.ID) message.Facts {
	f := a.facts
	if f.Link == "" && c == message.Email && k != message.Cancelled { // the page of the drop
		f.Link = h.LinkExample(a.place.Template, to)
	}
	return h.ownLink(f, a.place.Template, c, k, to)
}

func (h *handlers) ownLink(f message.Facts, template int64, c message.Channel, k message.Kind, to user.ID) message.Facts {
	over, err := delivery.ParseChannel(string(c))
	if f.Link == "" || err != nil || !over.Tracks() || k != message.Reminder && k != message.Correction {
		return f
	}
	if example := h.LinkExample(template, to); example != "" {
		f.Link = example
	}
	return f
}

func (h *handlers) preview(r *http.Request, a about, book *message.Book, c message.Channel, d message.Draft, to reader) pageparts.Preview {
	p := pageparts.Preview{Channel: c, Content: d.Render(book, h.factsFor(a, c, d.Kind, to.id), c, to.Reader)}
	switch c {
	case message.Email:
		p.Content.HTML = ""
		if p.Page = shell.MailPage(a.url, d, to.number(), time.Time{}); p.Page == "" {
			p.Note = shell.Say(r, "message.mail.long")
		}
	case message.SMS:
		p.Size = message.SizeOf(p.Content.Text)
		p.Price, p.Currency = book.Settings().PartPrice, book.Settings().Currency
	}
	return p
}

// mailPolicy lets a mail show its own styles and images, and run nothing: the page can do no more
// in the console than in a mail program.
const mailPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"

// mail renders the page of a mail for its frame, as shown on a light or a dark screen.
func (h *handlers) mail(w http.ResponseWriter, r *http.Request, a about) error {
	d, ends, err := shell.MailDraft(r)
	if err != nil {
		return err
	}
	a.facts.EndsAt = ends
	book, err := h.Messages.Book(r.Context(), shell.Actor(r), a.place)
	if err != nil {
		return err
	}
	to, err := h.readerOf(r, a, r.FormValue("user"))
	if err != nil {
		return err
	}
	scheme := "@media not all"
	if r.FormValue("dark") != "" {
		scheme = "@media all"
	}
	page := strings.Replace(d.Render(book, h.factsFor(a, message.Email, d.Kind, to.id), message.Email, to.Reader).HTML, "@media (prefers-color-scheme: dark)", scheme, 1)
	w.Header().Set("Content-Security-Policy", mailPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page) // an error means that the client has gone
	return nil
}
