package messages

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// typedKey returns the key of the text that the page is about; an unknown key becomes the first
// choice.
func typedKey(r *http.Request) message.Key {
	k := message.Key{Kind: message.Reminder, Channel: message.Email, Language: message.English}
	for _, kind := range message.Written() {
		if r.FormValue("kind") == string(kind) {
			k.Kind = kind
		}
	}
	for _, c := range message.Channels() {
		if r.FormValue("channel") == string(c) {
			k.Channel = c
		}
	}
	return k
}

// typedLanguage returns the language of the text: the typed language, by default the language of
// the shop. e gets a fault if the language does not exist.
func typedLanguage(r *http.Request, book *message.Book, e *fault.Fields) string {
	typed := strings.TrimSpace(r.FormValue("language"))
	if tag, ok := message.Canonical(typed); ok {
		return tag
	}
	if typed != "" {
		e.Add("language", "rule.locale", "must be a language tag such as en or zh-CN")
	}
	if tag := book.Settings().Language; tag != "" {
		return tag
	}
	return message.BuiltInLanguage(ui.From(r.Context()).Locale.Tag)
}

// typedText is the text in the form's fields.
func typedText(r *http.Request, c message.Channel) message.Text {
	t := message.Text{Title: strings.TrimSpace(r.PostFormValue("title"))}
	if c != message.Email {
		t.Body = strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("body"), "\r\n", "\n"))
		return t
	}
	for i := range message.MaxBlocks + 1 {
		name := func(what string) string { return "b" + strconv.Itoa(i) + "_" + what }
		if !r.PostForm.Has(name("type")) {
			break
		}
		t.Blocks = append(t.Blocks, message.Block{Type: message.BlockType(r.PostFormValue(name("type"))),
			Text: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name("text")), "\r\n", "\n")), URL: strings.TrimSpace(r.PostFormValue(name("url")))})
	}
	return t
}

// page is the editor with the text that counts for the key.
func (h *handlers) page(r *http.Request, a about) (messagepages.Editor, *message.Book, error) {
	p := messagepages.Editor{Title: a.title, Active: a.active, Crumbs: a.crumbs, URL: a.url, Place: a.place, Zone: a.zone,
		Reader: strings.TrimSpace(r.FormValue("user")), MayEdit: shell.Actor(r).Can(staff.ManageTemplates, a.place.Shop)}
	book, err := h.Messages.Book(r.Context(), shell.Actor(r), a.place)
	if err != nil {
		return p, nil, err
	}
	if p.Pictures, err = h.offer(r, a.place.Shop); err != nil {
		return p, nil, err
	}
	e := &fault.Fields{}
	k := typedKey(r)
	k.Language = typedLanguage(r, book, e)
	h.NamedUser(r, p.Reader, e)
	p.Channel, p.Errors, p.Languages = k.Channel, e.List, book.Languages(k.Kind, k.Channel)
	p.Found, p.Written = book.Own(k)
	if !p.Written { // begin with what readers of the language get now
		p.Found = book.Find(k.Kind, k.Channel, k.Language)
	}
	p.Draft = message.Draft{Kind: k.Kind, Language: k.Language, Text: p.Found.Text}
	if p.History, err = h.Messages.History(r.Context(), shell.Actor(r), a.place, k, historyLength); err != nil {
		return p, nil, err
	}
	if len(p.History) > 0 {
		p.BasedOn = p.History[0].ID
	}
	if p.Own, err = h.own(r); err != nil {
		return p, nil, err
	}
	return p, book, h.surroundings(r, a, book, &p)
}

// surroundings completes the page by the names of a drop or the settings of a shop.
func (h *handlers) surroundings(r *http.Request, a about, book *message.Book, p *messagepages.Editor) error {
	if a.place.Template != 0 {
		p.Coupon = book.Settings().Coupon
		for _, v := range book.Names() {
			p.Names = append(p.Names, messagepages.Name{Language: v.Key.Language, Title: v.Text.Title, Description: v.Text.Body})
		}
		return nil
	}
	s := book.Settings()
	p.Settings = &messagepages.Settings{Values: settingValues(s)}
	list, err := h.Messages.History(r.Context(), shell.Actor(r), a.place, message.Key{Kind: message.Settings}, 1)
	if len(list) > 0 {
		p.Settings.BasedOn = list[0].ID
	}
	return err
}

// own returns the member's own contacts: the e-mail address, and the contacts of the user with that
// address.
func (h *handlers) own(r *http.Request) (pageparts.Own, error) {
	own := pageparts.Own{Email: shell.Frame(r).Member.Email}
	u, found, err := h.Own.OwnUser(r.Context(), own.Email)
	if found {
		own.Phone, own.Devices, own.User = u.Phone, len(u.Push)+len(u.Devices), u.ID.String()
	}
	return own, err
}

func (h *handlers) show(w http.ResponseWriter, r *http.Request, a about) error {
	p, book, err := h.page(r, a)
	if err != nil {
		return err
	}
	if err := h.Messages.Look(r.Context(), shell.Actor(r), a.place); err != nil {
		return err
	}
	return h.draw(w, r, http.StatusOK, a, book, p)
}

// draw shows the page, or the part that follows the typed text.
func (h *handlers) draw(w http.ResponseWriter, r *http.Request, status int, a about, book *message.Book, p messagepages.Editor) error {
	to, err := h.readerOf(r, a, p.Reader)
	if err != nil {
		return err
	}
	p.Previews = h.previews(r, a, book, p.Channel, p.Draft, to)
	if shell.Partial(r) {
		return h.Show(w, r, status, p.Side())
	}
	return h.Show(w, r, status, p.Page())
}

// change does the action of the pressed button with the typed text; without a button it shows the
// preview.
func (h *handlers) change(w http.ResponseWriter, r *http.Request, a about) error {
	p, book, err := h.page(r, a)
	if err != nil {
		return err
	}
	do := r.PostFormValue("do")
	switch do {
	case "settings":
		return h.saveSettings(w, r, a, book, p)
	case "picture":
		return h.saveCouponPicture(w, r, a, book, p)
	case "name":
		return h.saveName(w, r, a, book, p)
	case "restore":
		id, _ := strconv.ParseInt(r.PostFormValue("version_id"), 10, 64) // 0 is no version
		_, err := h.Messages.Restore(r.Context(), shell.Actor(r), a.place, id, basedOn(r, "based_on"))
		return h.saved(w, r, a, book, p, err, "message.restored_now")
	case "remove":
		_, err := h.Messages.Save(r.Context(), shell.Actor(r), a.place, p.Key(), nil, basedOn(r, "based_on"))
		return h.saved(w, r, a, book, p, err, "message.removed_now")
	}
	p.Draft.Text, p.BasedOn = typedText(r, p.Channel), basedOn(r, "based_on")
	choosePictures(r, p.Draft.Text.Blocks, p.Pictures)
	p.Draft.Text.Blocks = message.Rearranged(p.Draft.Text.Blocks, do, r.PostFormValue("new_block"))
	switch {
	case do == "save" && len(p.Errors) == 0:
		_, err := h.Messages.Save(r.Context(), shell.Actor(r), a.place, p.Key(), &p.Draft.Text, p.BasedOn)
		return h.saved(w, r, a, book, p, err, "message.saved")
	case do == "test" && len(p.Errors) == 0:
		return h.test(w, r, a, book, p)
	}
	if do == "" || do == "look" {
		p.Errors = append(p.Errors, shell.FieldsOf(p.Draft.Text.Check(p.Key()))...)
	}
	return h.draw(w, r, http.StatusOK, a, book, p)
}

func basedOn(r *http.Request, name string) int64 {
	id, err := strconv.ParseInt(r.PostFormValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// saved answers a save: with the page again, or with the errors.
func (h *handlers) saved(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor, err error, done string) error {
	var broken *fault.Fields
	switch {
	case errors.As(err, &broken):
		p.Errors = append(p.Errors, broken.List...)
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	case errors.Is(err, fault.ErrStale):
		p.Errors = append(p.Errors, fault.Field{Name: "language", Key: "message.stale", Message: shell.Say(r, "message.stale")})
		return h.draw(w, r, http.StatusConflict, a, book, p)
	case err != nil:
		return err
	}
	return h.Done(w, r, p.Address(), ui.Good, shell.Say(r, done))
}

// test sends the typed text to the member.
func (h *handlers) test(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor) error {
	c, err := delivery.ParseChannel(string(p.Channel))
	if err != nil {
		return err
	}
	try, err := h.send(r, a.place.Shop, testmessage.TestWish{Channel: c, Recipient: p.Own.Address(p.Channel), TemplateID: a.place.Template}, p.Draft)
	switch {
	case err != nil:
		return err
	case !try.Refused:
		shell.Frame(r).Flashes = append(shell.Frame(r).Flashes, ui.Flash{Kind: try.Tone, Text: try.Text})
		return h.draw(w, r, http.StatusOK, a, book, p)
	case len(try.Broken) == 0:
		try.Broken = []fault.Field{{Name: "channel", Key: "message.test.refused", Message: try.Text}}
	}
	p.Errors = append(p.Errors, try.Broken...)
	return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
}
