package middleware

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures requests by route pattern, method and class of status.
// A nil Metrics measures nothing.
type Metrics struct {
	seconds *prometheus.HistogramVec
	// observers spares the hot path the label lookup.
	observers sync.Map // of series to prometheus.Observer
}

type series struct {
	method, route string
	class         int
}

// NewMetrics registers its collectors with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "dropbell_http_request_duration_seconds",
		Help:    "Time from the first byte of a request's headers to the end of its answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})}
	registry.MustRegister(m.seconds)
	return m
}

func (m *Metrics) observe(method, route string, status int, took time.Duration) {
	if m == nil {
		return
	}
	key := series{knownMethod(method), route, status / 100}
	o, ok := m.observers.Load(key)
	if !ok {
		o, _ = m.observers.LoadOrStore(key, m.seconds.WithLabelValues(key.method, key.route, string(rune('0'+key.class))+"xx"))
	}
	o.(prometheus.Observer).Observe(took.Seconds())
}

// knownMethod keeps clients from inventing label values and log text.
func knownMethod(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodHead, http.MethodOptions}, method) {
		return method
	}
	return "other"
}
