package picture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/wording"
)

// Service holds the use cases of staff around pictures.
type Service struct {
	Store     Store
	Files     Files
	Converter Converter
}

// Upload converts and stores a picture of the shop. name is the file's name; an empty alt is
// refused, because readers who see no pictures read it. Repeating an upload returns the same
// picture. Upload returns a [fault.Fields] that says what to correct, [ErrFull], [ErrBusy] or
// [staff.ErrForbidden].
func (s *Service) Upload(ctx context.Context, by staff.Actor, shop int64, name, alt string, content []byte) (Picture, error) {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return Picture{}, err
	}
	p := Picture{Shop: shop, Name: nameOf(name), Alt: strings.TrimSpace(alt)}
	e := &fault.Fields{}
	checkAlt(e, p.Alt)
	switch {
	case len(content) == 0:
		e.Add("file", "rule.picture_missing", "choose a picture")
	case len(content) > MaxBytes:
		e.Add("file", "rule.picture_size", "must have at most %d MB", MaxBytes>>20)
	}
	if err := e.Err(); err != nil {
		return p, err
	}
	file, err := s.Converter.Convert(ctx, content)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(file.Content)
	p.Hash, p.Type, p.Width, p.Height, p.Bytes = hex.EncodeToString(sum[:]), file.Type, file.Width, file.Height, len(file.Content)
	p.By = by.Label + " " + by.Name
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Add(ctx, p, func(ctx context.Context) error { return s.Files.Put(ctx, p, file.Content) }, entry(by, "picture.upload", p))
}

// List returns up to limit pictures of the shop with ids below before (0 = any), the newest first.
func (s *Service) List(ctx context.Context, by staff.Actor, shop, before int64, limit int) ([]Picture, error) {
	if err := by.May(staff.View, shop); err != nil {
		return nil, err
	}
	return s.Store.Pictures(ctx, shop, before, limit)
}

// Describe changes the alternative text of a picture. Texts that have the picture keep their own.
func (s *Service) Describe(ctx context.Context, by staff.Actor, shop int64, hash, alt string) error {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return err
	}
	p := Picture{Shop: shop, Hash: hash, Alt: strings.TrimSpace(alt)}
	e := &fault.Fields{}
	if checkAlt(e, p.Alt); len(e.List) > 0 {
		return e
	}
	return s.Store.Describe(ctx, p, entry(by, "picture.describe", p))
}

// Delete deletes a picture that no text has. Mails that were sent with it show its alternative
// text from then on.
func (s *Service) Delete(ctx context.Context, by staff.Actor, shop int64, hash string) error {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Remove(ctx, shop, hash, s.Files.Remove, entry(by, "picture.delete", Picture{Shop: shop, Hash: hash}))
}

func entry(by staff.Actor, action string, p Picture) staff.Entry {
	e := staff.Entry{Actor: by, Action: action, ObjectKind: "shop", ObjectID: strconv.FormatInt(p.Shop, 10), ShopNumber: p.Shop}
	e.After = map[string]any{"picture": p.Hash, "alt": p.Alt}
	return e
}

func checkAlt(e *fault.Fields, alt string) {
	switch {
	case alt == "":
		e.Add("alt", "rule.picture_alt", "say what the picture shows, for readers who do not see it")
	case utf8.RuneCountInString(alt) > maxAlt:
		e.Add("alt", "rule.too_long", "must have at most %d characters", maxAlt)
	case !utf8.ValidString(alt), strings.ContainsFunc(alt, unicode.IsControl), strings.ContainsFunc(alt, wording.TurnsAround):
		e.Add("alt", "rule.text", "contains characters that cannot be stored")
	}
}

// nameOf returns the last element of the file name that a browser sends.
func nameOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || wording.TurnsAround(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return strings.TrimSpace(name)
}
