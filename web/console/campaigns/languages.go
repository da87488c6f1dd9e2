package campaigns

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	"dropbell/web/console/shell"
)

// typedLanguages adds the form's texts in further languages to v. Their number is bounded by one
// more than [delivery.MaxLanguages], which [readCopy] refuses, or by the number of languages of the
// stored content, which may be older than that limit.
func typedLanguages(r *http.Request, v map[string]string, stored delivery.Copy) {
	for i := 0; i <= max(delivery.MaxLanguages, languagesOf(stored)-1) && r.PostForm.Has(campaignpages.LanguageField(i, campaignpages.LanguageTag)); i++ {
		for _, part := range campaignpages.LanguageParts() {
			name := campaignpages.LanguageField(i, part)
			v[name] = strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
		}
	}
	typedBlocks(r, v)
}

// languagesOf is the number of languages that a content has besides the default one.
func languagesOf(c delivery.Copy) int {
	tags := map[string]bool{}
	for _, variant := range c.Variants {
		for tag := range variant.Texts {
			tags[tag] = true
		}
	}
	delete(tags, "")
	return len(tags)
}

// chinese is the only language besides the default language in forms of earlier versions.
const chinese = "zh-CN"

// earlierForm adds languages to v for a form that was opened before an upgrade: the Chinese text
// typed in the form, and the stored texts that the form did not show. It reports whether there are
// such texts; they are lost unless the form is shown again.
func earlierForm(r *http.Request, v map[string]string, stored delivery.Copy) bool {
	if !r.PostForm.Has("title_zh") || campaignpages.Languages(v) > 0 {
		return false
	}
	typed := delivery.Text{Title: strings.TrimSpace(r.PostFormValue("title_zh")), Body: strings.TrimSpace(r.PostFormValue("body_zh"))}
	all := delivery.Copy{Variants: []delivery.Variant{{Texts: map[string]delivery.Text{}}}}
	for i, variant := range stored.Variants {
		if i == 0 {
			maps.Copy(all.Variants[0].Texts, variant.Texts)
		} else if v["title_b"]+v["body_b"] != "" {
			all.Variants = append(all.Variants, variant)
		}
	}
	first := all.Variants[0].Texts
	if delete(first, chinese); !typed.Empty() {
		first[chinese] = typed
	}
	languageValues(v, all, nil)
	return campaignpages.Languages(v) > 0
}

// languagesChanged answers the buttons that add a language to the form or remove a language: it
// shows the form as typed, and stores nothing.
func (h *handlers) languagesChanged(w http.ResponseWriter, r *http.Request, f campaignpages.CampaignForm, do string) error {
	if tag, add := strings.CutPrefix(do, "add"); add {
		if f.Added = campaignpages.Languages(f.Values) < delivery.MaxLanguages; f.Added {
			f.Shown = strconv.Itoa(campaignpages.Languages(f.Values))
			campaignpages.WithLanguage(f.Values, cmp.Or(strings.TrimPrefix(tag, ":"), strings.TrimSpace(r.PostFormValue("new_language"))))
		}
	} else if i, err := strconv.Atoi(do); err == nil {
		f.Shown = ""
		campaignpages.WithoutLanguage(f.Values, i)
	}
	if !shell.Partial(r) {
		return h.showCampaignForm(w, r, http.StatusOK, f)
	}
	spec, _ := h.readCampaign(r, f.Values, f.Shops)
	if err := h.countReaders(r, &f, spec.Audience); err != nil {
		return err
	}
	w.Header().Set("HX-Trigger", "dropbell:check") // the previews and the review follow
	return h.Show(w, r, http.StatusOK, f.LanguagesChanged())
}

// countReaders adds the readers of the audience by language. They are not known without an audience,
// and where counting takes too long.
func (h *handlers) countReaders(r *http.Request, f *campaignpages.CampaignForm, a campaign.Audience) error {
	locales, err := h.Campaigns.Locales(r.Context(), shell.Actor(r), a)
	if fault.KindOf(err) != 0 {
		return nil
	}
	if err == nil {
		tags := slices.DeleteFunc(campaignpages.Tags(f.Values), func(tag string) bool { return tag == "" })
		readers := message.ReadersOf(tags, locales)
		f.Readers = &readers
	}
	return err
}

// languageValues writes the texts in further languages into v. The tags in order come first.
func languageValues(v map[string]string, c delivery.Copy, order []string) {
	tags := slices.Clone(order)
	for _, variant := range c.Variants {
		for _, tag := range tagsOf(variant) {
			if tag != "" && !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags[len(order):])
	for i, tag := range tags {
		set := func(part, value string) { v[campaignpages.LanguageField(i, part)] = value }
		for _, part := range campaignpages.LanguageParts() {
			set(part, "")
		}
		for n, parts := range [][2]string{{campaignpages.LanguageTitle, campaignpages.LanguageBody}, {campaignpages.LanguageTitleB, campaignpages.LanguageBodyB}} {
			if n >= len(c.Variants) {
				break
			}
			campaignpages.SetBlocks(v, campaignpages.TextPlaceOf(n, i), c.Variants[n].Texts[tag].Blocks)
			if t, ok := c.Variants[n].Texts[tag]; ok {
				set(campaignpages.LanguageTag, tag)
				set(parts[0], t.Title)
				set(parts[1], t.Body)
			}
		}
	}
}

// aligned returns the stored texts in the order of the languages in mine, so that the same field
// holds the same language. It adds empty fields to mine for languages that only the stored campaign
// has.
func aligned(theirs, mine map[string]string, c delivery.Copy) {
	var order []string
	for _, tag := range campaignpages.Tags(mine) {
		order = append(order, cmp.Or(tag, "\x00")) // no campaign has a text in it
	}
	languageValues(theirs, c, order)
	for campaignpages.Languages(mine) < campaignpages.Languages(theirs) {
		campaignpages.WithLanguage(mine, "")
	}
}

// readCopy reads the texts in all languages; errors of a tag are added to broken. A further
// language without any typed text is left out.
func readCopy(v map[string]string, percentB, holdOut int, broken *fault.Fields) delivery.Copy {
	text := func(title, body string, version, language int) delivery.Text {
		t := delivery.Text{Title: v[title], Body: v[body]}
		if v["channel"] == delivery.Email.String() {
			t.Blocks = campaignpages.BlocksIn(v, campaignpages.TextPlaceOf(version, language))
		}
		return t
	}
	first, second := map[string]delivery.Text{"": text("title", "body", 0, -1)}, map[string]delivery.Text{}
	if b := text("title_b", "body_b", 1, -1); !b.Empty() {
		second[""] = b
	}
	tags := campaignpages.Tags(v)
	if len(tags) > delivery.MaxLanguages {
		broken.Add(campaignpages.LanguageField(delivery.MaxLanguages, campaignpages.LanguageTag), "rule.languages", "at most %d languages besides the default one", delivery.MaxLanguages)
	}
	given := map[string]bool{}
	for i, tag := range tags {
		name := func(part string) string { return campaignpages.LanguageField(i, part) }
		typed := v[name(campaignpages.LanguageTag)]
		a, b := text(name(campaignpages.LanguageTitle), name(campaignpages.LanguageBody), 0, i), text(name(campaignpages.LanguageTitleB), name(campaignpages.LanguageBodyB), 1, i)
		switch {
		case typed == "" && a.Empty() && b.Empty():
			continue
		case typed == "":
			broken.Add(name(campaignpages.LanguageTag), "rule.required", "is required")
			continue
		case tag == "" && !user.ValidLocale(typed):
			broken.Add(name(campaignpages.LanguageTag), "rule.locale", "must be a language tag such as en or zh-CN")
			continue
		case tag == "": // the API takes any tag of this form
			broken.Add(name(campaignpages.LanguageTag), "rule.no_language", "is no registered language; type a tag such as en or zh-CN, or remove this language")
			continue
		case given[tag]:
			broken.Add(name(campaignpages.LanguageTag), "rule.language_twice", "is in the form twice; remove one of the two")
			continue
		}
		given[tag] = true
		if !b.Empty() {
			second[tag] = b
		}
		if !a.Empty() || b.Empty() {
			first[tag] = a
		}
	}
	c := delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: first}}, HoldOut: holdOut}
	if len(second) > 0 {
		second[""] = text("title_b", "body_b", 1, -1) // a version has a text in the default language
		c.Variants[0].Percent = 100 - percentB
		c.Variants = append(c.Variants, delivery.Variant{Percent: percentB, Texts: second})
	}
	return c
}

// typedField returns the input that a rule about the content concerns: the names of rules end with
// the language of the text. The tags are the tags of [campaignpages.Tags].
func typedField(f fault.Field, tags []string) string {
	rest, isB := strings.CutPrefix(f.Name, "variant_b.")
	part, tag, _ := strings.Cut(rest, ".")
	if part == "blocks" {
		return blockFieldOf(tag, isB, tags)
	}
	if part != "title" && part != "body" {
		return f.Name
	}
	i := -1
	if tag != "" {
		i = slices.Index(tags, tag)
	}
	if i >= 0 && f.Key == "rule.locale" {
		return campaignpages.LanguageField(i, campaignpages.LanguageTag)
	}
	if isB {
		part += "_b"
	}
	if i >= 0 {
		return campaignpages.LanguageField(i, part)
	}
	return part
}
