package webpush_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/adapters/push/webpush"
	"dropbell/adapters/push/webpush/webpushtest"
	"dropbell/domain/delivery"
)

func TestOnlyPublicHTTPSIsCalled(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a private address was called")
	}))
	defer secure.Close()
	strict := config(t)
	strict.AllowInsecure = false
	loose := config(t)
	for endpoint, cfg := range map[string]webpush.Config{
		secure.URL:                      strict,
		"https://10.0.0.1/x":            strict,
		"https://169.254.169.254/x":     strict,
		"https://[::ffff:127.0.0.1]/x":  strict,
		"https://[fd00::1]/x":           strict,
		"https://100.64.0.1/x":          strict,
		"http://127.0.0.1:9/x":          strict,
		"http://192.0.2.1/x":            loose,
		"http://localhost.evil.example": loose,
		"file:///etc/passwd":            loose,
		"https://user:pw@a.example/x":   loose,
		"":                              loose,
		"https://":                      loose,
	} {
		r := newSender(t, cfg).Send(t.Context(), to(webpushtest.NewBrowser(t, endpoint)))[0]
		if r.Status != delivery.Permanent || !strings.HasPrefix(r.Detail, "the push endpoint") {
			t.Errorf("%q: got %+v", endpoint, r)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := start(t, nil)
	from := start(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL+"/201", http.StatusTemporaryRedirect)
	})
	want(t, newSender(t, config(t)).Send(t.Context(), to(webpushtest.NewBrowser(t, from.URL))), delivery.Transient)
	if len(s.pushes) != 0 {
		t.Error("a redirect was followed")
	}
}
