package program

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/telemetry"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/redeemcode"
	"dropbell/domain/template"
	"dropbell/web/middleware"
)

// carrier is the shared address space (RFC 6598) that clusters assign to their machines; it does
// not occur on the internet.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// nearby serves metrics without a token only to clients on this machine or in a private network
// that do not come through a proxy.
func nearby(token string, metrics http.Handler) http.Handler {
	if token != "" {
		return metrics
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		ip := from.Addr().Unmap()
		private := err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || carrier.Contains(ip))
		if !private || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
			http.Error(w, "metrics are for private networks: set METRICS_TOKEN or METRICS_ADDR", http.StatusForbidden)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// serveMetrics serves metrics on an address of their own, if it is configured, until stop is
// called.
func (p *program) serveMetrics() (stop func(), err error) {
	if p.Config.MetricsAddr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", p.Config.MetricsAddr)
	if err != nil {
		return nil, fmt.Errorf("METRICS_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", telemetry.Metrics(p.gatherer(), p.Config.MetricsToken))
	server := middleware.Server(mux, p.Log)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.Log.Error("metrics are no longer served", "error", err)
		}
	}()
	p.Log.Info("web serves metrics", "address", listener.Addr().String())
	return func() { _ = server.Close() }, nil
}

// groupMetrics measures group commits.
func (p *program) groupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_size",
		Help: "Reservations or cancellations committed by one statement.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_seconds",
		Help: "Time to commit one group.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// claimGroupMetrics measures groups of claims.
func (p *program) claimGroupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_claim_group_size",
		Help: "Claims decided by one transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_claim_group_seconds",
		Help: "Time to decide and commit one group of claims.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// paymentGroupMetrics measures groups of steps of payment.
func (p *program) paymentGroupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_payment_group_size",
		Help: "Steps of payment decided by one transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_payment_group_seconds",
		Help: "Time to read, decide and commit one group of steps of payment.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// gateGroupMetrics measures the script calls of the claim gate.
func (p *program) gateGroupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_size",
		Help: "Claims decided by one script call of the claim gate.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_gate_group_seconds",
		Help: "Time of one script call of the claim gate.", Buckets: prometheus.ExponentialBuckets(.00025, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// redemptionMetrics counts the answers to codes.
func (p *program) redemptionMetrics() func(error) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_redemptions_total", Help: "Redeem codes answered, by result."}, []string{"result"})
	p.Registry.MustRegister(total)
	result := func(err error) string { return claimResult(claim.Issued, err) }
	for _, err := range []error{nil, redeemcode.ErrInvalid, redeemcode.ErrUsed, claim.ErrSoldOut, claim.ErrLimit} {
		total.WithLabelValues(result(err)) // an increase from nothing is none
	}
	return func(err error) { total.WithLabelValues(result(err)).Inc() }
}

// claimMetrics counts the answers to claims, and the refusals that the prefilter gave from memory.
func (p *program) claimMetrics() (answered *prometheus.CounterVec, fromMemory prometheus.Counter) {
	answered = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_claims_total",
		Help: "Claims answered, by result."}, []string{"result"})
	fromMemory = prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_claims_from_memory_total",
		Help: "Refusals that cost no transaction."})
	p.Registry.MustRegister(answered, fromMemory)
	for _, result := range []error{nil, claim.ErrSoldOut, claim.ErrLimit, claim.ErrNotStarted, claim.ErrEnded, template.ErrNotOpen,
		template.ErrNotFound, claim.ErrIdempotency, claim.ErrOverloaded} {
		answered.WithLabelValues(claimResult(claim.Issued, result)) // an increase from nothing is none
	}
	return answered, fromMemory
}

// couponStepMetrics returns a function that counts the steps of payment.
func (p *program) couponStepMetrics() func(s coupon.Step, outcome string) {
	taken := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_coupon_steps_total",
		Help: "Steps of payment that changed a coupon (done) or were refused."}, []string{"step", "result"})
	for _, s := range []coupon.Step{coupon.StepLock, coupon.StepConfirm, coupon.StepRelease, coupon.StepRefund} {
		taken.WithLabelValues(string(s), coupon.Done)
		taken.WithLabelValues(string(s), "refused")
	}
	p.Registry.MustRegister(taken)
	return func(s coupon.Step, outcome string) {
		if outcome != coupon.Done {
			outcome = "refused"
		}
		taken.WithLabelValues(string(s), outcome).Inc()
	}
}
