package coupons

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
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/coupon"
	"dropbell/web/api"
	"dropbell/web/api/coupons"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// serve parses and answers steps of payment without deciding or storing them, behind the same
// middleware as the web program. It prints its address and runs until it is interrupted.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config.CollectRarely(ctx, os.Getenv, config.RoomForRequests) // as web does
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 4, AppName: "bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	router := chi.NewRouter()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	router.Use(middleware.All(middleware.Options{Log: log, Metrics: middleware.NewMetrics(prometheus.NewRegistry())}, new(atomic.Bool))...)
	router.Mount("/api/v1", api.New(api.Deps{
		Deps: pipeline.Deps{Keys: accessdb.NewStaff(db), Idempotency: workdb.NewIdempotency(db), Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }},
		Coupons: coupons.Deps{Coupons: &coupon.Service{Store: answering{}, LockFor: coupon.DefaultLock}},
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := middleware.Server(router, log)
	go func() { <-ctx.Done(); _ = srv.Close() }()
	fmt.Println(listener.Addr())
	if err := srv.Serve(middleware.Connections(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
