package messages

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/picture"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	messagepages "dropbell/views/pages/messages"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// pageOfPictures is how many pictures a page of the library shows, offered how many a block of a
	// mail offers.
	pageOfPictures = 48
	offered        = 100
)

// library returns the page of the shop's pictures.
func (h *handlers) library(r *http.Request, s template.Shop) (messagepages.Library, error) {
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64)
	list, err := h.Pictures.List(r.Context(), shell.Actor(r), s.Number, max(0, before), pageOfPictures+1)
	p := messagepages.Library{Shop: s, MayEdit: shell.Actor(r).Can(staff.ManageTemplates, s.Number), Zone: h.ShopZone(s.Timezone)}
	if len(list) > pageOfPictures {
		list = list[:pageOfPictures]
		p.Next = shell.WithQuery(r, "before", strconv.FormatInt(list[pageOfPictures-1].ID, 10))
	}
	if before > 0 {
		p.First = p.URL()
	}
	p.List = list
	return p, err
}

// viewedShop returns the shop of the address, which the member may see.
func (h *handlers) viewedShop(r *http.Request) (template.Shop, error) {
	number, err := shell.PathID(r)
	if err != nil {
		return template.Shop{}, err
	}
	list, err := h.ShopsOf(r)
	for _, s := range list {
		if s.Number == number {
			return s, nil
		}
	}
	if err == nil {
		err = shell.ErrNoPage
	}
	return template.Shop{}, err
}

func (h *handlers) showLibrary(w http.ResponseWriter, r *http.Request, s template.Shop) error {
	p, err := h.library(r, s)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// uploadPicture stores the picture of a form. Scripts ask for JSON and get the address of the
// picture, or why it was refused.
func (h *handlers) uploadPicture(w http.ResponseWriter, r *http.Request, s template.Shop) error {
	var stored picture.Picture
	name, alt, content, err := received(r)
	if err == nil {
		stored, err = h.Pictures.Upload(r.Context(), shell.Actor(r), s.Number, name, alt, content)
	}
	told := r.Header.Get("Accept") == "application/json"
	status := map[fault.Kind]int{fault.Invalid: 422, fault.Conflict: 409, fault.Unavailable: 503}[fault.KindOf(err)]
	switch {
	case err != nil && (status == 0 || fault.KindOf(err) == 0 || errors.Is(err, shell.ErrMalformed)):
		return err
	case err != nil && told:
		text := ui.FaultText(r.Context(), err)
		if list := shell.FieldsOf(err); len(list) > 0 {
			text = ui.Labelled(r.Context(), messagepages.Label(r.Context(), list[0].Name), ui.FieldText(r.Context(), list[0]))
		}
		return answer(w, status, map[string]any{"error": text})
	case err != nil:
		p, failed := h.library(r, s)
		if failed != nil {
			return failed
		}
		p.Alt, p.Errors = alt, shell.FieldsOf(err)
		if p.Errors == nil {
			p.Refused = ui.FaultText(r.Context(), err)
		}
		return h.Show(w, r, status, p.Page())
	case told:
		return answer(w, http.StatusCreated, map[string]any{"address": h.address(stored), "alt": stored.Alt, "width": stored.Width, "height": stored.Height})
	}
	return h.Done(w, r, pageparts.LibraryURL(s.Number), ui.Good, shell.Say(r, "pictures.uploaded", stored.Alt))
}

func answer(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may be gone
	return nil
}

// received reads a form with a file, of which no more than a refused file is read.
func received(r *http.Request) (name, alt string, content []byte, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", "", nil, shell.ErrMalformed
	}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return name, alt, content, nil
		}
		if err != nil {
			return name, alt, content, shell.ErrMalformed
		}
		switch part.FormName() {
		case "alt":
			raw, err := io.ReadAll(io.LimitReader(part, 4<<10))
			if err != nil {
				return name, alt, content, shell.ErrMalformed
			}
			alt = strings.ToValidUTF8(strings.ReplaceAll(string(raw), "\x00", ""), "")
		case "file":
			name = part.FileName()
			if content, err = io.ReadAll(io.LimitReader(part, picture.MaxBytes+1)); err != nil {
				return name, alt, content, shell.ErrMalformed
			}
			if len(content) > picture.MaxBytes {
				return name, alt, content, nil // refused, so nothing more is read
			}
		}
	}
}

// changePicture changes a picture's alternative text, or deletes the picture.
func (h *handlers) changePicture(w http.ResponseWriter, r *http.Request) error {
	s, err := h.viewedShop(r)
	if err != nil {
		return err
	}
	hash, to, done := r.PathValue("hash"), pageparts.LibraryURL(s.Number), "pictures.described"
	if r.PostFormValue("do") == "delete" {
		done = "pictures.deleted"
		err = h.Pictures.Delete(r.Context(), shell.Actor(r), s.Number, hash)
	} else {
		err = h.Pictures.Describe(r.Context(), shell.Actor(r), s.Number, hash, r.PostFormValue("alt"))
	}
	if list := shell.FieldsOf(err); list != nil {
		return h.Done(w, r, to, ui.Bad, ui.FieldText(r.Context(), list[0]))
	}
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.NotFound || kind == fault.Unavailable {
		return h.Done(w, r, to, ui.Bad, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, to, ui.Good, shell.Say(r, done))
}

// address is the public address of a picture.
func (h *handlers) address(p picture.Picture) string {
	return strings.TrimRight(h.Deps.PublicURL, "/") + p.Path()
}

// offer returns the pictures that a mail of the shop can choose from.
func (h *handlers) offer(r *http.Request, shop int64) (p pageparts.Pictures, err error) {
	if shop == 0 || !shell.Actor(r).Can(staff.ManageTemplates, shop) {
		return p, nil
	}
	pictures, err := h.Pictures.List(r.Context(), shell.Actor(r), shop, 0, offered)
	p.Shop = shop
	for _, v := range pictures {
		p.List = append(p.List, pageparts.Picture{Address: h.address(v), Alt: v.Alt, Width: v.Width, Height: v.Height})
	}
	return p, err
}

// choosePictures puts the pictures chosen from the library into the blocks. A description that was
// typed stays.
func choosePictures(r *http.Request, c message.Channel, blocks []message.Block, from pageparts.Pictures) {
	for i, b := range blocks {
		chosen, ok := from.Picked(r.PostFormValue(messagepages.Field(c, "b"+strconv.Itoa(i)+"_picture")))
		if ok && b.Type == message.Image {
			blocks[i].URL, blocks[i].Text = chosen.Address, cmp.Or(b.Text, chosen.Alt)
		}
	}
}

// saveCouponPicture stores the picture of a drop's coupon; an empty address removes it.
func (h *handlers) saveCouponPicture(w http.ResponseWriter, r *http.Request, a about, book *message.Book, p messagepages.Editor) error {
	if a.place.Template == 0 {
		return shell.ErrMalformed
	}
	p.Coupon = message.Block{Type: message.Image, Text: strings.TrimSpace(r.PostFormValue("picture")), URL: strings.TrimSpace(r.PostFormValue("picture_url"))}
	if chosen, ok := p.Pictures.Picked(r.PostFormValue("picture_chosen")); ok {
		p.Coupon.URL, p.Coupon.Text = chosen.Address, cmp.Or(p.Coupon.Text, chosen.Alt)
	}
	k := message.Key{Kind: message.Picture}
	var text *message.Text
	if p.Coupon.URL != "" {
		text = &message.Text{Blocks: []message.Block{p.Coupon}}
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
		p.Errors = append(p.Errors, list...)
		return h.draw(w, r, http.StatusUnprocessableEntity, a, book, p)
	}
	return h.saved(w, r, a, book, p, err, shell.Say(r, "pictures.coupon_saved"))
}
