package message

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Faults of this room.
var (
	// ErrNotFound is returned for a version or a place that does not exist.
	ErrNotFound = fault.New(fault.NotFound, "message_not_found", "there is no such text; load the page again")
)

// Store keeps versions.
type Store interface {
	// Current returns the newest versions of each key of the place and, for a drop, of its shop.
	// Versions newer than upTo are ignored; [Newest] = none is ignored.
	Current(ctx context.Context, p Place, upTo int64) ([]Version, error)
	// History returns the versions of one key of the place, the newest first.
	History(ctx context.Context, p Place, k Key, limit int) ([]Version, error)
	// Version returns [ErrNotFound] if there is none.
	Version(ctx context.Context, id int64) (Version, error)
	// Save adds all versions with their audit entries, or none. Versions become visible in the
	// order of their ids. If the newest version of a key is not BasedOn (0 = there is none), it
	// returns [fault.ErrStale].
	Save(ctx context.Context, list ...Saving) ([]Version, error)
	// Look records that staff have looked at the messages of the drop.
	Look(ctx context.Context, template int64, by string) error
	// Looked reports whether staff ever have.
	Looked(ctx context.Context, template int64) (bool, error)
}

// A Saving is a version to store, the version that its form showed, and its audit entry.
type Saving struct {
	Version Version
	BasedOn int64
	Entry   staff.Entry
}

// Service holds the use cases of staff around texts.
type Service struct{ Store Store }

// Book returns the texts of the place as they are now.
func (s *Service) Book(ctx context.Context, by staff.Actor, p Place) (*Book, error) {
	if err := by.May(staff.View, p.Shop); err != nil {
		return nil, err
	}
	versions, err := s.Store.Current(ctx, p, Newest)
	return NewBook(versions), err
}

// Save stores a text for the place. nil removes the text, so that the shop's or the built-in text
// is used again. basedOn is the version that the form showed, 0 = none. A save without changes
// makes no version. Save returns a [fault.Fields] that names every broken rule, [fault.ErrStale]
// if the text was changed since, or [staff.ErrForbidden].
func (s *Service) Save(ctx context.Context, by staff.Actor, p Place, k Key, t *Text, basedOn int64) (Version, error) {
	return s.save(ctx, by, Version{Shop: p.Shop, Template: p.Template, Key: k, Text: t}, basedOn)
}

func (s *Service) save(ctx context.Context, by staff.Actor, v Version, basedOn int64) (Version, error) {
	list, err := s.saveAll(ctx, by, v.Shop, Saving{Version: v, BasedOn: basedOn})
	if err != nil {
		return v, err
	}
	return list[0], nil
}

// A Change is a text to store for a key; nil removes it. BasedOn is the version that the form showed,
// 0 = none.
type Change struct {
	Key     Key
	Text    *Text
	BasedOn int64
}

// Check returns a [fault.Fields] with the broken rules of all texts. The name of a field begins with
// the channel of the text, or with "name" for the name of a drop: "sms.body".
func Check(list []Change) error {
	all := &fault.Fields{}
	for _, c := range list {
		var broken *fault.Fields
		if c.Text == nil || !errors.As(c.Text.Check(c.Key), &broken) {
			continue
		}
		for _, f := range broken.List {
			f.Name = cmp.Or(string(c.Key.Channel), "name") + "." + f.Name
			all.List = append(all.List, f)
		}
	}
	return all.Err()
}

// SaveAll stores the texts of one place, all or none. It returns the errors of [Service.Save], with
// the names of [Check].
func (s *Service) SaveAll(ctx context.Context, by staff.Actor, p Place, list []Change) ([]Version, error) {
	if err := by.May(staff.ManageTemplates, p.Shop); err != nil {
		return nil, err
	}
	if err := Check(list); err != nil || len(list) == 0 {
		return nil, err
	}
	all := make([]Saving, len(list))
	for i, c := range list {
		all[i] = Saving{Version: Version{Shop: p.Shop, Template: p.Template, Key: c.Key, Text: c.Text}, BasedOn: c.BasedOn}
	}
	return s.saveAll(ctx, by, p.Shop, all...)
}

func (s *Service) saveAll(ctx context.Context, by staff.Actor, shop int64, list ...Saving) ([]Version, error) {
	if err := by.May(staff.ManageTemplates, shop); err != nil {
		return nil, err
	}
	for i := range list {
		v, action := &list[i].Version, "message.save"
		switch {
		case v.Text == nil:
			action = "message.remove"
		case v.RestoredFrom != 0:
			action = "message.restore"
		}
		if v.Text != nil {
			if err := v.Text.Check(v.Key); err != nil {
				return nil, err
			}
		}
		v.By = by.Label + " " + by.Name
		list[i].Entry = entry(by, action, *v)
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Save(ctx, list...)
}

// A Sender is the part of a shop's settings that readers see of the sender of a mail; see [Shop].
type Sender struct{ Name, ReplyTo, Preheader, Postal string }

// Sender returns the sender of the shop's mails.
func (s *Service) Sender(ctx context.Context, by staff.Actor, shop int64) (Sender, error) {
	book, err := s.Book(ctx, by, Place{Shop: shop})
	set := book.Settings()
	return Sender{set.Sender, set.ReplyTo, set.Preheader, set.Postal}, err
}

// SetSender changes the sender of the shop's mails and keeps the other settings. It returns the
// errors of [Service.Save].
func (s *Service) SetSender(ctx context.Context, by staff.Actor, shop int64, to Sender) error {
	place, key := Place{Shop: shop}, Key{Kind: Settings}
	last, err := s.History(ctx, by, place, key, 1)
	if err != nil {
		return err
	}
	set, basedOn := Shop{}, int64(0)
	if len(last) > 0 {
		if basedOn = last[0].ID; last[0].Text != nil && last[0].Text.Shop != nil {
			set = *last[0].Text.Shop
		}
	}
	set.Sender, set.ReplyTo, set.Preheader, set.Postal = to.Name, to.ReplyTo, to.Preheader, to.Postal
	_, err = s.Save(ctx, by, place, key, &Text{Shop: &set}, basedOn)
	return err
}

// Restore saves the text of an older version of the place anew.
func (s *Service) Restore(ctx context.Context, by staff.Actor, p Place, id, basedOn int64) (Version, error) {
	old, err := s.Store.Version(ctx, id)
	switch {
	case err != nil:
		return old, err
	case old.Shop != p.Shop || old.Template != p.Template:
		return old, ErrNotFound
	}
	return s.save(ctx, by, Version{Shop: p.Shop, Template: p.Template, Key: old.Key, Text: old.Text, RestoredFrom: id}, basedOn)
}

// History returns the versions of one key of the place, the newest first.
func (s *Service) History(ctx context.Context, by staff.Actor, p Place, k Key, limit int) ([]Version, error) {
	if err := by.May(staff.View, p.Shop); err != nil {
		return nil, err
	}
	return s.Store.History(ctx, p, k, limit)
}

// Look records that the actor has looked at the messages of a drop; see [Service.Looked].
func (s *Service) Look(ctx context.Context, by staff.Actor, p Place) error {
	if p.Template == 0 || by.May(staff.ManageTemplates, p.Shop) != nil {
		return nil // only members who can publish are asked
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Look(ctx, p.Template, by.Label)
}

// Looked reports whether staff who may change the drop have ever viewed its messages.
func (s *Service) Looked(ctx context.Context, template int64) (bool, error) {
	return s.Store.Looked(ctx, template)
}

// entry is the audit entry of a change. It stands with the drop, or the shop.
func entry(by staff.Actor, action string, v Version) staff.Entry {
	e := staff.Entry{Actor: by, Action: action, ObjectKind: "template", ObjectID: strconv.FormatInt(v.Template, 10), ShopNumber: v.Shop}
	if v.Template == 0 {
		e.ObjectKind, e.ObjectID = "shop", strconv.FormatInt(v.Shop, 10)
	}
	after := map[string]any{"kind": v.Key.Kind}
	if v.Key.Channel != "" {
		after["channel"] = v.Key.Channel
	}
	if v.Key.Language != "" {
		after["language"] = v.Key.Language
	}
	if v.Text != nil {
		after["text"] = v.Text
	}
	e.After = after
	return e
}

// Newest asks a [Source] for the texts as they are now.
const Newest = -1

// A Source hands out books by place and version.
type Source interface {
	// Book returns the texts of the place as of the version upTo (0 = the built-in texts), or the
	// newest texts for [Newest]. A batch keeps the version at which it was cut.
	Book(ctx context.Context, p Place, upTo int64) (*Book, error)
}

// Stored is a [Source] that reads every book from the store.
type Stored struct {
	Store interface {
		// Current is [Store.Current].
		Current(ctx context.Context, p Place, upTo int64) ([]Version, error)
	}
}

// Book implements [Source].
func (s Stored) Book(ctx context.Context, p Place, upTo int64) (*Book, error) {
	versions, err := s.Store.Current(ctx, p, upTo)
	return NewBook(versions), err
}
