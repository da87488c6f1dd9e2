package campaigns_test

import (
	"net/http"
	"net/url"
	"testing"

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

// A marketer writes a campaign in several languages by plain forms: the buttons for
// languages lose nothing that was typed and store nothing, mistakes are named with
// their language, and the draft, its form and its copy have all languages.
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
	b.Post("/campaigns", form).Is(422).Has("Title (es)", "Text (es)", "is not a variable", "#f-l1_body")
	language(form, "1", "", "Hola", "Ven")
	b.Post("/campaigns", form).Is(422).Has("Language (New language)", "is required")
	language(form, "1", "es", "Hola", "Ven")
	form.Set("l1_title_b", "Buenos días")
	b.Post("/campaigns", form).Is(422).Has("Second text (es)")
	b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-l1_body_b"`)
	form.Set("l1_body_b", "Ven ya")
	language(form, "2", "", "", "") // nothing is typed in it
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	const texts = `select string_agg(v.n || ' ' || t.key || ' ' || (t.value ->> 'title'), '; ' order by v.n, t.key collate "C")
		from campaigns, jsonb_array_elements(content -> 'variants') with ordinality v(v, n), jsonb_each(v.v -> 'texts') t where campaigns.id = $1`
	stored := func(id string) (s string) {
		t.Helper()
		g.Must(g.SQL.QueryRow(t.Context(), texts, id).Scan(&s))
		return s
	}
	if got, want := stored(page[len("/campaigns/"):]), "1  Hello {{name|you}}; 1 de-AT Hallo {{name|du}}; 1 es Hola; 2  Hi; 2 es Buenos días"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	b.Get(page).Is(200).Has("de-AT", "Hallo Robin Chen", "es · second version", "Buenos días")
	b.Get(page + "/publish").Is(200).Has("Besides the default language it is written in: de-AT, es.")

	copied := b.Get("/campaigns/new?from=" + page[len("/campaigns/"):]).Is(200).Form("/campaigns")
	copied.Set("name", "Again")
	again := b.Post("/campaigns", copied).Is(http.StatusSeeOther).Header.Get("Location")
	if a, b := stored(page[len("/campaigns/"):]), stored(again[len("/campaigns/"):]); a != b {
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
	conflict := b.Post(page+"/edit", mine).Is(http.StatusConflict).Has("Title (de-AT)", "Salut", "Come soon").HasNot("Title (es)")
	b.Post(page+"/edit", conflict.Form(page+"/edit")).To(page)
	if got, want := stored(page[len("/campaigns/"):]), "1  Hello {{name|you}}; 1 de-AT Hallo {{name|du}}; 1 es Hola; 2  Hi; 2 es Buenos días"; got != want {
		t.Errorf("my version is not taken: %s", got)
	}
	b.Do(http.MethodPost, "/campaigns", consoletest.CampaignForm("languages", "99")).Is(200)
	g.As(staff.Viewer).Post("/campaigns", consoletest.CampaignForm("languages", "add")).Is(http.StatusForbidden)
}
