package campaigns

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// WithLanguage adds a further language without texts to the values.
func WithLanguage(values map[string]string) {
	n := Languages(values)
	for _, part := range LanguageParts() {
		values[LanguageField(n, part)] = ""
	}
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
		return tag
	}
	return ui.T(ctx, "campaign.language.new")
}

func (p CampaignForm) languageField(ctx context.Context, i int, part, kind string) ui.FieldProps {
	name := LanguageField(i, part)
	f := ui.FieldProps{Name: name, Label: ui.T(ctx, "campaign.field."+part), Value: p.Values[name], Type: kind, Required: part != LanguageTitleB && part != LanguageBodyB,
		Error: ui.ErrorOf(ctx, p.Errors, name), Autocomplete: "off"}
	if part == LanguageTag {
		f.Help, f.Focus = ui.T(ctx, "campaign.help.language"), p.Added && i == Languages(p.Values)-1
	}
	return f
}

// secondOpen reports whether the fields of the second version in further languages are shown open:
// they are if one of them has a text or an error.
func (p CampaignForm) secondOpen(ctx context.Context) bool {
	wrong := ui.ErrorsOf(ctx, p.Errors)
	for i := range Languages(p.Values) {
		for _, part := range []string{LanguageTitleB, LanguageBodyB} {
			if name := LanguageField(i, part); p.Values[name] != "" || wrong[name] != "" {
				return true
			}
		}
	}
	return false
}

// LabelOf is the label of the named field.
func (p CampaignForm) LabelOf(ctx context.Context, name string) string {
	if i, part, ok := languagePart(name); ok {
		return ui.T(ctx, "campaign.field."+part) + " (" + p.language(ctx, i) + ")"
	}
	return CampaignLabel(ctx, name)
}
