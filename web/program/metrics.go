package program

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"dropbell/adapters/telemetry"
	"dropbell/web/middleware"
)

// carrier is the shared address space (RFC 6598) that clusters give to their
// machines; nobody calls from it over the internet.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// nearby serves metrics without a token only to who calls from this machine or
// a private network, and not through a proxy.
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

// serveMetrics serves metrics on an address of their own, if there is one, until
// stop is called.
func (p *program) serveMetrics() (stop func(), err error) {
	if p.Config.MetricsAddr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", p.Config.MetricsAddr)
	if err != nil {
		return nil, fmt.Errorf("METRICS_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", telemetry.Metrics(p.Registry, p.Config.MetricsToken))
	server := middleware.Server(mux, p.Log)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.Log.Error("metrics are no longer served", "error", err)
		}
	}()
	p.Log.Info("web serves metrics", "address", listener.Addr().String())
	return func() { _ = server.Close() }, nil
}
