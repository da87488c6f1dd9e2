// Package i18n holds the console's texts in every language, and how each
// language writes numbers, money and times.
package i18n

import (
	"embed"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed *.json
var files embed.FS

// A Locale is one language with its catalogue. It is safe for concurrent use.
type Locale struct {
	// Tag is the BCP 47 name, as in <html lang>.
	Tag string
	// Name is the name of the language in the language itself.
	Name string

	messages map[string]string
	printer  *message.Printer
	forms    []form // of stored sentences; none in English, in which they are stored
	times    timeLayout
}

// Languages are the console's locales, English first.
type Languages struct{ list []*Locale }

// Load returns the catalogues that are part of the program. They are read once.
func Load() (*Languages, error) { return readOnce() }

var readOnce = sync.OnceValues(readCatalogues)

func readCatalogues() (*Languages, error) {
	l := &Languages{}
	for _, known := range []Locale{
		{Tag: "en", Name: "English", times: englishTimes()},
		{Tag: "zh-CN", Name: "简体中文", times: chineseTimes()},
	} {
		loc := known
		var err error
		if loc.messages, err = catalogue(files, loc.Tag); err != nil {
			return nil, err
		}
		loc.printer = message.NewPrinter(language.MustParse(loc.Tag))
		l.list = append(l.list, &loc)
	}
	for _, loc := range l.list[1:] {
		loc.forms = formsOf(l.Default().messages)
	}
	return l, nil
}

// All returns every locale, English first.
func (l *Languages) All() []*Locale { return l.list }

// Default returns English.
func (l *Languages) Default() *Locale { return l.list[0] }

// Match returns the locale of the first wish whose language the console has. Script and region do
// not matter, as in messages to users. A wish is a BCP 47 tag or the value of an Accept-Language
// header.
func (l *Languages) Match(wishes ...string) *Locale {
	for _, wish := range wishes {
		tags, _, err := language.ParseAcceptLanguage(wish)
		if err != nil {
			continue
		}
		for _, tag := range tags {
			base, _ := tag.Base()
			for _, loc := range l.list {
				if name, _, _ := strings.Cut(loc.Tag, "-"); name == base.String() {
					return loc
				}
			}
		}
	}
	return l.Default()
}

// Has reports whether the catalogue has key.
func (l *Locale) Has(key string) bool {
	_, ok := l.messages[key]
	return ok
}

// Keys returns every key, sorted.
func (l *Locale) Keys() []string {
	keys := make([]string, 0, len(l.messages))
	for k := range l.messages {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// T returns the message key with {0}, {1}, … replaced by the arguments; integers are formatted for
// the language. If the key does not exist, T returns the key itself.
func (l *Locale) T(key string, args ...any) string {
	text, ok := l.messages[key]
	if !ok {
		return key
	}
	return l.fill(text, args)
}

// N is T for a message that depends on a number. The key is "key.one" if the language has a
// singular and n is 1, otherwise "key.other". {0} is the number.
func (l *Locale) N(key string, n int64, args ...any) string {
	form := ".other"
	if n == 1 && l.Has(key+".one") {
		form = ".one"
	}
	return l.T(key+form, append([]any{n}, args...)...)
}

func (l *Locale) fill(text string, args []any) string {
	if len(args) == 0 || !strings.Contains(text, "{") {
		return text
	}
	pairs := make([]string, 0, 2*len(args))
	for i, a := range args {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", l.show(a))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (l *Locale) show(a any) string {
	switch v := a.(type) {
	case string:
		return v
	case int:
		return l.Number(int64(v))
	case int64:
		return l.Number(v)
	}
	return fmt.Sprint(a)
}
