package flood

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	deliverydb "dropbell/adapters/postgres/delivery"
	messagesdb "dropbell/adapters/postgres/messages"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/inbox"
	"dropbell/lab/bench/serve"
	"dropbell/web/api"
	apidelivery "dropbell/web/api/delivery"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// server serves one kind until it is interrupted; it prints its address.
func server(kind string) error {
	if kind == "page" {
		return serve.As(serve.Options{Kind: kind, Connects: true, Middleware: true}, webInbox)
	}
	return serve.As(serve.Options{Kind: kind}, bareInbox)
}

// bareSQL reads how far the user has read, and the user's reservations.
const bareSQL = `select coalesce((select read_through from inbox_reads where user_id = $1), '0001-01-01'),
	array(select template_id from reservations where user_id = $1 order by 1 desc limit 200)`

// bareInbox is the floor: it reads the rows of the user and answers as many messages as the user
// has on average, with a constant text. It does not verify the token.
func bareInbox(ctx context.Context, _ *slog.Logger) (http.Handler, func(), error) {
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	var users int
	if err := pool.QueryRow(ctx, `select max(id) from users`).Scan(&users); err != nil {
		pool.Close()
		return nil, nil, err
	}
	router := chi.NewRouter()
	next, now := atomic.Int64{}, time.Now()
	router.Get("/inbox", func(w http.ResponseWriter, r *http.Request) {
		var read time.Time
		var templates []int64
		user := reader(int(next.Add(1)*7919%readers), users)
		if err := pool.QueryRow(r.Context(), bareSQL, user).Scan(&read, &templates); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page := apidelivery.Inbox{Items: make([]apidelivery.Message, len(templates)+campaigns*2/5), ReadThrough: &read}
		for i := range page.Items {
			number := strconv.FormatInt(templates[i%len(templates)], 10)
			page.Items[i] = apidelivery.Message{ID: number, TemplateID: number, ShopNumber: "10", Kind: "reminder", Minutes: 5, OpensAt: &now, DueAt: now, At: now,
				Title: "Bench drop", Text: "Bench drop opens in 5 minutes: 10.00 off."}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	})
	return router, pool.Close, nil
}

// webInbox is the API's inbox as the web program composes it.
func webInbox(ctx context.Context, log *slog.Logger) (http.Handler, func(), error) {
	db, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{MaxConns: 16, AppName: "bench", Log: log})
	if err != nil {
		return nil, nil, err
	}
	tokens, err := pipeline.NewTokens(ctx, pipeline.TokenOptions{Secret: secret, Now: serve.Clock, Log: log})
	if err != nil {
		return nil, nil, err
	}
	texts, err := lookup.NewBooks(messagesdb.NewMessages(db))
	if err != nil {
		return nil, nil, err
	}
	box := deliverydb.NewInbox(db, postgres.Grouping{})
	box.Texts = texts
	keys := workdb.NewIdempotency(db)
	handler := api.New(api.Deps{
		Deps: pipeline.Deps{Keys: accessdb.NewStaff(db), Tokens: tokens, Idempotency: keys, Now: serve.Clock, Log: log,
			UserLimit: 1 << 20, Budget: middleware.NewBudget(1<<16, "users", nil)},
		Delivery: apidelivery.Deps{Inbox: &inbox.Service{Store: box}, Hub: &apidelivery.Hub{}},
	})
	return handler, func() { box.Close(); keys.Close(); db.Close() }, nil
}
