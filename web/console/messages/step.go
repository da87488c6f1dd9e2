package messages

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// A Step is the step about messages in the form of a drop: the messages as users read them, made
// from the form as typed so far, and one reminder text of the drop's own for all channels.
type Step struct{ h *handlers }

// NewStep returns the step.
func NewStep(d Deps) Step { return Step{&handlers{Deps: d}} }

// ownText is the text that is typed in the step.
type ownText struct{ language, title, text string }

func typedOwn(r *http.Request) (o ownText, own bool) {
	line := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
	}
	return ownText{line("message_language"), line("message_title"), line("message_text")}, r.PostFormValue("message_own") == "own"
}

// over returns the text as a message of the channel: a mail is made of blocks, and an SMS or a
// webhook gets the claim address.
func (o ownText) over(c message.Channel) message.Text {
	t := message.Text{Title: o.title, Body: o.text}
	switch c {
	case message.SMS:
		t.Title = ""
		fallthrough
	case message.Webhook:
		if !strings.Contains(o.text, "{{link}}") {
			t.Body += "[[ {{link}}]]"
		}
	case message.Email:
		built, _ := message.Default(message.Key{Kind: message.Reminder, Channel: c, Language: message.BuiltInLanguage(o.language)})
		t.Body, t.Blocks = "", []message.Block{{Type: message.Heading, Text: o.title}, {Type: message.Words, Text: o.text}}
		for _, b := range built.Blocks {
			if b.Type != message.Heading && b.Type != message.Words {
				t.Blocks = append(t.Blocks, b)
			}
		}
	}
	return t
}

func reminder(c message.Channel, tag string) message.Key {
	return message.Key{Kind: message.Reminder, Channel: c, Language: tag}
}

// check returns the errors of the text, by the step's fields.
func (o ownText) check() (list []fault.Field) {
	tag, ok := message.Canonical(o.language)
	if !ok {
		return []fault.Field{{Name: "message_language", Key: "rule.locale", Message: "must be a language tag such as en or zh-CN"}}
	}
	fields := map[string]string{"title": "message_title", "body": "message_text", "block.1": "message_title", "block.2": "message_text"}
	o.language = tag
	for _, c := range message.Channels() {
		var broken *fault.Fields
		if !errors.As(o.over(c).Check(reminder(c, tag)), &broken) {
			continue
		}
		for _, f := range broken.List {
			if f.Name = fields[f.Name]; f.Name == "" {
				f.Name = "message_text"
			}
			if !slices.ContainsFunc(list, func(g fault.Field) bool { return g.Name == f.Name }) {
				list = append(list, f)
			}
		}
	}
	return list
}

// Check returns the errors of the drop's own text, if there is a typed text. A text that shows a
// link is an error if the drop, as typed so far, has no claim address.
func (s Step) Check(r *http.Request, t template.Template) []fault.Field {
	o, own := typedOwn(r)
	if !own {
		return nil
	}
	list := o.check()
	if t.ShopNumber != 0 && facts(t).Link == "" {
		for name, text := range map[string]string{"message_title": o.title, "message_text": o.text} {
			if message.NeedsLink(text, message.Reminder) {
				list = append(list, fault.Field{Name: name, Key: "rule.empty_link", Message: "contains {{link}}, and the drop has no claim address"})
			}
		}
	}
	return list
}

// facts returns the facts of messages about the drop as typed so far.
func facts(t template.Template) message.Facts {
	f := message.Facts{Kind: message.Reminder, Drop: t.Name, Description: t.Description, Shop: t.ShopName, Worth: t.Worth(), OpensAt: t.OpensAt,
		Minutes: message.SampleMinutes, Days: message.SampleDays}
	if f.Worth.Percent == 0 && f.Worth.Amount == 0 {
		f.Worth = message.Worth{}
	}
	f.Link = (delivery.Subject{Kind: message.Reminder, ClaimURL: t.ClaimAddress()}).Link()
	return f
}

// pageOf returns the address of the page for the drop's texts, or for the texts of its shop if the
// drop is not stored yet.
func pageOf(t template.Template) string {
	if t.ID != 0 {
		return shell.TemplateURL(t.ID) + "/message"
	}
	return "/shops/" + strconv.FormatInt(t.ShopNumber, 10) + "/message"
}

// Of returns the step for the drop as typed so far. Without a shop it has no content yet.
func (s Step) Of(r *http.Request, t template.Template) (p pageparts.MessageStep, err error) {
	var o ownText
	o, p.Own = typedOwn(r)
	p.Language, p.Title, p.Text = o.language, o.title, o.text
	if t.ShopNumber == 0 || shell.Actor(r).May(staff.View, t.ShopNumber) != nil {
		return p, nil
	}
	book, err := s.h.Messages.Book(r.Context(), shell.Actor(r), message.Place{Shop: t.ShopNumber, Template: t.ID})
	if err != nil {
		return p, err
	}
	shown := p.Language // of the previews
	if _, ok := message.Canonical(shown); !ok || !p.Own {
		if shown = book.Settings().Language; shown == "" {
			shown = message.BuiltInLanguage(ui.From(r.Context()).Locale.Tag)
		}
	}
	if p.Shown = shown; p.Language == "" {
		p.Language = shown
	}
	if slices.ContainsFunc(message.Channels(), func(c message.Channel) bool {
		return book.Find(message.Reminder, c, shown).Level == message.OfDrop
	}) {
		p.Page = pageOf(t)
	}
	a := about{place: message.Place{Shop: t.ShopNumber, Template: t.ID}, facts: facts(t), url: pageOf(t), zone: t.Zone()}
	to, err := s.h.readerOf(r, a, "")
	if err != nil {
		return p, err
	}
	p.Previews.Reader = to.Name
	for _, c := range message.Channels() {
		p.Previews.List = append(p.Previews.List, s.h.preview(r, a, book, c, s.draft(r, a, book, c, shown), to))
	}
	own, err := s.h.own(r)
	if err != nil {
		return p, err
	}
	for _, c := range message.Channels() {
		if own.Reaches(c) {
			p.Over = append(p.Over, c)
		}
	}
	return p, nil
}

// draft returns the reminder over the channel: the typed own text, otherwise the stored text that
// applies.
func (s Step) draft(r *http.Request, a about, book *message.Book, c message.Channel, tag string) message.Draft {
	f := s.h.factsFor(a, c, message.Reminder, 0)
	d := message.Draft{Kind: message.Reminder, About: &f}
	if o, own := typedOwn(r); own && len(o.check()) == 0 {
		d.Language, _ = message.Canonical(o.language)
		d.Text = o.over(c)
		return d
	}
	found := book.Find(message.Reminder, c, tag)
	d.Language, d.Text = found.Key.Language, found.Text
	return d
}

// Send sends the reminder over the channel, as it reads now, to the member.
func (s Step) Send(r *http.Request, t template.Template, over string, p *pageparts.MessageStep) error {
	c, err := delivery.ParseChannel(over)
	if err != nil {
		return err
	}
	book, err := s.h.Messages.Book(r.Context(), shell.Actor(r), message.Place{Shop: t.ShopNumber, Template: t.ID})
	if err != nil {
		return err
	}
	own, err := s.h.own(r)
	if err != nil {
		return err
	}
	d := s.draft(r, about{place: message.Place{Shop: t.ShopNumber, Template: t.ID}, facts: facts(t)}, book, message.Channel(over), p.Shown)
	d.About.Link = facts(t).Link // a test holds the address itself
	p.Try, err = s.h.send(r, t.ShopNumber, testmessage.TestWish{Channel: c, Recipient: own.Address(message.Channel(over)), TemplateID: t.ID}, d)
	return err
}

// Save stores the typed text as the drop's own for every channel. Repeating it stores nothing more.
// A member who has written the text counts as having looked at it.
func (s Step) Save(r *http.Request, t template.Template) error {
	o, own := typedOwn(r)
	if !own {
		return nil
	}
	ctx, by, place := r.Context(), shell.Actor(r), message.Place{Shop: t.ShopNumber, Template: t.ID}
	tag, _ := message.Canonical(o.language) // was checked
	o.language = tag
	for _, c := range message.Channels() {
		if err := s.save(ctx, by, place, reminder(c, tag), o.over(c)); err != nil {
			return err
		}
	}
	return s.h.Messages.Look(ctx, by, place)
}

func (s Step) save(ctx context.Context, by staff.Actor, place message.Place, k message.Key, text message.Text) error {
	newest, err := s.h.Messages.History(ctx, by, place, k, 1)
	if err != nil {
		return err
	}
	var basedOn int64
	if len(newest) > 0 {
		basedOn = newest[0].ID
		if newest[0].Text != nil && reflect.DeepEqual(*newest[0].Text, text) {
			return nil
		}
	}
	_, err = s.h.Messages.Save(ctx, by, place, k, &text, basedOn)
	return err
}
