package middleware

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A Budget bounds how many requests of one kind are served at a time. Requests above it are to be
// refused at once: each waiting request holds memory, and a process that runs out of memory serves
// no request. A nil Budget has no bound.
type Budget struct {
	limit    int64
	inFlight atomic.Int64
	refused  prometheus.Counter
}

// BudgetMetrics are the metrics of all budgets of a process, by kind of request.
type BudgetMetrics struct {
	registry prometheus.Registerer
	refused  *prometheus.CounterVec
}

// NewBudgetMetrics registers its collectors with registry.
func NewBudgetMetrics(registry prometheus.Registerer) *BudgetMetrics {
	m := &BudgetMetrics{registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_http_refused_total",
		Help: "Requests refused at once because as many as the process has memory for were being served, by kind."}, []string{"kind"})}
	registry.MustRegister(m.refused)
	return m
}

// NewBudget returns a budget of limit requests at a time. kind names it in the
// metrics; m may be nil.
func NewBudget(limit int, kind string, m *BudgetMetrics) *Budget {
	b := &Budget{limit: int64(limit)}
	if m == nil {
		return b
	}
	b.refused = m.refused.WithLabelValues(kind)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_http_in_flight",
		Help: "Requests being served, by kind, without streams.", ConstLabels: prometheus.Labels{"kind": kind}},
		func() float64 { return float64(b.inFlight.Load()) }))
	return b
}

// Enter reports whether one more request may be served. If so, call Leave when it is answered.
func (b *Budget) Enter() bool {
	if b == nil {
		return true
	}
	if b.inFlight.Add(1) <= b.limit {
		return true
	}
	b.inFlight.Add(-1)
	if b.refused != nil {
		b.refused.Inc()
	}
	return false
}

// Leave gives the place of an answered request back.
func (b *Budget) Leave() {
	if b != nil {
		b.inFlight.Add(-1)
	}
}

// Bound passes requests on as the budget allows; refuse answers requests above it. Requests that
// exempt reports, such as streams, are not counted.
func Bound(b *Budget, exempt func(*http.Request) bool, refuse http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case exempt(r):
				next.ServeHTTP(w, r)
			case !b.Enter():
				refuse(w, r)
			default:
				defer b.Leave()
				next.ServeHTTP(w, r)
			}
		})
	}
}
