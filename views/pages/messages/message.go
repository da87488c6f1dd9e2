package messages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Editor is the page on which the texts of one language are written, for every channel, next to
// previews of the messages.
type Editor struct {
	Title  string
	Active string
	Crumbs []ui.Crumb
	// URL is the page's address, which its forms go to.
	URL   string
	Place message.Place
	// Tabbed is set for a drop whose page has tabs.
	Tabbed bool
	// Kind and Language are which texts the page is about.
	Kind     message.Kind
	Language string
	// Texts are the texts of the language, one for each channel.
	Texts []Text
	// Tabs are the languages that have a text, Missing languages of readers without a text, and
	// Counted among which customers their readers are counted.
	Tabs    []parts.LanguageTab
	Missing []message.Missing
	Counted string
	// Errors are the broken rules, by the inputs of the form.
	Errors   []fault.Field
	Previews parts.Previews
	// Reader is the typed user for the preview.
	Reader string
	// MayEdit is false for members who may only read.
	MayEdit bool
	// Pictures are those of the shop that a mail can have.
	Pictures parts.Pictures
	// Own has the member's contacts.
	Own  parts.Own
	Zone *time.Location
	// Name is the name of the drop in the language, nil for a shop; Settings are a shop's, nil for a
	// drop.
	Name *Name
	// Coupon is the picture of the drop's coupon, or the typed one.
	Coupon   message.Block
	Settings *Settings
}

// A Text is the text of one channel as it is typed. BasedOn is the version that was shown, and Was
// the mark of the text that was shown, from which a typed text differs if it was changed.
type Text struct {
	Channel message.Channel
	message.Text
	BasedOn int64
	Was     string
	// Found is the text that now applies for the channel; Written says whether it exists in this
	// language.
	Found   message.Found
	Written bool
	History []message.Version
}

// Name is the name of a drop in the language; BasedOn and Was are as in [Text].
type Name struct {
	Title, Description string
	BasedOn            int64
	Was                string
}

// Settings is the form of a shop's brand and defaults.
type Settings struct {
	Values  map[string]string
	Errors  []fault.Field
	BasedOn int64
}

// Key is the key of the text over the channel.
func (p Editor) Key(c message.Channel) message.Key {
	return message.Key{Kind: p.Kind, Channel: c, Language: p.Language}
}

// Address is the page about these texts and this reader.
func (p Editor) Address() string { return p.AddressOf(p.Language) }

// AddressOf is the page about the texts in another language.
func (p Editor) AddressOf(language string) string {
	q := url.Values{"kind": {string(p.Kind)}, "language": {language}}
	if p.Reader != "" {
		q.Set("user", p.Reader)
	}
	return p.URL + "?" + q.Encode()
}

// open reports whether the text is unfolded on a narrow screen: the first one, and a text with an error.
func (p Editor) open(t Text) bool {
	return t.Channel == p.Texts[0].Channel || slices.ContainsFunc(p.Errors, func(f fault.Field) bool { return strings.HasPrefix(f.Name, Field(t.Channel, "")) })
}

// partOf is the address of a part of the drop's page.
func (p Editor) partOf(tab string) string {
	if tab == "message" {
		return p.URL
	}
	return strings.TrimSuffix(p.URL, "/message") + "?tab=" + tab
}

// missing are the tabs that begin a language of readers.
func (p Editor) missing(ctx context.Context) (list []parts.LanguageTab) {
	for _, m := range parts.MostMissing(p.Missing) {
		list = append(list, parts.LanguageTab{Tag: m.Language, Note: parts.MissingText(ctx, m), URL: p.AddressOf(m.Language)})
	}
	return list
}

// newLanguage is the choice of a language to add.
func (p Editor) newLanguage(ctx context.Context) ui.ChoiceProps {
	var have []string
	for _, t := range p.Tabs {
		have = append(have, t.Tag)
	}
	return parts.LanguageChoice(ctx, ui.ChoiceProps{Name: "language", Label: ui.T(ctx, "language.new"), Required: true}, p.Missing, have...)
}

// Field names an input of the channel.
func Field(c message.Channel, name string) string { return string(c) + "_" + name }

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
	for _, c := range message.Channels() {
		if rest, ok := strings.CutPrefix(name, string(c)+"_"); ok {
			return ui.T(ctx, "channel."+string(c)) + ui.T(ctx, "ui.list_join") + Label(ctx, rest)
		}
	}
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

// source names the owner of the text that now applies.
func (p Editor) source(ctx context.Context, t Text) string {
	switch {
	case !t.Written:
		return ui.T(ctx, "message.channel_missing", parts.LanguageName(ctx, p.Language))
	case t.Found.Level == message.BuiltIn:
		return ui.T(ctx, "message.built_in")
	case t.Found.Level == message.OfShop && p.Place.Template != 0:
		return ui.T(ctx, "message.of_shop")
	}
	return ui.T(ctx, "message.saved_by", parts.ActorName(ctx, t.Found.Version.By), ui.From(ctx).Locale.DateTime(t.Found.Version.At, p.Zone)+" "+ui.From(ctx).Locale.Zone(t.Found.Version.At, p.Zone))
}

// owned reports whether the page's place has a text of its own that can be removed.
func (p Editor) owned(t Text) bool {
	return t.Written && (t.Found.Level == message.OfDrop || t.Found.Level == message.OfShop && p.Place.Template == 0)
}

// missingFacts lists what readers are not told by a text that staff wrote, by channel.
func (p Editor) missingFacts(ctx context.Context) (lines []string) {
	for _, t := range p.Texts {
		var list []string
		for _, v := range t.Text.Missing(p.Key(t.Channel)) {
			list = append(list, ui.T(ctx, "message.missing."+v))
		}
		if len(list) > 0 && (t.Found.Level != message.BuiltIn || t.Changed()) {
			lines = append(lines, ui.Labelled(ctx, ui.T(ctx, "channel."+string(t.Channel)), ui.T(ctx, "message.does_not_say", strings.Join(list, ui.T(ctx, "ui.list_join")))))
		}
	}
	return lines
}

// Changed reports whether the typed text differs from the text that was shown.
func (t Text) Changed() bool { return Mark(t.Text) != t.Was }

// Mark identifies a text.
func Mark(t message.Text) string {
	lines := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", lines(t.Title), lines(t.Body))
	for _, b := range t.Blocks {
		fmt.Fprintf(h, "\n%q %q %q", b.Type, lines(b.Text), lines(b.URL))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// histories are the texts that have versions.
func (p Editor) histories() (list []Text) {
	for _, t := range p.Texts {
		if len(t.History) > 0 {
			list = append(list, t)
		}
	}
	return list
}

func blockTypes(ctx context.Context) (list []ui.Option) {
	for _, t := range message.BlockTypes() {
		list = append(list, ui.Option{Value: string(t), Label: ui.T(ctx, "message.block."+string(t))})
	}
	return list
}

// field names an input of a block of the channel, from 0.
func field(c message.Channel, i int, what string) string {
	return fmt.Sprintf("%s_b%d_%s", c, i, what)
}

func (p Editor) version(v message.Version) string { return strconv.FormatInt(v.ID, 10) }
