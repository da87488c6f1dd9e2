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

// typedKind returns the occasion that the page is about; an unknown one becomes the reminder.
func typedKind(r *http.Request) message.Kind {
	for _, kind := range message.Written() {
		if r.FormValue("kind") == string(kind) {
			return kind
		}
	}
	return message.Reminder
}

// typedLanguage returns the language of the texts: the chosen language, by default the language of
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

// typedText is the text of the channel in the form's fields; false if the form has none.
func typedText(r *http.Request, c message.Channel) (t message.Text, typed bool) {
	line := func(name string) string {
		return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(messagepages.Field(c, name)), "\r\n", "\n"))
	}
	has := func(name string) bool { return r.PostForm.Has(messagepages.Field(c, name)) }
	if t.Title = line("title"); c != message.Email {
		t.Body = line("body")
		return t, has("body")
	}
	for i := range message.MaxBlocks + 1 {
		name := func(what string) string { return "b" + strconv.Itoa(i) + "_" + what }
		if !has(name("type")) {
			break
		}
		t.Blocks = append(t.Blocks, message.Block{Type: message.BlockType(line(name("type"))), Text: line(name("text")), URL: line(name("url"))})
	}
	return t, has("title")
}

// page is the editor with the texts that count in the language.
func (h *handlers) page(r *http.Request, a about) (messagepages.Editor, *message.Book, error) {
	p := messagepages.Editor{Title: a.title, Active: a.active, Crumbs: a.crumbs, URL: a.url, Place: a.place, Tabbed: a.tabbed, Zone: a.zone, Kind: typedKind(r),
		Reader: strings.TrimSpace(r.FormValue("user")), MayEdit: shell.Actor(r).Can(staff.ManageTemplates, a.place.Shop)}
	book, err := h.Messages.Book(r.Context(), shell.Actor(r), a.place)
	if err != nil {
		return p, nil, err
	}
	if p.Pictures, err = h.offer(r, a.place.Shop); err != nil {
		return p, nil, err
	}
	e := &fault.Fields{}
	p.Language = typedLanguage(r, book, e)
	h.NamedUser(r, p.Reader, e)
	p.Errors = e.List
	for _, c := range message.Channels() {
		t := messagepages.Text{Channel: c}
		if t.Found, t.Written = book.Own(p.Key(c)); !t.Written { // begin with what readers of the language get now
			t.Found = book.Find(p.Kind, c, p.Language)
		}
		t.Text, t.Was = t.Found.Text, messagepages.Mark(t.Found.Text)
		if t.History, err = h.Messages.History(r.Context(), shell.Actor(r), a.place, p.Key(c), historyLength); err != nil {
			return p, nil, err
		}
		if len(t.History) > 0 {
			t.BasedOn = t.History[0].ID
		}
		p.Texts = append(p.Texts, t)
	}
	if p.Own, err = h.own(r); err != nil {
		return p, nil, err
	}
	if err := h.languages(r, a, book, &p); err != nil {
		return p, nil, err
	}
	return p, book, h.surroundings(r, a, book, &p)
}

// surroundings completes the page by the names of a drop or the settings of a shop.
func (h *handlers) surroundings(r *http.Request, a about, book *message.Book, p *messagepages.Editor) error {
	if a.place.Template != 0 {
		p.Coupon, p.Name = book.Settings().Coupon, &messagepages.Name{}
		for _, v := range book.Names() {
			if v.Key.Language == p.Language {
				*p.Name = messagepages.Name{Title: v.Text.Title, Description: v.Text.Body}
			}
		}
		p.Name.Was = messagepages.Mark(nameText(*p.Name))
		last, err := h.Messages.History(r.Context(), shell.Actor(r), a.place, nameKey(p.Language), 1)
		if len(last) > 0 {
			p.Name.BasedOn = last[0].ID
		}
		return err
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
	p.Previews = h.previews(r, a, book, p, to)
	if shell.Partial(r) {
		return h.Show(w, r, status, p.Side())
	}
	return h.Show(w, r, status, p.Page())
}

// change does the action of the pressed button with the typed texts; without a button it shows the
// previews. The value of a button is the action, or a channel and the action on its text.
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
	case "restore":
		id, _ := strconv.ParseInt(r.PostFormValue("version_id"), 10, 64) // 0 is no version
		_, err := h.Messages.Restore(r.Context(), shell.Actor(r), a.place, id, basedOn(r, "based_on"))
		return h.saved(w, r, a, book, p, err, shell.Say(r, "message.restored_now"))
	}
	channel, act, ofChannel := strings.Cut(do, ":")
	for i := range p.Texts {
		t := &p.Texts[i]
		text, typed := typedText(r, t.Channel)
		if !typed {
			continue
		}
		t.Text, t.BasedOn, t.Was = text, basedOn(r, messagepages.Field(t.Channel, "based_on")), r.PostFormValue(messagepages.Field(t.Channel, "was"))
		choosePictures(r, t.Channel, t.Blocks, p.Pictures)
		if ofChannel && channel == string(t.Channel) {
			t.Blocks = message.Rearranged(t.Blocks, act, r.PostFormValue(messagepages.Field(t.Channel, "new_block")))
		}
	}
	typedName(r, p.Name)
	switch {
	case act == "remove" && ofChannel:
		c := message.Channel(channel)
		_, err := h.Messages.Save(r.Context(), shell.Actor(r), a.place, p.Key(c), nil, basedOn(r, messagepages.Field(c, "based_on")))
		return h.saved(w, r, a, book, p, err, shell.Say(r, "message.removed_now"))
	case do == "save" && len(p.Errors) == 0:
		return h.save(w, r, a, book, p)
	case act == "test" && ofChannel && len(p.Errors) == 0:
		return h.test(w, r, a, book, p, message.Channel(channel))
	}
	if do == "" || do == "look" {
		p.Errors = append(p.Errors, typedFields(message.Check(changes(p)))...)
	}
	return h.draw(w, r, http.StatusOK, a, book, p)
}

// changes are the texts of the page that differ from the texts that were shown.
func changes(p messagepages.Editor) (list []message.Change) {
	for _, t := range p.Texts {
		if t.Changed() {
			list = append(list, message.Change{Key: p.Key(t.Channel), Text: &t.Text, BasedOn: t.BasedOn})
		}
	}
	if n := p.Name; n != nil && messagepages.Mark(nameText(*n)) != n.Was {
		c := message.Change{Key: nameKey(p.Language), BasedOn: n.BasedOn}
		if n.Title != "" {
			text := nameText(*n)
			c.Text = &text
		}
		list = append(list, c)
	}
	return list
}

// typedFields returns the broken rules of texts by the inputs of the form.
func typedFields(err error) []fault.Field {
	list := shell.FieldsOf(err)
	for i, f := range list {
		list[i].Name = strings.Replace(f.Name, ".", "_", 1)
	}
	return list
}

func nameKey(language string) message.Key {
	return message.Key{Kind: message.Names, Language: language}
}

// nameText is the text in which the name of a drop is stored.
func nameText(n messagepages.Name) message.Text {
	return message.Text{Title: n.Title, Body: n.Description}
}

// typedName reads the name of the drop into n, if the form has it.
func typedName(r *http.Request, n *messagepages.Name) {
	if n != nil && r.PostForm.Has("name_title") {
		*n = messagepages.Name{Title: strings.TrimSpace(r.PostFormValue("name_title")), BasedOn: basedOn(r, "name_based_on"), Was: r.PostFormValue("name_was"),
			Description: strings.TrimSpace(strings.ReplaceAll(r.PostFormValue("name_body"), "\r\n", "\n"))}
	}
}

// save stores all changed texts of the language at once.
func (h *handlers) save(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor) error {
	stored, err := h.Messages.SaveAll(r.Context(), shell.Actor(r), a.place, changes(p))
	if list := typedFields(err); len(list) > 0 {
		p.Errors = append(p.Errors, list...)
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	}
	done := shell.Say(r, "message.unchanged")
	if len(stored) > 0 {
		done = shell.Frame(r).Locale.N("message.saved", int64(len(stored)))
	}
	return h.saved(w, r, a, book, p, err, done)
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
	return h.Done(w, r, p.Address(), ui.Good, done)
}

// test sends the typed text of the channel to the member.
func (h *handlers) test(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor, over message.Channel) error {
	c, err := delivery.ParseChannel(string(over))
	if err != nil {
		return err
	}
	draft := message.Draft{Kind: p.Kind, Language: p.Language}
	for _, t := range p.Texts {
		if t.Channel == over {
			draft.Text = t.Text
		}
	}
	try, err := h.send(r, a.place.Shop, testmessage.TestWish{Channel: c, Recipient: p.Own.Address(over), TemplateID: a.place.Template}, draft)
	switch {
	case err != nil:
		return err
	case !try.Refused:
		shell.Frame(r).Flashes = append(shell.Frame(r).Flashes, ui.Flash{Kind: try.Tone, Text: try.Text})
		return h.draw(w, r, http.StatusOK, a, book, p)
	case len(try.Broken) == 0:
		try.Broken = []fault.Field{{Name: "channel", Key: "message.test.refused", Message: try.Text}}
	}
	for _, f := range try.Broken {
		f.Name = messagepages.Field(over, f.Name)
		p.Errors = append(p.Errors, f)
	}
	return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
}
