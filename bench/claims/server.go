package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/web/api"
	"dropbell/web/middleware"
)

// agreeable is a gate that gives a coupon to everybody and keeps nothing.
type agreeable struct{}

func (agreeable) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	return claim.Claim{ID: r.ID, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Issued, CouponID: int64(r.ID), At: time.Now()}, nil
}

// serve answers claims without deciding or storing them, behind the middleware
// that the web program has, until it is interrupted; it prints its address.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config.CollectRarely(ctx, os.Getenv) // as web does
	clock := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 4, AppName: "bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	router := chi.NewRouter()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	router.Use(middleware.All(middleware.Options{Log: log, Metrics: middleware.NewMetrics(prometheus.NewRegistry())}, new(atomic.Bool))...)
	router.Mount("/api/v1", api.New(api.Deps{
		Claims: &claim.Service{Gate: agreeable{}, Random: rand.Uint64},
		Keys:   postgres.NewStaff(db), Shops: postgres.NewTemplates(db), Idempotency: postgres.NewIdempotency(db), Hub: &api.Hub{},
		Channels: delivery.ChannelSetOf(delivery.AllChannels()...), Now: clock, Log: slog.New(slog.DiscardHandler),
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := middleware.Server(router, log)
	go func() { <-ctx.Done(); _ = srv.Close() }()
	fmt.Print(listener.Addr())
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startParser starts this program as the server of [serve].
func (b *bench) startParser(ctx context.Context) (addr string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-serve")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+b.PostgresURL)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }
	ready := make([]byte, 64) // the server prints its address when it listens
	n, err := out.Read(ready)
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the parsing server: %w", err)
	}
	return string(ready[:n]), stop, nil
}
