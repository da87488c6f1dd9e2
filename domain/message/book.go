package message

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Level says whose a text is.
type Level string

// The levels, the most special first.
const (
	OfDrop  Level = "drop"
	OfShop  Level = "shop"
	BuiltIn Level = "default"
)

// A Book holds the texts of one drop or shop as of one version. It is safe for concurrent use.
// The zero value and nil hold the built-in texts.
type Book struct {
	drop, shop map[Key]Version
	settings   Shop
	shelf      *shelf

	mu        sync.RWMutex
	campaigns map[letter]*Compiled
}

// A shelf caches results computed from a book's versions. Books of the same versions may share a
// shelf.
type shelf struct {
	mu       sync.RWMutex
	choosers map[Key]*chooser  // the language of the key is empty
	forms    map[Key]*Compiled // by the language of the text
	readers  map[Key]*Compiled // by the reader's locale
	used     map[use]bool
	names    map[string]Text // of the drop, by the language of a text
}

// builtIn is the shelf of all books that hold the built-in texts only.
var builtIn shelf

// kept returns the shelf of b.
func (b *Book) kept() *shelf {
	if b == nil || b.shelf == nil {
		return &builtIn
	}
	return b.shelf
}

// Like makes b share the cache of other, a book of the same versions. It returns b, which must
// not have been used yet.
func (b *Book) Like(other *Book) *Book {
	b.shelf = other.kept()
	return b
}

// maxReaders bounds how many locales a book remembers.
const maxReaders = 4096

// NewBook returns the book of the given versions, in any order. They must be the newest version
// of each key of the drop and of the shop.
func NewBook(versions []Version) *Book {
	b := &Book{drop: map[Key]Version{}, shop: map[Key]Version{}}
	if len(versions) > 0 {
		b.shelf = &shelf{}
	}
	var coupon Block
	for _, v := range versions {
		level := b.shop
		if v.Template != 0 {
			level = b.drop
		}
		if v.Text == nil {
			continue
		}
		level[v.Key] = v
		if v.Key.Kind == Settings && v.Text.Shop != nil {
			b.settings = *v.Text.Shop
		}
		if v.Key.Kind == Picture && v.Template != 0 && len(v.Text.Blocks) == 1 {
			coupon = v.Text.Blocks[0]
		}
	}
	b.settings.Coupon = coupon
	return b
}

// Settings are the shop's.
func (b *Book) Settings() Shop {
	if b == nil {
		return Shop{}
	}
	return b.settings
}

// A Found is the text that counts for a reader.
type Found struct {
	Key     Key // with the language of the text
	Text    Text
	Level   Level
	Version Version // zero of a built-in text
}

// Own returns the text of exactly that key: the drop's, the shop's or the built-in text. It
// returns false if there is no text in that language.
func (b *Book) Own(k Key) (Found, bool) {
	if b != nil {
		if v, ok := b.drop[k]; ok {
			return Found{k, *v.Text, OfDrop, v}, true
		}
		if v, ok := b.shop[k]; ok {
			return Found{k, *v.Text, OfShop, v}, true
		}
	}
	t, ok := Default(k)
	return Found{Key: k, Text: t, Level: BuiltIn}, ok
}

// Find returns the text for a reader of locale: in the reader's language or one of its parents,
// otherwise in the shop's language, otherwise in English.
func (b *Book) Find(k Kind, c Channel, locale string) Found {
	key := Key{k, c, b.chooser(Key{Kind: k, Channel: c}).For(locale)}
	f, _ := b.Own(key)
	return f
}

// Languages returns the tags in which there is a text, in alphabetical order.
func (b *Book) Languages(k Kind, c Channel) []string {
	tags := map[string]bool{}
	for _, tag := range builtInLanguages() {
		if _, ok := Default(Key{k, c, tag}); ok {
			tags[tag] = true
		}
	}
	if b != nil {
		for _, level := range []map[Key]Version{b.drop, b.shop} {
			for key := range level {
				if key.Kind == k && key.Channel == c {
					tags[key.Language] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(tags))
}

func builtInLanguages() []string { return slices.Sorted(maps.Keys(defaults)) }

func (b *Book) chooser(k Key) *chooser {
	s := b.kept()
	return cached(&s.mu, &s.choosers, k, func() *chooser { return newChooser(b.Languages(k.Kind, k.Channel), b.Settings().Language, English) })
}

// Compiled returns the text for a reader of locale. The text is compiled at the first call.
func (b *Book) Compiled(k Kind, c Channel, locale string) *Compiled {
	s := b.kept()
	return cached(&s.mu, &s.readers, Key{k, c, locale}, func() *Compiled {
		f := b.Find(k, c, locale)
		return cached(&s.mu, &s.forms, f.Key, func() *Compiled { return Compile(f.Key, f.Text, b.Settings()) })
	})
}

// Campaign returns the compiled text that staff wrote for a campaign; see [CompileCampaign]. The
// text is compiled at the first call.
func (b *Book) Campaign(c Channel, language string, t Text) *Compiled {
	if b == nil {
		return CompileCampaign(c, language, t, Shop{})
	}
	return cached(&b.mu, &b.campaigns, letter{c, language, t.Title, t.Body, fmt.Sprintf("%q", t.Blocks)}, func() *Compiled {
		return CompileCampaign(c, language, t, b.settings)
	})
}

// letter is a text of a campaign.
type letter struct {
	channel                       Channel
	language, title, body, blocks string
}

// Uses reports whether a text for the kind and channel contains the variable, in any language.
// The button of a mail contains the link.
func (b *Book) Uses(k Kind, c Channel, variable string) bool {
	s := b.kept()
	return cached(&s.mu, &s.used, use{k, c, variable}, func() bool {
		return slices.ContainsFunc(b.Languages(k, c), func(tag string) bool {
			f, _ := b.Own(Key{k, c, tag})
			return Compile(f.Key, f.Text, b.Settings()).Uses(variable)
		})
	})
}

// use is a variable in the texts for a kind and channel.
type use struct {
	kind     Kind
	channel  Channel
	variable string
}

// Gaps returns the texts of reminders and corrections, of every channel and language, that have a
// gap in messages without a link; see [NeedsLink].
func (b *Book) Gaps() []Key {
	var list []Key
	for _, k := range []Kind{Reminder, Correction} {
		for _, c := range Channels() {
			for _, tag := range b.Languages(k, c) {
				if f, ok := b.Own(Key{k, c, tag}); ok && f.Text.needsLink(k) {
					list = append(list, f.Key)
				}
			}
		}
	}
	return list
}

func (t Text) needsLink(k Kind) bool {
	return NeedsLink(t.Title, k) || NeedsLink(t.Body, k) || slices.ContainsFunc(t.Blocks, func(b Block) bool { return NeedsLink(b.Text, k) })
}

// cached returns the value stored for the key. It is made at the first call.
func cached[K comparable, V any](mu *sync.RWMutex, store *map[K]V, key K, render func() V) V {
	mu.RLock()
	v, ok := (*store)[key]
	mu.RUnlock()
	if ok {
		return v
	}
	made := render()
	mu.Lock()
	defer mu.Unlock()
	if v, ok := (*store)[key]; ok {
		return v
	}
	if *store == nil {
		*store = map[K]V{}
	}
	if len(*store) < maxReaders {
		(*store)[key] = made
	}
	return made
}

// Name returns the drop's name in a text of the language, or name if there is none.
func (b *Book) Name(language, name string) string {
	if n := b.named(language).Title; n != "" {
		return n
	}
	return name
}

// Description returns the drop's description in a text of the language, or description if there
// is none.
func (b *Book) Description(language, description string) string {
	if d := b.named(language).Body; strings.TrimSpace(d) != "" {
		return d
	}
	return description
}

// Names returns the drop's names in other languages, by language.
func (b *Book) Names() []Version {
	var list []Version
	for key, v := range b.drop {
		if key.Kind == Names {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return strings.Compare(a.Key.Language, b.Key.Language) })
	return list
}

// named returns the drop's name and description for readers of the language; the zero Text if
// there are none.
func (b *Book) named(language string) Text {
	if b == nil {
		return Text{}
	}
	s := b.kept()
	return cached(&s.mu, &s.names, language, func() Text {
		tags := make([]string, 0, len(b.drop))
		for key := range b.drop {
			if key.Kind == Names {
				tags = append(tags, key.Language)
			}
		}
		slices.Sort(tags)
		if at, ok := newChooser(tags).match(language); ok {
			return *b.drop[Key{Kind: Names, Language: tags[at]}].Text
		}
		return Text{}
	})
}

// Render returns the message about f for one reader, as previews show it and senders send it.
// Senders call its steps separately, so that the parts that readers share are made once.
func (b *Book) Render(f Facts, c Channel, r Reader) Content {
	compiled := b.Compiled(f.Kind, c, r.Locale)
	f.Description = b.Description(compiled.Language, f.Description)
	return compiled.Bind(f, b.Name(compiled.Language, f.Drop), zoneOrUTC(r.Zone), false).Content(r.Name, f.Link)
}

func zoneOrUTC(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	return zone
}
