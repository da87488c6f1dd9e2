package drops_test

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// The step about messages shows the messages of the drop as typed so far, with the shop's text or a
// text of the drop's own, sends them to the member, and loses no typed value. Saving stores the own
// text once for each channel.
func TestMessageStep(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Exec(`update shops set claim_url = 'https://shop.example/{id}'`)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	form.Set("request_key", b.Get("/templates/new").Is(200).Has("5 · Message", "6 · Review", "Shop’s text").Field("request_key"))
	page := b.Post("/templates/message", form).Is(200).Has("Shop 10: Moon cake night (¥20.50 off from ¥1000) opens in 10 minutes", "https://drop.example/d/", "Send to me: E-mail", `value="20.50"`, "Line one")
	if page.Field("request_key") != form.Get("request_key") {
		t.Error("sending the form afterwards would make a second drop")
	}
	if n := g.Number(`select count(*) from templates`); n != 0 {
		t.Error("looking stored something")
	}

	form.Set("message_own", "own")
	b.Post("/templates/message", form).Is(200).Has("must be a language tag")
	form.Set("message_language", "de_at")
	form.Set("message_title", "Bald: {{drop}}")
	form.Set("message_text", "Hallo {{user}}")
	form.Set("over", "email")
	b.Post("/templates/message", form).Is(200).Has("write {{user|there}}", "Hallo {{user}}")
	if n := g.Number(`select count(*) from channel_tests`); n != 0 {
		t.Error("a text with a mistake was sent")
	}
	form.Set("message_text", "Hallo {{user|du}}: {{description}}")
	b.Post("/templates/message", form).Is(200).Has("Bald: Moon cake night", "Hallo Robin Chen: Line one Line two", "is on its way")
	if n := g.Number(`select count(*) from channel_tests where draft -> 'about' ->> 'Drop' = 'Moon cake night' and draft -> 'about' ->> 'Link' = 'https://shop.example/claim' and coalesce(template_id, 0) = 0`); n != 1 {
		var stored string
		g.Must(g.SQL.QueryRow(t.Context(), `select draft::text from channel_tests`).Scan(&stored))
		t.Error("the try does not say what is typed: ", stored)
	}
	form.Set("over", "nonsense")
	b.Post("/templates/message", form).Is(http.StatusUnprocessableEntity)
	form.Del("over")
	form.Set("message_title", "")
	b.Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("Title : Enter a title", "Hallo {{user|du}}")
	form.Set("message_title", "Bald: {{drop}}")
	b.Post("/templates", form).To("/templates/1")
	b.Post("/templates", form).To("/templates/1") // again, as after a broken connection
	if n := g.Number(`select count(*) from message_versions where template_id = 1 and kind = 'reminder' and language = 'de-AT'`); n != 5 {
		t.Errorf("%d texts are stored", n)
	}
	b.Get("/templates/1/message?language=de-AT").Is(200).Has("Hallo {{user|du}}: {{description}}[[ {{link}}]]")
	b.Get("/templates/1/edit").Is(200).Has(`name="drop" value="1"`)
	form.Set("drop", "1")
	form.Set("version", b.Get("/templates/1/edit").Field("version"))
	form.Del("message_own")
	b.Post("/templates/message", form).Is(200).Has("Edit “Moon cake night”").HasNot("Bald: Moon cake night") // in the language of the shop
	g.As(staff.Marketer, 11).Post("/templates/message", form).Is(200).HasNot("Moon cake night (")
	g.As(staff.Viewer).Post("/templates/message", form).Is(http.StatusForbidden)
}
