package claims

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
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/claim"
	"dropbell/web/api"
	"dropbell/web/api/coupons"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// acceptingGate grants every claim and stores nothing.
type acceptingGate struct{}

func (acceptingGate) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	return claim.Claim{ID: r.ID, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Issued, CouponID: int64(r.ID), At: time.Now()}, nil
}

// The kinds of servers of [serve].
const parses, inserts = "parse", "insert"

// serve answers claims without deciding them, behind the same middleware as the web program. It
// stores the claims only if inserting is set. It prints its address and runs until it is
// interrupted.
func serve(inserting bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config.CollectRarely(ctx, os.Getenv, config.RoomForRequests) // as web does
	clock := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 4, AppName: "bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	var decided claim.Gate = acceptingGate{}
	if inserting {
		decided = newInsertingGate(ctx, db.Pool)
	}
	router := chi.NewRouter()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	router.Use(middleware.All(middleware.Options{Log: log, Metrics: middleware.NewMetrics(prometheus.NewRegistry())}, new(atomic.Bool))...)
	router.Mount("/api/v1", api.New(api.Deps{
		Deps:    pipeline.Deps{Keys: accessdb.NewStaff(db), Idempotency: workdb.NewIdempotency(db), Now: clock, Log: slog.New(slog.DiscardHandler)},
		Coupons: coupons.Deps{Claims: &claim.Service{Gate: decided, Random: rand.Uint64}},
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
