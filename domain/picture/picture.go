// Package picture has the rules of the pictures that staff upload for the messages of a shop: what
// is accepted, how a picture is addressed, and when it may be deleted.
package picture

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Limits of an upload. MaxBytes bounds the uploaded file, MaxSide and MaxPixels the decoded
// picture, MaxPictures the library of a shop.
const (
	MaxBytes    = 10 << 20
	MaxSide     = 12_000
	MaxPixels   = 40_000_000
	MaxPictures = 1000
	maxAlt      = 200
	maxName     = 200
)

// The largest stored picture, in pixels: twice the width of a mail, for fine screens.
const (
	FitWidth  = 1200
	FitHeight = 1800
)

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "picture_not_found", "there is no such picture; it may have been deleted. Open the library again").Told("fault.picture_not_found")
	ErrInUse    = fault.New(fault.Conflict, "picture_in_use", "the picture is in use; take it out of the texts first").Told("fault.picture_in_use")
	ErrFull     = fault.New(fault.Conflict, "picture_library_full", "the shop has 1000 pictures; delete some that are not in use").Told("fault.picture_library_full")
	// ErrBusy is returned while other pictures are being converted.
	ErrBusy = fault.New(fault.Unavailable, "pictures_busy", "other pictures are being converted; try again").Told("fault.pictures_busy")
	// ErrStore is returned while the store of the files does not answer.
	ErrStore = fault.New(fault.Unavailable, "picture_store", "the store of pictures does not answer; try again").Told("fault.picture_store")
)

// A Picture is a stored picture of a shop. It never changes, except for its Alt.
type Picture struct {
	ID   int64
	Shop int64
	// Hash is the SHA-256 of the stored file in hexadecimal digits; Type is "jpeg" or "png".
	Hash, Type    string
	Width, Height int
	Bytes         int
	// Name is the name of the uploaded file, Alt a text that says what the picture shows.
	Name, Alt string
	By        string
	At        time.Time
	// Uses are the texts with the picture; only [Service.List] fills it in.
	Uses []Use
}

// A Use is a text with a picture: of a drop, of a campaign, or of the shop if both are 0.
type Use struct {
	Template, Campaign int64
	Name               string
}

// InUse returns [ErrInUse] with the texts that have the picture.
func InUse(uses []Use) error {
	names := make([]string, len(uses))
	for i, u := range uses {
		switch {
		case u.Template != 0:
			names[i] = fmt.Sprintf("drop %d (%s)", u.Template, u.Name)
		case u.Campaign != 0:
			names[i] = fmt.Sprintf("campaign %d (%s)", u.Campaign, u.Name)
		default:
			names[i] = "the messages of the shop"
		}
	}
	return ErrInUse.Because("the picture is in use in %s; take it out of these texts first", strings.Join(names, ", "))
}

// Prefix is where web serves pictures.
const Prefix = "/pictures"

// Path is the address of the picture below the public address of web.
func (p Picture) Path() string {
	return Prefix + "/" + strconv.FormatInt(p.Shop, 10) + "/" + p.Hash + "." + p.Type
}

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Hashed reports whether s can be the hash of a picture.
func Hashed(s string) bool { return hash.MatchString(s) }

var path = regexp.MustCompile(`^/pictures/([1-9][0-9]{0,18})/([0-9a-f]{64})\.(jpeg|png)$`)

// Addressed returns the shop, hash and type of the picture at the address; false if it is no picture
// below the public address of web.
func Addressed(public, address string) (Picture, bool) {
	rest, ok := strings.CutPrefix(address, strings.TrimRight(public, "/"))
	m := path.FindStringSubmatch(rest)
	if !ok || m == nil {
		return Picture{}, false
	}
	shop, err := strconv.ParseInt(m[1], 10, 64)
	return Picture{Shop: shop, Hash: m[2], Type: m[3]}, err == nil
}

// ContentType is the media type of the stored file.
func (p Picture) ContentType() string { return "image/" + p.Type }

// A File is a converted picture.
type File struct {
	Content       []byte
	Type          string
	Width, Height int
}

// Converter makes a picture of an uploaded file: turned upright, reduced to [FitWidth] and
// [FitHeight], in the colours of screens, and without the file's metadata, such as the place where
// a photograph was taken. It returns a [fault.Fields] about the field "file" for content that is no
// picture or too large, or [ErrBusy].
type Converter interface {
	Convert(ctx context.Context, content []byte) (File, error)
}

// Files stores the files of pictures, by shop and hash.
type Files interface {
	// Put stores a file. It may be repeated.
	Put(ctx context.Context, p Picture, content []byte) error
	// Get returns a file, or [ErrNotFound].
	Get(ctx context.Context, p Picture) ([]byte, error)
	// Remove removes a file. An absent file is no error.
	Remove(ctx context.Context, p Picture) error
}

// Store keeps the libraries of the shops.
type Store interface {
	// Add stores the picture after put has stored its file. Of equal pictures only the first is
	// stored, with the later Alt. Add and Remove of one picture exclude each other. It returns
	// [ErrFull], or a fault for a shop that does not exist.
	Add(ctx context.Context, p Picture, put func(context.Context) error, e staff.Entry) (Picture, error)
	// Pictures returns up to limit pictures of the shop with ids below before (0 = any), the newest
	// first, with their uses.
	Pictures(ctx context.Context, shop, before int64, limit int) ([]Picture, error)
	// Describe changes the alternative text. It returns [ErrNotFound].
	Describe(ctx context.Context, p Picture, e staff.Entry) error
	// Remove removes the picture after remove has removed its file. It returns [ErrNotFound], or
	// [ErrInUse] if a current text has the picture.
	Remove(ctx context.Context, shop int64, hash string, remove func(context.Context, Picture) error, e staff.Entry) error
}

// Both are two places of files: the first is written, and the second has older files.
type Both struct{ First, Second Files }

// Put stores a file in the first place.
func (b Both) Put(ctx context.Context, p Picture, content []byte) error {
	return b.First.Put(ctx, p, content)
}

// Get returns a file from the first place that has it, or [ErrNotFound].
func (b Both) Get(ctx context.Context, p Picture) ([]byte, error) {
	content, err := b.First.Get(ctx, p)
	if fault.KindOf(err) == fault.NotFound {
		return b.Second.Get(ctx, p)
	}
	return content, err
}

// Remove removes a file from both places.
func (b Both) Remove(ctx context.Context, p Picture) error {
	if err := b.First.Remove(ctx, p); err != nil {
		return err
	}
	return b.Second.Remove(ctx, p)
}
