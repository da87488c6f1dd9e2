package delivery_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// pemOf is a private key as Apple and Google issue them.
func pemOf(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// secretLine is a line of the key that no page may show.
func secretLine(key string) string { return strings.Split(key, "\n")[1] }

// TestAppsOnPhonesAreProviders: the keys of Apple and Google are checked when they are typed, with
// an error that says what to do, and are never shown again.
func TestAppsOnPhonesAreProviders(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Get("/providers/new").Is(200).Has("kind=apns", "kind=fcm")
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err2 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	r2048, err3 := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	key := pemOf(t, p256)
	b.Get("/providers/new?kind=apns").Is(200).Has("com.example.shop", ` name="key" rows=`, "sandbox", `type="hidden" name="weight" value="1"`).HasNot(`name="countries"`)
	apple := url.Values{"kind": {"apns"}, "name": {"Tea House on iPhones"}, "order": {"0"}, "weight": {"1"}, "enabled": {"1"}, "topic": {"com.example.tea"},
		"key": {key}, "key_id": {"ABC123DEFG"}, "team_id": {"DEF123GHIJ"}, "builds": {"sandbox"}}
	with := func(form url.Values, name, value string) url.Values {
		changed := url.Values{name: {value}}
		for k, v := range form {
			if k != name {
				changed[k] = v
			}
		}
		return changed
	}
	for _, c := range []struct{ field, value, says string }{
		{"key", pemOf(t, p384), "must be a P-256 key"},
		{"key", pemOf(t, r2048), "must be a P-256 key"},
		{"key", strings.ReplaceAll(key, "\n", ""), "with its lines -----BEGIN PRIVATE KEY-----"},
		{"key", "", "Paste the key file"},
		{"key_id", "abc", "ten capital letters and digits"},
		{"team_id", "DEF", "ten capital letters and digits"},
		{"topic", "tea", "such as com.example.shop"},
		{"builds", "beta", "must be one of the choices"},
		{"url", "http://push.example.com", "must not cross the network in clear"},
	} {
		b.Post("/providers", with(apple, c.field, c.value)).Is(422).Has(c.says).HasNot(secretLine(key))
	}
	b.Post("/providers", apple).To("/providers")
	page := b.Get("/providers/1/edit").Is(200).Has("com.example.tea", "Set. Leave empty").HasNot(secretLine(key))
	change := with(with(apple, "key", ""), "version", page.Field("version"))
	b.Post("/providers/1", with(change, "topic", "com.example.coffee")).Is(422).Has("must be of the same app as before, com.example.tea; add a provider")
	b.Post("/providers/1", with(change, "name", "Tea House")).To("/providers")

	account := func(without string) string {
		fields := map[string]string{"project_id": "tea-house-1a2b3", "private_key": pemOf(t, r2048), "client_email": "push@tea.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token"}
		delete(fields, without)
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	b.Get("/providers/new?kind=fcm").Is(200).Has("google-services.json", "600,000", ` name="account" rows=`).HasNot(`name="project"`)
	google := url.Values{"kind": {"fcm"}, "name": {"Tea House on Android"}, "order": {"0"}, "weight": {"1"}, "enabled": {"1"}, "account": {account("")}}
	for _, c := range []struct{ field, value, says string }{
		{"account", "not JSON", "must be the JSON file as Google issued it"},
		{"account", account("private_key"), "must have project_id, private_key, client_email and token_uri"},
		{"account", strings.ReplaceAll(account(""), "-----BEGIN PRIVATE KEY-----", ""), "must be the key as Google issued it"},
		{"account", strings.ReplaceAll(account(""), "https://oauth2", "http://oauth2"), "token_uri of the service account of FCM must be an https address"},
		{"account", `{"project_info":{"project_id":"tea-house-1a2b3"}}`, "google-services.json"},
		{"per_minute", "0", "use a number from 1 to 10000000"},
		{"url", "http://push.example.com", "must not cross the network in clear"},
	} {
		b.Post("/providers", with(google, c.field, c.value)).Is(422).Has(c.says).HasNot("gserviceaccount.com", secretLine(pemOf(t, r2048)))
	}
	b.Post("/providers", google).To("/providers")
	b.Get("/providers").Is(200).Has("Tea House", "com.example.tea, All shops, order 0", "tea-house-1a2b3, All shops, order 0", "Firebase Cloud Messaging").HasNot("gserviceaccount.com")
	page = b.Get("/providers/2/edit").Is(200).Has("Firebase project: tea-house-1a2b3").HasNot("gserviceaccount.com")
	change = with(google, "version", page.Field("version"))
	b.Post("/providers/2", with(change, "account", strings.ReplaceAll(account(""), "tea-house-1a2b3", "coffee-house"))).Is(422).Has("must be of the same app as before, tea-house-1a2b3; add a provider")
	b.Post("/providers/2", with(change, "account", account(""))).To("/providers")
	b.Get("/providers/2/disable").Is(200).Has("they are skipped", "without naming their app")
	b.Get("/channels/webpush/test?provider=2").Is(200).Has("Test Tea House on Android")
	if n := g.Number(`select count(*) from audit where object_kind = 'provider' and (before::text || after::text) ~ 'PRIVATE|gserviceaccount'`); n != 0 {
		t.Error("the audit log has a secret")
	}
}
