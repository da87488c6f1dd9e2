package campaigns_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// language adds a further language to a form.
func language(f url.Values, number, tag, title, body string) {
	f.Set("l"+number+"_language", tag)
	f.Set("l"+number+"_title", title)
	f.Set("l"+number+"_body", body)
	f.Set("l"+number+"_title_b", "")
	f.Set("l"+number+"_body_b", "")
}

// stored are the titles of the campaign with that page.
func stored(g *consoletest.Fixture, page string) (s string) {
	g.Helper()
	g.Must(g.SQL.QueryRow(g.Context(), `select string_agg(v.n || ' ' || t.key || ' ' || (t.value ->> 'title'), '; ' order by v.n, t.key collate "C")
		from campaigns, jsonb_array_elements(content -> 'variants') with ordinality v(v, n), jsonb_each(v.v -> 'texts') t where campaigns.id = $1`, page[len("/campaigns/"):]).Scan(&s))
	return s
}

// A form that was opened before an upgrade, with one language visible and other languages kept, is
// shown again with all languages before it is saved.
func TestAFormFromBeforeAnUpgrade(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	two := []string{"version", "1", "title_b", "Hi", "body_b", "Come too", "percent_b", "40"}
	form := consoletest.CampaignForm(two...)
	language(form, "0", "zh-CN", "你好", "来")
	language(form, "1", "es", "Hola", "Ven")
	form.Set("l1_title_b", "Buenos días")
	form.Set("l1_body_b", "Ven ya")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	old := consoletest.CampaignForm(append(two, "title", "Good day", "title_zh", "您好", "body_zh", "来吧")...)
	a := b.Post(page+"/edit", old).Is(422).Has("Language (Spanish)", "this form was opened before an upgrade", "Good day", "您好")
	b.Post(page+"/edit", a.Form(page+"/edit")).To(page)
	if got, want := stored(g, page), "1  Good day; 1 es Hola; 1 zh-CN 您好; 2  Hi; 2 es Buenos días"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	a = b.Post("/campaigns", consoletest.CampaignForm("title_zh", "您好", "body_zh", "来吧")).Is(422).Has("Language (Chinese (China))")
	chinese := b.Post("/campaigns", a.Form("/campaigns")).Is(http.StatusSeeOther).Header.Get("Location")
	b.Post(chinese+"/edit", consoletest.CampaignForm("version", "1", "title_zh", "", "body_zh", "")).To(chinese) // the Chinese text is removed in it
	if got, want := stored(g, chinese), "1  Hello {{name|you}}"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

// Saving a campaign as shown changes nothing, so that the request for approval stays open.
func TestSavingAnUnchangedCampaign(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	page := b.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	g.Exec(`update campaigns set content = '{"variants":[{"percent":100,"texts":{"":{"title":"a","body":"b"},"zh-hant":{"title":"c","body":"d\r\ne"}}}]}'`)
	b.Post(page+"/edit", b.Get(page+"/edit").Is(200).Form(page+"/edit")).To(page)
	if n := g.Number(`select version from campaigns`); n != 1 {
		t.Errorf("it is stored as version %d", n)
	}
	form := b.Get(page + "/edit").Is(200).Form(page + "/edit")
	form.Set("l0_language", "en-x-a")
	b.Post(page+"/edit", form).Is(422).Has(`<a href="#f-l0_language">Language (en-x-a)</a>`)
}

// A draft stored by the API has a language that is not registered, or more languages than a
// campaign may now have. The form shows all languages, loses none of them, and says what to do.
func TestLanguagesThatTheFormDoesNotTake(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	page := b.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location")
	g.Exec(`update campaigns set content = '{"variants":[{"percent":100,"texts":{"":{"title":"a","body":"b"},"zzx":{"title":"c","body":"d"}}}]}'`)
	form := b.Get(page + "/edit").Is(200).Form(page + "/edit")
	b.Post(page+"/edit", form).Is(422).Has("is no registered language", "or remove this language", `value="zzx"`)

	g.Exec(`update campaigns set content = jsonb_build_object('variants', jsonb_build_array(jsonb_build_object('percent', 100, 'texts',
		'{"":{"title":"a","body":"b"}}'::jsonb || (select jsonb_object_agg('de-AT-x' || n, '{"title":"c","body":"d"}'::jsonb) from generate_series(100, 159) n))))`)
	form = b.Get(page + "/edit").Is(200).Has(`name="l59_title"`).Form(page + "/edit")
	form = b.Post(page+"/edit", form).Is(422).Has("at most 50 languages", `name="l59_title"`).Form(page + "/edit")
	if form.Get("l59_title") != "c" {
		t.Error("the text of the last language is lost")
	}
}

// The form takes as many languages as a campaign may have, and says so.
func TestTooManyLanguages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("languages", "add")
	for i := range delivery.MaxLanguages - 1 {
		language(form, strconv.Itoa(i), "de", "Hallo", "Komm")
	}
	form = b.Post("/campaigns", form).Is(200).Has(`name="l49_language"`).HasNot("Add language").Form("/campaigns")
	form.Set("languages", "add")
	b.Post("/campaigns", form).Is(200).HasNot(`name="l50_language"`)
	form.Del("languages")
	language(form, "50", "fr", "Salut", "Viens")
	language(form, "51", "es", "Hola", "Ven")
	b.Post("/campaigns", form).Is(422).Has("Language (French)", "at most 50 languages").HasNot(`name="l51_language"`)
}

// A marketer writes a campaign in several languages with plain forms. The buttons for languages
// lose no typed text and store nothing. Errors are shown with their language. The draft, its form
// and its copy have all languages.
func TestACampaignInManyLanguages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/campaigns/new").Is(200).Has("Add language").HasNot(`name="l0_language"`)
	a := b.Post("/campaigns", consoletest.CampaignForm("languages", "add", "title_b", "Hi", "body_b", "Come too", "percent_b", "40", "hold_out", "10")).Is(200).
		Has(`name="l0_language"`, `value="Spring &lt;b&gt;"`, "New language", "autofocus")
	form := a.Form("/campaigns")
	language(form, "0", "de_at", "Hallo {{name|du}}", "Komm\r\nbald")
	form.Set("languages", "add")
	form = b.Post("/campaigns", form).Is(200).Has(`value="de_at"`, `name="l1_language"`).Form("/campaigns")
	if form.Get("l0_body") != "Komm\nbald" || form.Get("percent_b") != "40" || form.Get("title_b") != "Hi" {
		t.Errorf("what was typed is lost: %v", form)
	}
	if n := g.Number(`select count(*) from campaigns`); n != 0 {
		t.Error("a language that was added is stored")
	}

	language(form, "1", "nonsense!", "Hola", "Ven")
	b.Post("/campaigns", form).Is(422).Has("Language (nonsense!)", "must be a language tag")
	language(form, "1", "de-AT", "Hola", "Ven")
	b.Post("/campaigns", form).Is(422).Has("is in the form twice")
	language(form, "1", "es", "", "Ven {{nmae}}")
	b.Post("/campaigns", form).Is(422).Has("Title (Spanish)", "Text (Spanish)", "is not a variable", "#f-l1_body")
	language(form, "1", "", "Hola", "Ven")
	b.Post("/campaigns", form).Is(422).Has("Language (New language)", "Choose a language")
	language(form, "1", "es", "Hola", "Ven")
	form.Set("l1_title_b", "Buenos días")
	b.Post("/campaigns", form).Is(422).Has("Second text (Spanish)")
	b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-l1_body_b"`)
	form.Set("l1_body_b", "Ven ya")
	language(form, "2", "", "", "") // nothing is typed in it
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	if got, want := stored(g, page), "1  Hello {{name|you}}; 1 de-AT Hallo {{name|du}}; 1 es Hola; 2  Hi; 2 es Buenos días"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	b.Get(page).Is(200).Has("Austrian German", "Hallo Robin Chen", "Spanish · second version", "Buenos días")
	b.Get(page + "/publish").Is(200).Has("Besides the default language it is written in: Austrian German, Spanish.")

	copied := b.Get("/campaigns/new?from=" + page[len("/campaigns/"):]).Is(200).Form("/campaigns")
	copied.Set("name", "Again")
	again := b.Post("/campaigns", copied).Is(http.StatusSeeOther).Header.Get("Location")
	if a, b := stored(g, page), stored(g, again); a != b {
		t.Errorf("the copy has %s, not %s", b, a)
	}

	// Another member removes a language and adds one meanwhile.
	mine := b.Get(page + "/edit").Is(200).Form(page + "/edit")
	theirs := b.Get(page + "/edit").Is(200).Form(page + "/edit")
	theirs.Set("languages", "0")
	theirs = b.Post(page+"/edit", theirs).Is(200).Has(`name="l0_language"`).HasNot(`name="l1_language"`, "Hallo").Form(page + "/edit")
	if theirs.Get("l0_language") != "es" || theirs.Get("l0_title_b") != "Buenos días" {
		t.Errorf("the wrong language is removed: %v", theirs)
	}
	language(theirs, "1", "fr", "Salut", "Viens")
	b.Post(page+"/edit", theirs).To(page)
	mine.Set("body", "Come soon")
	conflict := b.Post(page+"/edit", mine).Is(http.StatusConflict).Has("Title (Austrian German)", "Salut", "Come soon").HasNot("Title (Spanish)")
	b.Post(page+"/edit", conflict.Form(page+"/edit")).To(page)
	if got, want := stored(g, page), "1  Hello {{name|you}}; 1 de-AT Hallo {{name|du}}; 1 es Hola; 2  Hi; 2 es Buenos días"; got != want {
		t.Errorf("my version is not taken: %s", got)
	}
	b.Do(http.MethodPost, "/campaigns", consoletest.CampaignForm("languages", "99")).Is(200)
	g.As(staff.Viewer).Post("/campaigns", consoletest.CampaignForm("languages", "add")).Is(http.StatusForbidden)
}

// Languages are added by their names: from the list, or with one button for a language in which readers
// of the audience lack a text. The tab that was shown stays, and the tab of a text with an error comes
// first.
func TestLanguagesAreChosenByName(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, locale) select i, (array['en', 'de-AT', 'de', 'zh-CN', ''])[i % 5 + 1] from generate_series(1, 50) i`)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("languages", "add", "new_language", "fr")
	a := b.Post("/campaigns", form).Is(200).Has(`name="l0_language" value="fr"`, `<strong>French</strong>`, "0 readers", "50 readers", "missing for 20 readers", `value="add:de"`,
		`<option value="de">German · 20 readers</option>`, `<option value="it">Italian</option>`, `name="language_shown" value="0" id="tab-language_shown-0" checked`)
	form = a.Form("/campaigns")
	form.Set("languages", "add:de")
	form = b.Post("/campaigns", form).Is(200).Has(`name="l1_language" value="de"`, "20 readers", "30 readers", `value="1" id="tab-language_shown-1" checked`).HasNot("missing for 20 readers").Form("/campaigns")
	language(form, "0", "fr", "Salut", "")
	language(form, "1", "de", "Hallo", "Komm")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("Text (French)", `value="0" id="tab-language_shown-0" checked`)
	b.Post("/campaigns/preview", form).Is(200).Has(`<hx-partial hx-target="#readers-0-0">30 readers</hx-partial>`, `<hx-partial hx-target="#readers-0-2">20 readers</hx-partial>`, `hx-target="#languages-missing"`)
	form.Set("audience", "user_ids")
	form.Set("audience_value", "1 2")
	b.Post("/campaigns/preview", form).Is(200).Has(`<hx-partial hx-target="#readers-0-0">0 readers</hx-partial>`, `<hx-partial hx-target="#readers-0-2">2 readers</hx-partial>`)
	b.Header.Set("Accept-Language", "zh-CN")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("德语", "法语", "2 位读者")
}
