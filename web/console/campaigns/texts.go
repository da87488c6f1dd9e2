package campaigns

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// A sending is the campaign whose messages a page shows.
type sending struct {
	subject delivery.Subject
	channel delivery.Channel
	shop    int64 // 0 = none
	zone    *time.Location
}

// sendingOf returns the sending of a stored campaign.
func (h *handlers) sendingOf(r *http.Request, c campaign.Campaign) (sending, error) {
	subject, err := h.Campaigns.Subject(r.Context(), c)
	return sending{subject, c.Channel, c.Shop, h.ShopZone(c.ShopTimezone)}, err
}

func tagsOf(v delivery.Variant) []string { return slices.Sorted(maps.Keys(v.Texts)) }

// texts returns the messages in every language, made like the messages themselves, for the reader
// that the request names or for a made-up person. If a user or a language is named, the texts that
// this reader does not get are marked.
func (h *handlers) texts(r *http.Request, s sending) (p campaignpages.Texts, err error) {
	e := &fault.Fields{}
	p = campaignpages.Texts{Channel: message.Channel(s.channel.String()), User: strings.TrimSpace(r.FormValue("preview_user")), Language: strings.TrimSpace(r.FormValue("preview_language"))}
	id := user.ID(h.Named(r, shell.People, "preview_user", p.User, e))
	to, err := h.Messages.Reader(r, id, s.zone)
	if err != nil {
		return p, err
	}
	p.Reader, p.Gets = to.Name, id != 0
	if id != 0 {
		p.Reader = strings.TrimSpace(to.Name + " #" + id.String())
	}
	if tag, ok := message.Canonical(p.Language); ok {
		to.Locale, p.Gets = tag, true
	} else if p.Language != "" {
		e.Add("preview_language", "rule.locale", "must be a language tag such as en or zh-CN")
	}
	p.Errors = e.List
	book, err := h.Campaigns.Book(r.Context(), s.subject)
	if err != nil {
		return p, err
	}
	if h.LinkExample != "" {
		s.subject.Track = func(user.ID, int, string) string { return h.LinkExample }
	}
	for i, v := range s.subject.Copy.Variants {
		_, gets := v.For(to.Locale)
		for _, tag := range tagsOf(v) {
			t, reader := campaignpages.CampaignText{Locale: tag, Variant: i, Faults: textFaults(v.Texts[tag]), Other: p.Gets && tag != gets}, to
			if !p.Gets || t.Other {
				reader.Locale = tag
			}
			t.Preview = h.preview(r, book, s, i, v.Texts[tag], cmp.Or(tag, message.BuiltInLanguage(reader.Locale)), reader)
			p.List = append(p.List, t)
		}
	}
	if p.MayTry = ui.May(r.Context(), staff.ManageCampaigns, s.shop); p.MayTry {
		p.Own, err = h.Messages.Own(r)
	}
	return p, err
}

// preview renders one of the texts for the reader.
func (h *handlers) preview(r *http.Request, book *message.Book, s sending, variant int, text delivery.Text, language string, to user.User) pageparts.Preview {
	p := pageparts.Preview{Channel: message.Channel(s.channel.String()), Content: delivery.RenderCopy(book, s.subject, s.channel, variant, to)}
	switch s.channel {
	case delivery.Email:
		facts := s.subject.Facts()
		facts.Link = s.subject.LinkOf(to.ID, variant)
		number := ""
		if to.ID != 0 {
			number = to.ID.String()
		}
		p.Content.HTML = ""
		if p.Page = shell.MailPage(mailsOf(s.subject), draft(text, language, facts), number, time.Time{}); p.Page == "" {
			p.Note = shell.Say(r, "message.mail.long")
		}
	case delivery.SMS:
		p.Size, p.Price, p.Currency = message.SizeOf(p.Content.Text), book.Settings().PartPrice, book.Settings().Currency
	}
	return p
}

func draft(t delivery.Text, language string, facts message.Facts) message.Draft {
	return message.Draft{Kind: message.Campaign, Language: language, Text: message.Text{Title: t.Title, Body: t.Body}, About: &facts}
}

// mailsOf is the address below which mails about the subject are drawn.
func mailsOf(s delivery.Subject) string {
	switch {
	case s.TemplateID != 0:
		return shell.TemplateURL(s.TemplateID) + "/message"
	case s.ShopNumber != "":
		return "/shops/" + s.ShopNumber + "/message"
	}
	return "/campaigns/message"
}

// textFaults returns the errors of variables in a text, by its fields.
func textFaults(t delivery.Text) (list []fault.Field) {
	for _, f := range []struct{ name, text string }{{"title", t.Title}, {"body", t.Body}} {
		if mistake := message.CheckVariables(f.text, message.Campaign); mistake != nil {
			list = append(list, fault.Field{Name: f.name, Key: mistake.Key, Message: mistake.Error()})
		}
	}
	return list
}

// try sends the text that the pressed button names to the member, over the channel of the campaign,
// and sets the result in p.
func (h *handlers) try(r *http.Request, s sending, p *campaignpages.Texts) error {
	number, tag, _ := strings.Cut(r.PostFormValue("send"), ":")
	var text delivery.Text
	i, err := strconv.Atoi(number)
	ok := err == nil && i >= 0 && i < len(s.subject.Copy.Variants)
	if ok {
		text, ok = s.subject.Copy.Variants[i].Texts[tag]
	}
	if !ok { // removed since the page was shown
		p.Try = pageparts.Try{Tone: ui.Warn, Refused: true, Text: shell.Say(r, "campaign.preview.gone")}
		return nil
	}
	language := cmp.Or(tag, message.BuiltInLanguage(ui.From(r.Context()).Locale.Tag))
	if p.Try, err = h.Messages.Send(r, s.shop, s.channel, s.subject.TemplateID, draft(text, language, s.subject.Facts())); err != nil {
		return err
	}
	if len(p.Try.Broken) > 0 {
		lines := make([]string, len(p.Try.Broken))
		for i, f := range p.Try.Broken {
			lines[i] = ui.Labelled(r.Context(), campaignpages.CampaignLabel(r.Context(), f.Name), ui.FieldText(r.Context(), f))
		}
		p.Try.Text = strings.Join(lines, "\n")
	}
	return nil
}

// sendCampaign sends a text of a stored campaign to the member.
func (h *handlers) sendCampaign(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	s, err := h.sendingOf(r, st.Campaign)
	if err != nil {
		return err
	}
	p := campaignpages.Texts{User: strings.TrimSpace(r.PostFormValue("preview_user")), Language: strings.TrimSpace(r.PostFormValue("preview_language"))}
	if err := h.try(r, s, &p); err != nil {
		return err
	}
	return h.Done(w, r, p.Address(st.ID), p.Try.Tone, p.Try.Text)
}
