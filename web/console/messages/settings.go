package messages

import (
	"net/http"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func settingValues(s message.Shop) map[string]string {
	v := map[string]string{"default_language": s.Language, "logo": s.Logo, "colour": s.Colour, "currency": s.Currency,
		"sender": s.Sender, "reply_to": s.ReplyTo, "preheader": s.Preheader, "postal_address": s.Postal}
	if s.PartPrice != 0 {
		v["part_price"] = strings.TrimSpace(pageparts.Price(s.PartPrice, ""))
	}
	return v
}

// saveSettings stores the brand and the defaults of a shop.
func (h *handlers) saveSettings(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor) error {
	if p.Settings == nil {
		return shell.ErrMalformed
	}
	v := map[string]string{}
	for _, name := range []string{"default_language", "logo", "colour", "part_price", "currency", "sender", "reply_to", "preheader", "postal_address"} {
		v[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	if chosen, ok := p.Pictures.Picked(r.PostFormValue("logo_picture")); ok {
		v["logo"] = chosen.Address
	}
	s := message.Shop{Logo: v["logo"], Colour: strings.ToLower(v["colour"]), Currency: strings.ToUpper(v["currency"]), Language: v["default_language"],
		Sender: v["sender"], ReplyTo: v["reply_to"], Preheader: v["preheader"], Postal: strings.ReplaceAll(v["postal_address"], "\r\n", "\n")}
	if tag, ok := message.Canonical(s.Language); ok {
		s.Language = tag
	}
	e := &fault.Fields{}
	if v["part_price"] != "" {
		var ok bool
		if s.PartPrice, ok = pageparts.ReadPrice(v["part_price"]); !ok {
			e.Add("part_price", "rule.part_price", "must be a price of at most 100000")
		}
	}
	p.Settings.Values, p.Settings.BasedOn = v, basedOn(r, "settings_based_on")
	err := e.Err()
	if err == nil {
		_, err = h.Messages.Save(r.Context(), shell.Actor(r), a.place, message.Key{Kind: message.Settings}, &message.Text{Shop: &s}, p.Settings.BasedOn)
	}
	if list := shell.FieldsOf(err); len(list) > 0 {
		for i := range list {
			if list[i].Name == "language" {
				list[i].Name = "default_language"
			}
		}
		p.Settings.Errors = list
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	}
	return h.saved(w, r, a, book, p, err, "message.settings.saved")
}

// saveName stores the name of a drop in a language; an empty name removes it.
func (h *handlers) saveName(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor) error {
	p.NameTyped = messagepages.Name{Language: strings.TrimSpace(r.PostFormValue("name_language")), Title: strings.TrimSpace(r.PostFormValue("name_title")),
		Description: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("name_description"), "\r\n", "\n"))}
	tag, ok := message.Canonical(p.NameTyped.Language)
	if !ok {
		p.Errors = append(p.Errors, fault.Field{Name: "name_language", Key: "rule.locale", Message: "must be a language tag such as en or zh-CN"})
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	}
	k := message.Key{Kind: message.Names, Language: tag}
	var text *message.Text
	if p.NameTyped.Title != "" {
		text = &message.Text{Title: p.NameTyped.Title, Body: p.NameTyped.Description}
	}
	last, err := h.Messages.History(r.Context(), shell.Actor(r), a.place, k, 1)
	if err != nil {
		return err
	}
	before := int64(0)
	if len(last) > 0 {
		before = last[0].ID
	}
	_, err = h.Messages.Save(r.Context(), shell.Actor(r), a.place, k, text, before)
	if list := shell.FieldsOf(err); len(list) > 0 {
		for _, f := range list {
			f.Name = map[string]string{"title": "name_title", "body": "name_description", "language": "name_language"}[f.Name]
			p.Errors = append(p.Errors, f)
		}
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, p.Address(), ui.Good, shell.Say(r, "message.names.saved", tag))
}
