package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/pprof"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

const secret = "a secret that only this benchmark knows"

// newTokens returns one token for each of n users.
func newTokens(n int) ([]string, error) {
	tokens := make([]string, n)
	for i := range tokens {
		t, err := jwt.NewBuilder().Subject(fmt.Sprint(i + 1)).Expiration(time.Now().Add(time.Hour)).Build()
		if err != nil {
			return nil, err
		}
		signed, err := jwt.Sign(t, jwt.WithKey(jwa.HS256(), []byte(secret)))
		if err != nil {
			return nil, err
		}
		tokens[i] = string(signed)
	}
	return tokens, nil
}

// acceptingStore accepts every reservation and stores nothing.
type acceptingStore struct{ reminder.Store }

func (acceptingStore) Reserve(_ context.Context, c reminder.Change) (reminder.Decision, error) {
	return reminder.Decision{Applied: true, Created: true, After: c.Bits}, nil
}

// server serves one kind until it is interrupted; it prints its address.
func server(kind string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	router := chi.NewRouter()
	if kind == "bare" {
		router.Post("/api/v1/reservations", bare)
	} else {
		handler, closeAll, err := reserving(ctx, kind)
		if err != nil {
			return err
		}
		defer closeAll()
		router.Use(middleware.Requests(middleware.Options{Log: slog.New(slog.NewJSONHandler(io.Discard, nil)),
			Metrics: middleware.NewMetrics(prometheus.NewRegistry())}))
		router.Mount("/api/v1", handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if path := os.Getenv("CPU_PROFILE"); path != "" {
		f, err := os.Create(path + "." + kind)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	srv := &http.Server{Handler: router}
	go func() { <-ctx.Done(); _ = srv.Close() }()
	fmt.Print(listener.Addr())
	_ = srv.Serve(listener)
	return nil
}

// bare parses and answers the same JSON with nothing around it.
func bare(w http.ResponseWriter, r *http.Request) {
	var wish api.ReservationWish
	if err := json.NewDecoder(r.Body).Decode(&wish); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(api.Reservation{TemplateID: wish.TemplateID, ShopNumber: wish.ShopNumber, OpensAt: now, Slots: "1",
		Reminders: []api.ReminderState{{Channel: wish.Reminders[0].Channel, Minutes: wish.Reminders[0].Minutes, DueAt: now, State: "waiting"}}})
}

// reserving composes the API as the web program does, over the store of the kind.
func reserving(ctx context.Context, kind string) (http.Handler, func(), error) {
	clock := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	discard := slog.New(slog.DiscardHandler)
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 16, AppName: "bench", Log: discard})
	if err != nil {
		return nil, nil, err
	}
	grouping := postgres.Grouping{}
	if kind == "single" {
		grouping = postgres.Grouping{Workers: 16, MaxGroup: 1}
	}
	reservations := dropsdb.NewReservations(db, grouping)
	var store reminder.Store = reservations
	if kind == "parse" {
		store = acceptingStore{}
	}
	cache, err := lookup.New(dropsdb.NewTemplates(db), clock)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := pipeline.NewTokens(ctx, pipeline.TokenOptions{Secret: secret, Now: clock, Log: discard})
	if err != nil {
		return nil, nil, err
	}
	channels := delivery.ChannelSetOf(delivery.AllChannels()...)
	keys := workdb.NewIdempotency(db)
	handler := api.New(api.Deps{
		Deps:      pipeline.Deps{Keys: accessdb.NewStaff(db), Tokens: tokens, Idempotency: keys, Now: clock, Log: discard},
		Reminders: &reminder.Service{Store: store, Templates: cache, Channels: channels, Now: clock},
		Board:     dropsdb.NewBoards(db), Shops: dropsdb.NewTemplates(db), Hub: &api.Hub{}, Channels: channels,
	})
	return handler, func() { reservations.Close(); keys.Close(); db.Close() }, nil
}
