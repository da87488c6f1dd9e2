package campaigns

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/message"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// The inputs of a form for each further language, as [LanguageField] names them: the
// language's tag, the text, and the text of the second version.
const (
	LanguageTag    = "language"
	LanguageTitle  = "title"
	LanguageBody   = "body"
	LanguageTitleB = "title_b"
	LanguageBodyB  = "body_b"
)

// LanguageParts returns all of these.
func LanguageParts() []string {
	return []string{LanguageTag, LanguageTitle, LanguageBody, LanguageTitleB, LanguageBodyB}
}

// LanguageField names an input of the further language with that index, from 0.
func LanguageField(i int, part string) string { return fmt.Sprintf("l%d_%s", i, part) }

// Languages is how many further languages the values of a form hold.
func Languages(values map[string]string) (n int) {
	for {
		if _, ok := values[LanguageField(n, LanguageTag)]; !ok {
			return n
		}
		n++
	}
}

// languagePart is the reverse of [LanguageField].
func languagePart(name string) (i int, part string, ok bool) {
	number, part, _ := strings.Cut(strings.TrimPrefix(name, "l"), "_")
	i, err := strconv.Atoi(number)
	return i, part, err == nil && strings.HasPrefix(name, "l") && slices.Contains(LanguageParts(), part)
}

// WithLanguage adds a further language without texts to the values; tag is "" until it is chosen.
func WithLanguage(values map[string]string, tag string) {
	n := Languages(values)
	for _, part := range LanguageParts() {
		values[LanguageField(n, part)] = ""
	}
	values[LanguageField(n, LanguageTag)] = tag
}

// WithoutLanguage removes the further language with that index, if there is one.
func WithoutLanguage(values map[string]string, i int) {
	n := Languages(values)
	if i < 0 || i >= n {
		return
	}
	for _, part := range LanguageParts() {
		for j := i; j < n-1; j++ {
			values[LanguageField(j, part)] = values[LanguageField(j+1, part)]
		}
		delete(values, LanguageField(n-1, part))
	}
	for version := range 2 {
		for j := i; j < n; j++ {
			SetBlocks(values, TextPlaceOf(version, j), BlocksIn(values, TextPlaceOf(version, j+1)))
		}
	}
}

// language is how the further language is called on the page.
func (p CampaignForm) language(ctx context.Context, i int) string {
	if tag := p.Values[LanguageField(i, LanguageTag)]; tag != "" {
		return parts.LanguageName(ctx, tag)
	}
	return ui.T(ctx, "campaign.language.new")
}

// The inputs whose values are the shown language of each version: the index of a further language,
// or "" for the default one.
const (
	ShownLanguage  = "language_shown"
	ShownLanguageB = "language_shown_b"
)

// Tags are the canonical tags of the further languages in the values of a form; "" where the typed
// text is no tag.
func Tags(values map[string]string) []string {
	list := make([]string, Languages(values))
	for i := range list {
		list[i], _ = message.Canonical(values[LanguageField(i, LanguageTag)])
	}
	return list
}

func (p CampaignForm) tags() []string { return Tags(p.Values) }

// readers are the readers of the audience by the languages of the form; false while they are not
// known.
func (p CampaignForm) readers() (message.Readers, bool) {
	if p.Readers == nil {
		return message.Readers{}, false
	}
	return *p.Readers, true
}

// tab is the tab of a further language of a version; -1 is the default language.
func (p CampaignForm) tab(ctx context.Context, version, i int) parts.LanguageTab {
	t := parts.LanguageTab{Group: ShownLanguage, NoteID: fmt.Sprintf("readers-%d-%d", version, i+1)}
	if version == 1 {
		t.Group = ShownLanguageB
	}
	if i >= 0 {
		t.Value, t.Tag = strconv.Itoa(i), p.Values[LanguageField(i, LanguageTag)]
		if t.Tag == "" {
			t.Tag = ui.T(ctx, "campaign.language.new")
		}
	}
	if r, known := p.readers(); known && i < 0 {
		t.Readers = &r.Other
	} else if n := int64(0); known {
		n = r.Of[p.tags()[i]]
		t.Readers = &n
	}
	t.Current = t.Value == p.shownLanguage(ctx, version)
	return t
}

// shownLanguage is the value of the tab that is shown: of the first text with an error, otherwise as
// the form says.
func (p CampaignForm) shownLanguage(ctx context.Context, version int) string {
	wrong := ui.ErrorsOf(ctx, p.Errors)
	for i := -1; i < Languages(p.Values); i++ {
		of := TextPlaceOf(version, i)
		for name := range wrong {
			if slices.Contains(textInputs(version, i), name) || strings.HasPrefix(name, string(of)+"_block") {
				return strings.TrimPrefix(strconv.Itoa(i), "-1")
			}
		}
	}
	chosen := p.Shown
	if version == 1 {
		chosen = p.ShownB
	}
	if i, err := strconv.Atoi(chosen); err == nil && i >= 0 && i < Languages(p.Values) {
		return chosen
	}
	return ""
}

// textInputs are the inputs of the title and the text of a version in a further language.
func textInputs(version, i int) []string {
	switch {
	case i < 0 && version == 0:
		return []string{"title", "body"}
	case i < 0:
		return []string{"title_b", "body_b"}
	case version == 0:
		return []string{LanguageField(i, LanguageTag), LanguageField(i, LanguageTitle), LanguageField(i, LanguageBody)}
	}
	return []string{LanguageField(i, LanguageTitleB), LanguageField(i, LanguageBodyB)}
}

// named reports whether the further language has a tag that needs no choice.
func (p CampaignForm) named(ctx context.Context, i int) bool {
	return p.tags()[i] != "" && ui.ErrorOf(ctx, p.Errors, LanguageField(i, LanguageTag)) == ""
}

// tagChoice is the choice of a further language by its name.
func (p CampaignForm) tagChoice(ctx context.Context, i int) ui.ChoiceProps {
	name := LanguageField(i, LanguageTag)
	c := ui.ChoiceProps{Name: name, Label: ui.T(ctx, "campaign.field.language"), Value: p.Values[name], Error: ui.ErrorOf(ctx, p.Errors, name), Required: true,
		Focus: p.Added && i == Languages(p.Values)-1, Options: []ui.Option{{Label: ui.T(ctx, "language.choose")}}}
	r, _ := p.readers()
	return parts.LanguageChoice(ctx, c, r.Missing)
}

// newLanguage is the choice of a language to add.
func (p CampaignForm) newLanguage(ctx context.Context) ui.ChoiceProps {
	r, _ := p.readers()
	return parts.LanguageChoice(ctx, ui.ChoiceProps{Name: "new_language", Label: ui.T(ctx, "language.new"), Required: true, Options: []ui.Option{{Label: ui.T(ctx, "language.choose")}}}, r.Missing, p.tags()...)
}

// missing are the languages of readers without a text.
func (p CampaignForm) missing() []message.Missing {
	r, _ := p.readers()
	return parts.MostMissing(r.Missing)
}

func (p CampaignForm) languageField(ctx context.Context, i int, part, kind string) ui.FieldProps {
	name := LanguageField(i, part)
	return ui.FieldProps{Name: name, Label: ui.T(ctx, "campaign.field."+part), Value: p.Values[name], Type: kind, Required: part != LanguageTitleB && part != LanguageBodyB,
		Error: ui.ErrorOf(ctx, p.Errors, name), Autocomplete: "off", Focus: part == LanguageTitle && p.Added && i == Languages(p.Values)-1 && p.named(ctx, i)}
}

// LabelOf is the label of the named field.
func (p CampaignForm) LabelOf(ctx context.Context, name string) string {
	if i, part, ok := languagePart(name); ok {
		return ui.Bracketed(ctx, ui.T(ctx, "campaign.field."+part), p.language(ctx, i))
	}
	return CampaignLabel(ctx, name)
}
