package sms

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
)

// A Template is a text that is registered at a provider, which fills in the variables.
type Template struct {
	// ID is the provider's name of it, such as SMS_154950909.
	ID string `json:"id"`
	// Params are variables of [message.Variables] in the order of the template, or text for the
	// whole message. "url=link" passes the variable link under the name url, for providers that
	// know placeholders by name.
	Params []string `json:"params"`
}

// wholeText is the variable that is the whole message.
const wholeText = "text"

// anyKind and anyLanguage are the keys of templates for all others.
const (
	anyKind     = "*"
	anyLanguage = "*"
)

// Templates are the registered texts of each kind of message and language.
type Templates struct {
	of map[string]map[string]Template
}

// ParseTemplates reads {"reminder":{"zh-CN":{"id":"SMS_1","params":["drop","in"]}}}: the kinds
// of messages, and the languages of each kind; "*" is any other language. An empty text gives no
// templates.
func ParseTemplates(s string) (t Templates, err error) {
	if strings.TrimSpace(s) == "" {
		return t, nil
	}
	decoder := json.NewDecoder(strings.NewReader(s))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t.of); err != nil || decoder.More() {
		return Templates{}, errors.New(`must be JSON such as {"reminder":{"zh-CN":{"id":"SMS_154950909","params":["drop","in","link"]}}}`)
	}
	for _, kind := range slices.Sorted(maps.Keys(t.of)) {
		for _, language := range slices.Sorted(maps.Keys(t.of[kind])) {
			if err := t.of[kind][language].check(kind, language); err != nil {
				return Templates{}, fmt.Errorf("%s, %s: %w", kind, language, err)
			}
		}
	}
	return t, nil
}

func (t Template) check(kind, language string) error {
	kinds := append(message.Written(), message.Campaign, message.Test, message.Verification)
	known := message.Variables(message.Kind(kind))
	switch {
	case kind == anyKind:
		known = message.Variables(message.Cancelled) // which all kinds have
	case !slices.Contains(kinds, message.Kind(kind)):
		return fmt.Errorf("the kind is none of %s, *", join(kinds))
	}
	if tag, ok := message.Canonical(language); language != anyLanguage && (!ok || tag != language) {
		return errors.New("the language is neither a tag such as zh-CN nor *")
	}
	if t.ID == "" {
		return errors.New("the template has no id")
	}
	for _, p := range t.Params {
		if _, v := split(p); v != wholeText && !slices.Contains(known, v) {
			return fmt.Errorf("the parameter %q is none of %s, text", p, strings.Join(known, ", "))
		}
	}
	return nil
}

func join(kinds []message.Kind) string {
	var s []string
	for _, k := range kinds {
		s = append(s, string(k))
	}
	return strings.Join(s, ", ")
}

// whole reports whether the whole message is in it.
func (t Template) whole() bool {
	return slices.ContainsFunc(t.Params, func(p string) bool { _, v := split(p); return v == wholeText })
}

// Empty reports whether there are none.
func (t Templates) Empty() bool { return len(t.of) == 0 }

// Named reports whether any text greets by name.
func (t Templates) Named() bool {
	for _, languages := range t.of {
		for _, template := range languages {
			if slices.ContainsFunc(template.Params, func(p string) bool { _, v := split(p); return v == message.VarUser }) {
				return true
			}
		}
	}
	return false
}

// A Filled is a template with the values of one message.
type Filled struct {
	ID string
	// Names are the names of the placeholders, Values their values.
	Names, Values []string
}

// For returns the template for the message's kind and its reader's language, filled with the
// message's values. found is false if there is no template.
func (t Templates) For(m delivery.Message) (f Filled, found bool) {
	languages := t.of[string(m.Subject.Kind)]
	others := languages == nil
	if others {
		languages = t.of[anyKind]
	}
	template, found := languages[languageOf(languages, m.To.Locale)]
	if found && others && m.Subject.Kind == message.Verification {
		found = template.whole() // without the text there would be no code
	}
	if !found {
		return f, false
	}
	var values map[string]string
	if m.Values != nil {
		values = m.Values()
	}
	f.ID = template.ID
	for _, p := range template.Params {
		name, variable := split(p)
		value := values[variable]
		if variable == wholeText {
			value = Shorten(m.Content.Text)
		}
		f.Names, f.Values = append(f.Names, name), append(f.Values, value)
	}
	return f, true
}

// languageOf returns the key for a reader's locale: the locale's language or a parent language,
// otherwise "*". If "*" is missing and there is only one language, it returns this language.
func languageOf(languages map[string]Template, locale string) string {
	tags := slices.DeleteFunc(slices.Sorted(maps.Keys(languages)), func(tag string) bool { return tag == anyLanguage })
	if tag, ok := message.Choose(tags, locale); ok {
		return tag
	}
	if _, ok := languages[anyLanguage]; !ok && len(tags) == 1 {
		return tags[0]
	}
	return anyLanguage
}

// split returns the name of a place and its variable.
func split(param string) (name, variable string) {
	if name, variable, ok := strings.Cut(param, "="); ok {
		return name, variable
	}
	return param, param
}

// NoTemplate is the refusal of a message for which no text is registered.
func NoTemplate(m delivery.Message) *Refusal {
	return &Refusal{Status: delivery.Permanent, Reason: delivery.ReasonNoTemplate,
		Detail: delivery.DetailOf(fmt.Sprintf("no_template: SMS_TEMPLATES has no template for %s in %s", m.Subject.Kind, orAny(m.To.Locale)))}
}

func orAny(locale string) string {
	if locale == "" {
		return "a language that is not known"
	}
	return locale
}
