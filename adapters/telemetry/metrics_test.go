package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/telemetry"
)

func TestMetricsAreForWhoHasTheToken(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "claims"}, func() float64 { return 7 }))
	ask := func(token, authorization string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		telemetry.Metrics(registry, token).ServeHTTP(w, r)
		return w
	}
	const token = "a token of the operators"
	for _, authorization := range []string{"Bearer " + token, "bearer " + token, "Bearer  " + token + " "} {
		if w := ask(token, authorization); w.Code != 200 || !strings.Contains(w.Body.String(), "claims 7") {
			t.Errorf("%q: %d %s", authorization, w.Code, w.Body)
		}
	}
	for _, authorization := range []string{"", "Bearer", "Bearer ", token, "Basic " + token, "Bearer " + token + "x", "Bearer " + token[1:]} {
		w := ask(token, authorization)
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), "claims 7") || strings.Contains(w.Body.String(), token) {
			t.Errorf("%q: %d %s", authorization, w.Code, w.Body)
		}
	}
	for _, authorization := range []string{"", "Bearer x"} {
		if w := ask("", authorization); w.Code != 200 {
			t.Errorf("without a token: %d", w.Code)
		}
	}
}
