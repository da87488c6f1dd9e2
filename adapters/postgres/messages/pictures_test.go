package messages_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/picturetest"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/picture"
	"dropbell/domain/staff"
)

// asItIs takes the content as the picture.
type asItIs struct{}

func (asItIs) Convert(_ context.Context, content []byte) (picture.File, error) {
	return picture.File{Content: content, Type: "png", Width: 2, Height: 1}, nil
}

func TestPictureFiles(t *testing.T) {
	picturetest.Files(t, messagesdb.NewPictureFiles(pgtest.New(t).DB))
}

// A picture is stored once however often it is uploaded, is listed with its uses, and is deleted
// only while no text has it.
func TestPictures(t *testing.T) {
	w := pgtest.New(t)
	tpl := w.Published(2 * time.Hour)
	shop, by := tpl.ShopNumber, staff.System()
	files := messagesdb.NewPictureFiles(w.DB)
	s := &picture.Service{Store: messagesdb.NewPictures(w.DB), Files: files, Converter: asItIs{}}
	list := func() []picture.Picture {
		l, err := s.List(t.Context(), by, shop, 0, 10)
		w.Must(err)
		return l
	}
	var uploads sync.WaitGroup
	for range 4 {
		uploads.Go(func() {
			if _, err := s.Upload(t.Context(), by, shop, `C:\moon.png`, "Moon cakes", []byte("one")); err != nil {
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	one := list()[0]
	if len(list()) != 1 || one.Name != "moon.png" || one.Alt != "Moon cakes" || one.Bytes != 3 || !picture.Hashed(one.Hash) || len(one.Uses) != 0 {
		t.Fatalf("%+v", list())
	}
	two, err := s.Upload(t.Context(), by, shop, "two.png", "Tea", []byte("two"))
	w.Must(err)
	w.Must(s.Describe(t.Context(), by, shop, two.Hash, "Green tea"))
	if l := list(); len(l) != 2 || l[0].Alt != "Green tea" {
		t.Errorf("%+v", l)
	}

	texts := &message.Service{Store: messagesdb.NewMessages(w.DB)}
	key := message.Key{Kind: message.Reminder, Channel: message.Email, Language: "en"}
	mail := &message.Text{Title: "a", Blocks: []message.Block{{Type: message.Image, Text: "Moon cakes", URL: "https://drop.example" + one.Path()}}}
	v, err := texts.Save(t.Context(), by, message.Place{Shop: shop, Template: tpl.ID}, key, mail, 0)
	w.Must(err)
	if used := list()[1].Uses; len(used) != 1 || used[0].Template != tpl.ID || used[0].Name != tpl.Name {
		t.Errorf("%+v", used)
	}
	if err := s.Delete(t.Context(), by, shop, one.Hash); !errors.Is(err, picture.ErrInUse) {
		t.Errorf("a picture in use was deleted: %v", err)
	}
	if _, err := files.Get(t.Context(), one); err != nil {
		t.Errorf("the file of a picture in use: %v", err)
	}
	_, err = texts.Save(t.Context(), by, message.Place{Shop: shop, Template: tpl.ID}, key, nil, v.ID)
	w.Must(err)
	w.Must(s.Delete(t.Context(), by, shop, one.Hash))
	if _, err := files.Get(t.Context(), one); !errors.Is(err, picture.ErrNotFound) {
		t.Errorf("the file of a deleted picture: %v", err)
	}
	for name, err := range map[string]error{
		"delete twice":     s.Delete(t.Context(), by, shop, one.Hash),
		"describe":         s.Describe(t.Context(), by, shop, one.Hash, "x"),
		"of another shop":  s.Delete(t.Context(), by, shop+1, two.Hash),
		"describe, others": s.Describe(t.Context(), by, shop+1, two.Hash, "x"),
	} {
		if !errors.Is(err, picture.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var fields *fault.Fields
	if _, err := s.Upload(t.Context(), by, shop, "x", " ", nil); !errors.As(err, &fields) || len(fields.List) != 2 {
		t.Errorf("without a file and a description: %v", err)
	}
	if _, err := s.Upload(t.Context(), by, shop, "x", "x", []byte(strings.Repeat("x", picture.MaxBytes+1))); !errors.As(err, &fields) {
		t.Errorf("a large file: %v", err)
	}
	if _, err := s.Upload(t.Context(), by, 999_999, "x", "x", []byte("x")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a shop that does not exist: %v", err)
	}
	if _, err := s.Upload(t.Context(), staff.Actor{Role: staff.Viewer}, shop, "x", "x", []byte("x")); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("a viewer: %v", err)
	}
}

// failing stores a file and fails afterwards, as if the process died.
type failing struct {
	picture.Files
	err error
}

func (f failing) Put(ctx context.Context, p picture.Picture, content []byte) error {
	return errors.Join(f.Files.Put(ctx, p, content), f.err)
}

func (f failing) Remove(ctx context.Context, p picture.Picture) error {
	return errors.Join(f.Files.Remove(ctx, p), f.err)
}

// A process that dies after the file was stored or removed leaves no picture without a file that
// cannot be repaired: the same step can be repeated.
func TestPicturesAfterADeath(t *testing.T) {
	w := pgtest.New(t)
	shop, by := w.Published(2*time.Hour).ShopNumber, staff.System()
	files := messagesdb.NewPictureFiles(w.DB)
	store := messagesdb.NewPictures(w.DB)
	good := &picture.Service{Store: store, Files: files, Converter: asItIs{}}
	dying := &picture.Service{Store: store, Files: failing{files, picture.ErrStore}, Converter: asItIs{}}
	if _, err := dying.Upload(t.Context(), by, shop, "x", "x", []byte("x")); !errors.Is(err, picture.ErrStore) {
		t.Errorf("%v", err)
	}
	if l, err := good.List(t.Context(), by, shop, 0, 10); err != nil || len(l) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	p, err := good.Upload(t.Context(), by, shop, "x", "x", []byte("x"))
	w.Must(err)
	if err := dying.Delete(t.Context(), by, shop, p.Hash); !errors.Is(err, picture.ErrStore) {
		t.Errorf("%v", err)
	}
	again, err := good.Upload(t.Context(), by, shop, "x", "x", []byte("x"))
	w.Must(err)
	if got, err := files.Get(t.Context(), again); err != nil || string(got) != "x" || again.ID != p.ID {
		t.Errorf("%q %v", got, err)
	}
	w.Must(good.Delete(t.Context(), by, shop, p.Hash))
}
