// Package stories renders every page of the console in every state with made-up data, for viewing
// and for tests.
package stories

import (
	"context"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/staff"
	"dropbell/views/i18n"
	"dropbell/views/static"
	"dropbell/views/ui"
)

// A Story is one page in one state.
type Story struct {
	// Name is "page/state".
	Name string
	Page templ.Component
	// Role is the viewer's role; empty is an admin.
	Role staff.Role
	// Shops are the shops that the viewer is limited to; none = every shop.
	Shops []int64
	// Outside is true for pages that are seen before signing in.
	Outside bool
	Flashes []ui.Flash
	Behind  time.Duration
	Silent  []string
	// At is the place of the page that is looked at; empty is its beginning.
	At string
}

// A Look is how a story is seen.
type Look struct{ Theme, Locale string }

// Looks returns every theme in every language.
func Looks() []Look {
	return []Look{{"light", "en"}, {"dark", "en"}, {"light", "zh-CN"}, {"dark", "zh-CN"}}
}

// Now is the time of all stories: one minute before 20:00 in Shanghai.
func Now() time.Time { return time.Date(2026, 11, 20, 11, 59, 0, 0, time.UTC) }

// Book draws stories.
type Book struct {
	Languages *i18n.Languages
	Assets    *static.Assets
}

// NewBook returns a book with the catalogues and assets of the program.
func NewBook() (*Book, error) {
	languages, err := i18n.Load()
	if err != nil {
		return nil, err
	}
	assets, err := static.Load()
	return &Book{languages, assets}, err
}

// Context returns a context in which s can be drawn.
func (b *Book) Context(ctx context.Context, s Story, look Look, nonce string) context.Context {
	f := &ui.Frame{Locale: b.Languages.Match(look.Locale), Languages: b.Languages.All(), Assets: b.Assets,
		Theme: look.Theme, Nonce: nonce, Path: "/", Now: Now(), Zone: shanghai(), Flashes: s.Flashes, Behind: s.Behind, Silent: s.Silent}
	if !s.Outside {
		f.Member = staff.Member{ID: 1, Email: "lin@example.com", Name: "Lin Mei", Role: staff.Admin}
		f.Member.Shops = s.Shops
		if s.Role != "" {
			f.Member.Role = s.Role
		}
	}
	return ui.With(ctx, f)
}

func shanghai() *time.Location {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		return time.UTC
	}
	return zone
}
