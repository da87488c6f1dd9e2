package delivery_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"dropbell/domain/delivery/provider"
	"dropbell/domain/field"
	"dropbell/domain/staff"
	"dropbell/views/i18n"
	"dropbell/web/console/consoletest"
)

// TestProviderPages configures a provider, whose secret is never shown again, tests it with a
// message, disables it and deletes it.
func TestProviderPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	g.As(staff.Marketer).Get("/providers").Is(403)
	b.Get("/providers").Is(200).Has("The provider in the server’s settings delivers all messages", "There is no provider", "/providers/new")
	b.Get("/providers/new").Is(200).Has("kind=twilio", "kind=smtp")
	empty := b.Get("/providers/new?kind=twilio").Is(200).Has("Account SID").HasNot("Set. Leave empty")
	for _, name := range field.Tagged[provider.Spec]("json", "omitempty").Names() {
		if name != "settings" { // each setting has a field of its own
			empty.Has(`name="` + name + `"`)
		}
	}
	wrong := url.Values{"kind": {"twilio"}, "name": {""}, "order": {"x"}, "weight": {"0"}, "key_secret": {"a very secret token"}}
	b.Post("/providers", wrong).Is(422).Has("from 1 to 1,000", "Enter a name").HasNot("very secret")
	form := url.Values{"kind": {"twilio"}, "name": {"Main <1>"}, "order": {"1"}, "weight": {"2"}, "countries": {"de, cn"}, "enabled": {"1"},
		"key_id": {"AC1"}, "from": {"+4915207770123"}, "key_secret": {"a very secret token"}, "request_key": {"once"}}
	b.Post("/providers", form).To("/providers")
	b.Post("/providers", form).To("/providers") // sent twice
	b.Get("/providers").Is(200).Has("Main &lt;1&gt;", "CN, DE", "Ready", "/providers/1/disable").HasNot("/providers/2")
	page := b.Get("/providers/1/edit").Is(200).Has("Set. Leave empty to keep it.", "AC1").HasNot("very secret")
	edit := url.Values{"version": {page.Field("version")}, "name": {"Main"}, "order": {"1"}, "weight": {"2"}, "key_id": {"AC2"}, "from": {"+4915207770123"}, "enabled": {"1"}}
	b.Post("/providers/1", edit).To("/providers")
	b.Post("/providers/1", edit).Is(409) // the version is an old one
	b.Get("/channels/sms/test?provider=1").Is(200).Has("Test Main")
	b.Post("/channels/sms/test?provider=1", url.Values{"recipient": {"+4915207770123"}}).To("/channels/sms/test?provider=1")
	if n := g.Number(`select count(*) from channel_tests where provider_id = 1`); n != 1 {
		t.Errorf("%d tests of the provider", n)
	}
	b.Get("/channels/email/test?provider=1").Is(404)
	b.Post("/providers/1/delete", nil).To("/providers")
	if n := g.Number(`select count(*) from providers where deleted_at is null`); n != 1 {
		t.Error("an enabled provider was deleted")
	}
	b.Get("/providers/1/disable").Is(200).Has("Disable Main?")
	b.Post("/providers/1/disable", nil).To("/providers")
	version := b.Get("/providers/1/delete").Is(200).Has("Delete Main?").Field("version")
	b.Post("/providers/1/delete", url.Values{"version": {version}}).To("/providers")
	b.Get("/providers/1/edit").Is(404)
	if n := g.Number(`select count(*) from audit where object_kind = 'provider' and (before::text || after::text) like '%very secret%'`); n != 0 {
		t.Error("the audit log has a secret")
	}
	b.Get("/audit?kind=provider").Is(200).Has("Main")
}

// TestAMiniProgramIsAProvider: WeChat is one of the kinds. Its sender checks its settings. It has
// no weight and no countries.
func TestAMiniProgramIsAProvider(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Get("/providers/new").Is(200).Has("kind=wechat")
	b.Get("/providers/new?kind=wechat").Is(200).Has("AppSecret", "{{drop}}", "{id}", `type="hidden" name="weight" value="1"`).HasNot(`name="countries"`)
	form := url.Values{"kind": {"wechat"}, "name": {"Tea House"}, "order": {"0"}, "weight": {"1"}, "enabled": {"1"}, "app_id": {"wx0123456789abcdef"},
		"app_secret": {"a very secret secret"}, "template": {"T1"}, "data": {"thing1 = {{drop}}"}, "version": {"trial"}, "page": {"pages/drop?id={id}"}}
	b.Post("/providers", form).To("/providers")
	b.Get("/providers").Is(200).Has("Tea House", "WeChat mini program", "All shops, order 0").HasNot("very secret")
	b.Get("/providers/1/edit").Is(200).Has("wx0123456789abcdef", "Set. Leave empty").HasNot("very secret")
}

// TestAFormIsTried tests the settings of a form before they are saved: nothing is stored, the
// provider's answer is shown without the secret that it repeats, and what is missing is named.
func TestAFormIsTried(t *testing.T) {
	g := consoletest.New(t)
	status := http.StatusUnauthorized
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"results":[{"status":"accepted"}],"error":"unknown `+r.Header.Get("Authorization")+`"}`)
	}))
	t.Cleanup(gateway.Close)
	form := url.Values{"kind": {"json"}, "name": {"Gateway"}, "order": {"0"}, "weight": {"1"}, "url": {gateway.URL}, "token": {"s3cret-token"}, "recipient": {"+4915207770123"}}
	m := g.Hire(staff.Operator)
	b, parts := g.Browser(), g.As(staff.Operator).Htmx()
	b.SignIn(m.Email)
	b.Get("/providers/new?kind=smtp").Is(200).Has("Test before saving", `formaction="/providers/try"`, `name="recipient"`, `value="`+m.Email+`"`, "Create SMTP credentials")
	g.As(staff.Marketer).Post("/providers/try", form).Is(403)

	parts.Post("/providers/try", form).Is(200).Has("Not sent to +4915207770123", "Check the values above", "HTTP 401").HasNot("s3cret", "<form")
	b.Post("/providers/try", form).Is(200).Has("Not sent to +4915207770123", "enter them once more", `value="Gateway"`).HasNot("s3cret")
	status = http.StatusOK
	parts.Post("/providers/try", form).Is(200).Has("The provider took the message for +4915207770123").HasNot("s3cret")
	form.Set("recipient", "nobody")
	form.Del("token")
	parts.Post("/providers/try", form).Is(200).Has("Nothing was sent", `href="#f-token"`, `href="#f-recipient"`)
	if n := g.Number(`select count(*) from providers`); n != 0 {
		t.Errorf("%d providers were stored", n)
	}
	b.Get("/channels/sms/test").Is(200).Has("With settings that were not saved")

	form.Set("token", "s3cret-token")
	b.Post("/providers", form).To("/providers")
	page := b.Get("/providers/1/edit").Is(200).Has(`formaction="/providers/1/try"`)
	edit := url.Values{"version": {page.Field("version")}, "name": {"Gateway"}, "order": {"0"}, "weight": {"1"}, "url": {gateway.URL}, "recipient": {"+4915207770123"}}
	parts.Post("/providers/1/try", edit).Is(200).Has("The provider took the message") // with the stored token
	edit.Set("version", "77")
	parts.Post("/providers/1/try", edit).Is(200).HasNot("took the message")
	if n := g.Number(`select count(*) from audit a where a::text like '%s3cret%'`); n != 0 {
		t.Error("the audit log has a secret")
	}
}

// TestEveryFieldSaysWhereItIsFound in both languages.
func TestEveryFieldSaysWhereItIsFound(t *testing.T) {
	texts, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range provider.Channels() {
		for _, k := range provider.Kinds(c) {
			for _, f := range k.Fields() {
				for _, l := range texts.All() {
					if key := "provider.help." + string(k) + "." + f.Name; !f.Derived && !l.Has(key) && (f.Name != "url" || f.Required) {
						t.Errorf("%s has no %s", l.Tag, key)
					}
				}
			}
		}
	}
}
