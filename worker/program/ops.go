package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"dropbell/adapters/telemetry"
	"dropbell/domain/pause"
)

// serveHTTP answers /livez, /readyz and /metrics until ctx ends.
func (p *program) serveHTTP(ctx context.Context) error {
	listener, err := net.Listen("tcp", p.Config.WorkerHTTPAddr)
	if err != nil {
		return fmt.Errorf("WORKER_HTTP_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", p.readyOfAll())
	mux.Handle("GET /metrics", telemetry.Metrics(p.gatherer(), p.Config.MetricsToken))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	stopped := make(chan struct{})
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(end)
		close(stopped)
	}()
	p.Log.Info("operations server is listening", "address", listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// ready answers /readyz.
func (p *program) ready() http.HandlerFunc {
	return p.Ready(p.bus.Health, func(bool) []string { return nil })
}

// awaitSchema returns when the database has all migrations. Before that, this worker would take
// work that workers of the earlier version could do, and fail. It returns false if ctx ended
// first.
func (p *program) awaitSchema(ctx context.Context) bool {
	told := ""
	for {
		err := p.SchemaReady(ctx)
		if err == nil {
			return true
		}
		if err.Error() != told && ctx.Err() == nil {
			told = err.Error()
			p.Log.Warn("worker waits for its database", "error", err)
		}
		if !pause.For(ctx, schemaPause) {
			return false
		}
	}
}

// schemaPause is how often a worker that waits for migrations looks.
const schemaPause = 500 * time.Millisecond
