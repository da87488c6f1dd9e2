// Package ui holds the parts that every page of the console is made of: layout, navigation, tables,
// forms, badges and charts.
//
// Components do not read requests: data that depend on the viewer (language, theme, rights, clock)
// are in a [Frame] inside the context.
package ui

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/views/i18n"
	"dropbell/views/static"
)

// A Frame is the context that every component of one page may read.
type Frame struct {
	Locale    *i18n.Locale
	Languages []*i18n.Locale
	Assets    *static.Assets
	// Theme is "light", "dark" or, to follow the device, empty.
	Theme string
	// Nonce allows the page's own scripts.
	Nonce string
	// Path is the page's own address, with its query.
	Path string
	Now  time.Time
	// Zone is shown where an instant belongs to no shop.
	Zone *time.Location
	// ShopsZone is the zone that all shops of the page have; nil = their zones differ, or the page does not show instants and days
	// of several shops.
	ShopsZone *time.Location
	// Member is the signed-in member; ID 0 = not signed in.
	Member staff.Member
	// Method is how they signed in.
	Method staff.Method
	// MustEnrol is set while the member must have a second factor and has none.
	MustEnrol bool
	Flashes   []Flash
	// Alerts is how many notifications the member has not read; see [MaxAlerts].
	Alerts int
	// People are the names of users on the page, as far as they are known.
	People map[user.ID]string
	// Cells are the names of the installation's databases, and Cell is the one whose lists the console
	// shows; empty = there is one database.
	Cells []string
	Cell  string
	// OfOne is set if the page is about one database, which the member chooses. Silent are the names of
	// databases that did not answer, whose rows are missing.
	OfOne  bool
	Silent []string
	// Behind is the greatest age of the data on the page; 0 = it is current.
	Behind time.Duration
}

// DayZone is the zone of instants and days that belong to several shops: the zone that all of them have, otherwise the viewer's.
func (f *Frame) DayZone() *time.Location { return cmp.Or(f.ShopsZone, f.Zone) }

// pathOnly is the page's address without its query.
func (f *Frame) pathOnly() string {
	path, _, _ := strings.Cut(f.Path, "?")
	return path
}

// A Flash is one line about the result of the last action.
type Flash struct {
	Kind Tone
	Text string
	// Undo is the form that takes the change back; nil = there is none.
	Undo *Undo
}

// An Undo is a form with one button that takes a change back.
type Undo struct {
	Action string
	Fields [][2]string
}

// Tone is the meaning of a colour.
type Tone string

// The tones.
const (
	Neutral Tone = "neutral"
	Info    Tone = "info"
	Good    Tone = "good"
	Warn    Tone = "warn"
	Bad     Tone = "bad"
	Late    Tone = "late"
)

type frameKey struct{}

// With returns a context whose components see f.
func With(ctx context.Context, f *Frame) context.Context {
	return context.WithValue(ctx, frameKey{}, f)
}

// From returns the frame of ctx. It panics if ctx has no frame: a component was rendered outside of
// a page.
func From(ctx context.Context) *Frame { return ctx.Value(frameKey{}).(*Frame) }

// T returns the message key in the viewer's language; see [i18n.Locale.T].
func T(ctx context.Context, key string, args ...any) string { return From(ctx).Locale.T(key, args...) }

// N returns a message that depends on a number; see [i18n.Locale.N].
func N(ctx context.Context, key string, n int64, args ...any) string {
	return From(ctx).Locale.N(key, n, args...)
}

// Num writes a number in the viewer's language.
func Num(ctx context.Context, n int64) string { return From(ctx).Locale.Number(n) }

// Ratio formats f for readers: with a tenth below 10 unless it is whole, and as a whole number from there.
func Ratio(ctx context.Context, f float64) string {
	if text := fmt.Sprintf("%.1f", f); f < 10 && !strings.HasSuffix(text, ".0") {
		return text
	}
	return Num(ctx, int64(math.Round(f)))
}

// May reports whether the viewer may do p for the shop; see [staff.Actor.May].
func May(ctx context.Context, p staff.Permission, shop int64) bool {
	return From(ctx).Member.Actor().Can(p, shop)
}

// MayEverywhere reports whether the viewer may do p for data of every shop; see
// [staff.Actor.MayEverywhere].
func MayEverywhere(ctx context.Context, p staff.Permission) bool {
	return From(ctx).Member.Actor().MayEverywhere(p) == nil
}

// seesContacts reports whether the viewer sees the contacts of users.
func seesContacts(ctx context.Context) bool { return From(ctx).Member.Actor().SeesContacts() }

// Private returns a text that may contain a user's contacts, such as a provider's answer, as the
// viewer may see it.
func Private(ctx context.Context, text string) string {
	if seesContacts(ctx) {
		return text
	}
	return user.MaskText(text)
}

// Said returns a sentence that a program stored in English, or the words of a provider, in the
// viewer's language. Contacts are masked for viewers who may not see them.
func Said(ctx context.Context, text string) string {
	return From(ctx).Locale.Said(Private(ctx, text))
}

// Answered is Said for places whose text does not mention that a provider answered.
func Answered(ctx context.Context, text string) string {
	return From(ctx).Locale.Answered(Private(ctx, text))
}

// OwnHeader is set on every answer of the console. Scripts show no part of a page without this
// header: a proxy may have answered instead.
const OwnHeader = "Dropbell-Console"

// FramingPolicy is [ContentSecurityPolicy] for a page that shows another page of the same site in a
// frame.
func FramingPolicy(nonce string) string { return ContentSecurityPolicy(nonce) + "; frame-src 'self'" }

// WorkerPolicy is [ContentSecurityPolicy] for a page that registers the console's
// service worker, to which a nonce does not apply.
func WorkerPolicy(nonce string) string { return ContentSecurityPolicy(nonce) + "; worker-src 'self'" }

// ContentSecurityPolicy is the policy of all pages: only files of their own site, no inline styles,
// and no scripts without the nonce.
func ContentSecurityPolicy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// BrandedPolicy is [ContentSecurityPolicy] for a page with the picture and the colour of a shop.
func BrandedPolicy(nonce string) string {
	return strings.Replace(strings.Replace(ContentSecurityPolicy(nonce), "img-src 'self'", "img-src 'self' https:", 1), "style-src 'self'", "style-src 'self' 'nonce-"+nonce+"'", 1)
}
