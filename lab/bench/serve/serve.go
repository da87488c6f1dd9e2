// Package serve has the servers of the benchmarks that run in a process of the command itself, and
// the measurement of one server under load.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
	"dropbell/web/api"
	"dropbell/web/api/coupons"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Options say which parts of the web program surround the handler.
type Options struct {
	Kind       string // of the server; the end of the name of its profile
	Connects   bool   // the HTTP server and its connections are as in web
	Middleware bool   // every request passes the middleware
}

// As serves a handler below /api/v1 until it is interrupted, and prints its address. open returns
// the handler and the function that ends it. If CPU_PROFILE is set, a profile is written.
func As(o Options, open func(context.Context, *slog.Logger) (http.Handler, func(), error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config.CollectRarely(ctx, os.Getenv, config.RoomForRequests) // as web does
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	router := chi.NewRouter()
	srv := &http.Server{Handler: router}
	if o.Connects {
		srv = middleware.Server(router, log)
	}
	if o.Middleware {
		router.Use(middleware.All(middleware.Options{Log: log, Metrics: middleware.NewMetrics(prometheus.NewRegistry())}, new(atomic.Bool))...)
	}
	handler, end, err := open(ctx, log)
	if err != nil {
		return err
	}
	defer end()
	router.Mount("/api/v1", handler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if path := os.Getenv("CPU_PROFILE"); path != "" {
		f, err := os.Create(path + "." + o.Kind)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	go func() { <-ctx.Done(); _ = srv.Close() }()
	fmt.Println(listener.Addr())
	if o.Connects {
		listener = middleware.Connections(listener)
	}
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Coupons serves the API of coupons as web does, with the dependencies that deps returns. The
// database has the API keys.
func Coupons(kind string, deps func(context.Context, *postgres.DB) (coupons.Deps, error)) error {
	return As(Options{Kind: kind, Connects: true, Middleware: true}, func(ctx context.Context, _ *slog.Logger) (http.Handler, func(), error) {
		quiet := slog.New(slog.DiscardHandler)
		db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 4, AppName: "bench", Log: quiet})
		if err != nil {
			return nil, nil, err
		}
		own, err := deps(ctx, db)
		return api.New(api.Deps{
			Deps:    pipeline.Deps{Keys: accessdb.NewStaff(db), Idempotency: workdb.NewIdempotency(db), Now: Clock, Log: quiet},
			Coupons: own,
		}), db.Close, err
	})
}

// Clock is the present instant in whole microseconds, as web takes it.
func Clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// A Result has the measurements of one server, and the processor time of all its requests.
type Result struct {
	load.Result
	Server, Postgres time.Duration
}

// Each returns the processor time per request, in microseconds.
func (r Result) Each(spent time.Duration) float64 {
	return float64(spent.Nanoseconds()) / 1000 / float64(max(1, r.All))
}

// Measure starts the server of this kind of a benchmark, which its flag -serve names, and puts the
// load on it. A failed request is an error.
func Measure(ctx context.Context, s *stack.Stack, bench, kind string, p load.Plan) (Result, error) {
	server, err := scenario.Serve(ctx, []string{"DATABASE_URL=" + s.PostgresURL, "LOG_LEVEL=warn"}, bench, "-serve", kind)
	if err != nil {
		return Result{}, err
	}
	defer server.Stop()
	p.Addr = server.Ready
	before, err1 := server.CPU()
	beforePG, err2 := s.PostgresCPU(ctx)
	run, err := load.Run(p)
	after, err3 := server.CPU()
	afterPG, err4 := s.PostgresCPU(ctx)
	err = errors.Join(err, err1, err2, err3, err4)
	if err == nil && run.Failures > 0 {
		err = fmt.Errorf("%d of %d requests failed, e.g. %s", run.Failures, run.Requests, run.Example)
	}
	return Result{run, after - before, afterPG - beforePG}, err
}
