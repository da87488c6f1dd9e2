package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"dropbell/adapters/telemetry"
	"dropbell/worker/shell"
)

// serveHTTP answers /livez, /readyz and /metrics until ctx ends.
func (p *program) serveHTTP(ctx context.Context) error {
	listener, err := net.Listen("tcp", p.Config.WorkerHTTPAddr)
	if err != nil {
		return fmt.Errorf("WORKER_HTTP_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", p.ready())
	mux.Handle("GET /metrics", telemetry.Metrics(p.metrics.registry, p.Config.MetricsToken))
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

// awaitSchema returns when the database has all migrations: before, work that
// others could do would be taken and fail. It returns false if ctx ended first.
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
		if !shell.Sleep(ctx, schemaPause) {
			return false
		}
	}
}

// schemaPause is how often a worker that waits for migrations looks.
const schemaPause = 500 * time.Millisecond

// gauge refreshes the gauges and, with them, the queue's registry.
func (p *program) gauge(ctx context.Context) error {
	return errors.Join(p.gaugeDatabase(ctx), p.gaugeQueues(ctx), p.gaugeJobs(ctx), p.hooks.gauge(ctx), each(ctx, p.roles.Gauges))
}

// each does all, whatever fails.
func each(ctx context.Context, all []func(context.Context) error) (err error) {
	for _, do := range all {
		err = errors.Join(err, do(ctx))
	}
	return err
}

func (p *program) gaugeDatabase(ctx context.Context) error {
	waiting, age, err := p.outbox.Backlog(ctx)
	if err != nil {
		return err
	}
	p.metrics.outbox.Set(float64(waiting))
	p.metrics.outboxAge.Set(age)
	unsettled, err := p.outbox.Unhandled(ctx)
	if err != nil {
		return err
	}
	p.metrics.unsettled.Set(float64(unsettled))
	days, err := p.Stores.Housekeeping.EventDaysAhead(ctx)
	if err != nil {
		return err
	}
	p.metrics.eventAhead.Set(float64(days) * 24 * 60 * 60)
	return nil
}

func (p *program) gaugeQueues(ctx context.Context) error {
	depths, err := p.queue.Depth(ctx)
	if err != nil {
		return err
	}
	for _, d := range depths {
		set := func(state string, n int) { p.metrics.queues.WithLabelValues(d.Queue, state).Set(float64(n)) }
		set("pending", d.Pending)
		set("active", d.Active)
		set("scheduled", d.Scheduled)
		set("retry", d.Retry)
		set("archived", d.Archived)
		p.metrics.queueAge.WithLabelValues(d.Queue).Set(d.Oldest.Seconds())
	}
	lag, err := p.bus.Lag(ctx)
	for g, n := range lag {
		p.metrics.lag.WithLabelValues(g.Topic, g.Name).Set(float64(n))
		// A counter that begins with its first event has no increase for alerts to see.
		p.metrics.deadEvents.WithLabelValues(g.Name, g.Topic)
	}
	return err
}
