package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/lab/bench/serve"
	"dropbell/web/api"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

const secret = "a secret that only this benchmark knows"

// acceptingStore accepts every reservation and stores nothing.
type acceptingStore struct{ reminder.Store }

func (acceptingStore) Reserve(_ context.Context, c reminder.Change) (reminder.Decision, error) {
	return reminder.Decision{Applied: true, Created: true, After: c.Bits}, nil
}

// server serves one kind until it is interrupted; it prints its address.
func server(kind string) error {
	unguarded := slices.Contains([]string{"bare", "floor", "keyedfloor", "limits"}, kind)
	return serve.As(serve.Options{Kind: kind, Connects: kind != "bare", Middleware: !unguarded}, func(ctx context.Context, _ *slog.Logger) (http.Handler, func(), error) {
		return handlerOf(ctx, kind)
	})
}

// bare parses and answers the same JSON with nothing around it.
func bare(w http.ResponseWriter, r *http.Request) {
	var wish drops.ReservationWish
	if err := json.NewDecoder(r.Body).Decode(&wish); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, wish)
}

func answer(w http.ResponseWriter, wish drops.ReservationWish) {
	now := time.Now()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(drops.Reservation{TemplateID: wish.TemplateID, ShopNumber: wish.ShopNumber, OpensAt: now, Slots: "1",
		Reminders: []drops.ReminderState{{Channel: wish.Reminders[0].Channel, Minutes: wish.Reminders[0].Minutes, DueAt: now, State: "waiting"}}})
}

// handlerOf returns the handler behind the middleware, and the function that ends it.
func handlerOf(ctx context.Context, kind string) (http.Handler, func(), error) {
	switch kind {
	case "bare", "limits", "chain":
		router := chi.NewRouter()
		router.Post("/reservations", func(w http.ResponseWriter, r *http.Request) {
			if q := middleware.From(r.Context()); q != nil {
				q.Hot = true // as reservations are: logged only when they fail
			}
			bare(w, r)
		})
		return router, func() {}, nil
	case "floor", "keyedfloor":
		return newFloor(ctx, kind == "keyedfloor")
	case "open", "token", "rate":
		h, err := step(ctx, kind)
		return h, func() {}, err
	}
	return reserving(ctx, kind)
}

func newVerifier(ctx context.Context) (*pipeline.Tokens, error) {
	return pipeline.NewTokens(ctx, pipeline.TokenOptions{Secret: secret, Now: serve.Clock, Log: slog.New(slog.DiscardHandler)})
}

// step returns the middleware in front of the bare handler: open, with a token, or with a token
// and limits.
func step(ctx context.Context, kind string) (http.Handler, error) {
	tokens, err := newVerifier(ctx)
	if err != nil {
		return nil, err
	}
	d := pipeline.Deps{Tokens: tokens, Now: serve.Clock, Log: slog.New(slog.DiscardHandler)}
	access := pipeline.ForUsers
	switch kind {
	case "open":
		access = pipeline.ForAnybody
	case "rate":
		d.UserLimit, d.Budget = userLimit, middleware.NewBudget(inFlight, "users", nil)
	}
	pl := pipeline.New(d)
	pipeline.Register(pl, pipeline.Route{Traits: pipeline.Traits{Access: access, Hot: true,
		Quick: func(w http.ResponseWriter, r *http.Request, _ []byte) bool { bare(w, r); return true }},
		Method: http.MethodPost, Path: "/reservations", ID: "reserve"},
		func(context.Context, *struct{ Body drops.ReservationWish }) (*struct{ Body drops.Reservation }, error) {
			return nil, errors.New("the quick way answers everything")
		})
	pl.Finish()
	return pl, nil
}

const (
	userLimit = 1 << 20 // a minute: counted, and never reached
	inFlight  = 1 << 16
)

// reserving composes the API as the web program does, over the store of the kind.
func reserving(ctx context.Context, kind string) (http.Handler, func(), error) {
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
	cache, err := lookup.New(dropsdb.NewTemplates(db), serve.Clock)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := newVerifier(ctx)
	if err != nil {
		return nil, nil, err
	}
	channels := delivery.ChannelSetOf(delivery.AllChannels()...)
	keys := workdb.NewIdempotency(db)
	handler := api.New(api.Deps{
		Deps: pipeline.Deps{Keys: accessdb.NewStaff(db), Tokens: tokens, Idempotency: keys, Now: serve.Clock, Log: discard,
			UserLimit: userLimit, Budget: middleware.NewBudget(inFlight, "users", nil)},
		Drops: drops.Deps{Reminders: &reminder.Service{Store: store, Templates: cache, Channels: channels, Now: serve.Clock}, Channels: channels},
	})
	return handler, func() { reservations.Close(); keys.Close(); db.Close() }, nil
}
