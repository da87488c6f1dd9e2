package messages

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Editor is the page on which a text is written, next to previews of the message.
type Editor struct {
	Title  string
	Active string
	Crumbs []ui.Crumb
	// URL is the page's address, which its forms go to.
	URL   string
	Place message.Place
	// Draft is the text as it is typed, of Channel; BasedOn the version that was shown.
	Draft   message.Draft
	Channel message.Channel
	BasedOn int64
	// Found is the text that now applies for the key; Written says whether it exists in this
	// language.
	Found   message.Found
	Written bool
	// Languages are the languages that have a text.
	Languages []string
	Errors    []fault.Field
	Previews  parts.Previews
	History   []message.Version
	// Reader is the typed user for the preview.
	Reader string
	// MayEdit is false for members who may only read.
	MayEdit bool
	// Pictures are those of the shop that a mail can have.
	Pictures parts.Pictures
	// Own has the member's contacts.
	Own  parts.Own
	Zone *time.Location
	// Names are the names of the drop by language, nil for a shop; Settings are a shop's, nil for a
	// drop.
	Names     []Name
	NameTyped Name
	// Coupon is the picture of the drop's coupon, or the typed one.
	Coupon   message.Block
	Settings *Settings
}

// Name is the name of a drop in a language.
type Name struct {
	Language, Title, Description string
}

// Settings is the form of a shop's brand and defaults.
type Settings struct {
	Values  map[string]string
	Errors  []fault.Field
	BasedOn int64
}

// Key is which text the page is about.
func (p Editor) Key() message.Key {
	return message.Key{Kind: p.Draft.Kind, Channel: p.Channel, Language: p.Draft.Language}
}

// Address is the page about this text and reader.
func (p Editor) Address() string {
	q := url.Values{"kind": {string(p.Draft.Kind)}, "channel": {string(p.Channel)}, "language": {p.Draft.Language}}
	if p.Reader != "" {
		q.Set("user", p.Reader)
	}
	return p.URL + "?" + q.Encode()
}

// languages lists the languages that have a text, for the help of the field.
func (p Editor) languages(ctx context.Context) string {
	return strings.Join(p.Languages, ui.T(ctx, "ui.list_join"))
}

func helpText(ctx context.Context, key string) string {
	if key == "" {
		return ""
	}
	return ui.T(ctx, key)
}

func (p Editor) err(ctx context.Context, name string) string {
	return ui.ErrorOf(ctx, p.Errors, name)
}

// Label names a field of the editor.
func Label(ctx context.Context, name string) string {
	if number, ok := strings.CutPrefix(name, "block."); ok {
		number, _, _ = strings.Cut(number, ".")
		return ui.T(ctx, "message.block", number)
	}
	return ui.T(ctx, "message.field."+name)
}

func (p Editor) kinds(ctx context.Context) (list []ui.Option) {
	for _, k := range message.Written() {
		list = append(list, ui.Option{Value: string(k), Label: ui.T(ctx, "message.kind."+string(k))})
	}
	return list
}

func channels(ctx context.Context) (list []ui.Option) {
	for _, c := range message.Channels() {
		list = append(list, ui.Option{Value: string(c), Label: ui.T(ctx, "channel."+string(c))})
	}
	return list
}

// source names the owner of the text that now applies.
func (p Editor) source(ctx context.Context) string {
	switch {
	case !p.Written:
		return ui.T(ctx, "message.not_written", p.Draft.Language)
	case p.Found.Level == message.BuiltIn:
		return ui.T(ctx, "message.built_in")
	case p.Found.Level == message.OfShop && p.Place.Template != 0:
		return ui.T(ctx, "message.of_shop")
	}
	return ui.T(ctx, "message.saved_by", parts.ActorName(ctx, p.Found.Version.By), ui.From(ctx).Locale.DateTime(p.Found.Version.At, p.Zone)+" "+ui.From(ctx).Locale.Zone(p.Found.Version.At, p.Zone))
}

// ownText reports whether the page's place has a text of its own that can be removed.
func (p Editor) ownText() bool {
	return p.Written && (p.Found.Level == message.OfDrop || p.Found.Level == message.OfShop && p.Place.Template == 0)
}

// variables are the text's, in braces.
func (p Editor) variables() []string {
	list := slices.Clone(message.Variables(p.Draft.Kind))
	for i, v := range list {
		if list[i] = "{{" + v + "}}"; v == message.VarUser {
			list[i] = "{{user|there}}"
		}
	}
	return list
}

func (p Editor) missing(ctx context.Context) string {
	var list []string
	for _, v := range p.Draft.Text.Missing(p.Key()) {
		list = append(list, ui.T(ctx, "message.missing."+v))
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

func blockTypes(ctx context.Context) (list []ui.Option) {
	for _, t := range message.BlockTypes() {
		list = append(list, ui.Option{Value: string(t), Label: ui.T(ctx, "message.block."+string(t))})
	}
	return list
}

// field names an input of a block, from 0.
func field(i int, what string) string { return fmt.Sprintf("b%d_%s", i, what) }

func (p Editor) version(v message.Version) string { return strconv.FormatInt(v.ID, 10) }

// CanTest reports whether the member can be reached over the channel.
func (p Editor) CanTest() bool { return p.Own.Reaches(p.Channel) }
