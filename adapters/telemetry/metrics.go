package telemetry

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics serves the registry's metrics. If token is set, only requests with this bearer token
// are served; otherwise all requests are.
func Metrics(registry prometheus.Gatherer, token string) http.Handler {
	serve := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	if token == "" {
		return serve
	}
	want := sha256.Sum256([]byte(token)) // hashes have the same length, whatever token a request has
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(shown)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="metrics"`)
			http.Error(w, "metrics need METRICS_TOKEN as a bearer token", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	})
}
