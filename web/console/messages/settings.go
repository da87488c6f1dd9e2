package messages

import (
	"net/http"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
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
	return h.saved(w, r, a, book, p, err, shell.Say(r, "message.settings.saved"))
}
