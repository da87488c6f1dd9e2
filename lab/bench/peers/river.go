package peers

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"dropbell/lab/bench/stack"
)

const (
	// Two clients fetch more than one client; three clients fetch no more than two.
	riverClients  = 2
	riverWorkers  = 2000
	riverFetch    = 5 * time.Millisecond
	riverInsert   = 5000 // jobs per COPY
	riverInserter = 4
	// riverSlowest is the enqueuing speed reckoned with, per second.
	riverSlowest = 8_000
)

// Reminder is the job of one user.
type Reminder struct {
	TemplateID int64  `json:"template_id"`
	UserID     int64  `json:"user_id"`
	Slot       int    `json:"slot"`
	Channel    string `json:"channel"`
}

// Kind names the job.
func (Reminder) Kind() string { return "remind" }

type worker struct {
	river.WorkerDefaults[Reminder]
	watch *watch
}

func (w *worker) Work(context.Context, *river.Job[Reminder]) error { w.watch.called(); return nil }

// runRiver inserts a job per reminder and drains them.
func runRiver(ctx context.Context, n int) (o outcome, err error) {
	s, err := stack.Start(ctx)
	if err != nil {
		return o, err
	}
	defer s.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(s.SQL), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return o, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return o, err
	}
	due := dueAfter(n, riverSlowest)
	if o, err = insertJobs(ctx, s, due, n); err != nil {
		return o, err
	}
	w := newWatch(n)
	stop, err := startClients(ctx, s.PostgresURL, w)
	if err != nil {
		return o, err
	}
	defer stop()
	o.First, o.All, err = w.wait(ctx, due)
	return o, err
}

// insertJobs enqueues the jobs ahead and measures the cost of enqueueing.
func insertJobs(ctx context.Context, s *stack.Stack, due time.Time, n int) (o outcome, err error) {
	client, err := river.NewClient(riverpgxv5.New(s.SQL), &river.Config{})
	if err != nil {
		return o, err
	}
	o.Enqueued, err = inParallel(n, riverInsert, riverInserter, func(from, to int) error {
		jobs := make([]river.InsertManyParams, 0, to-from)
		for i := from; i < to; i++ {
			jobs = append(jobs, river.InsertManyParams{Args: Reminder{1, int64(i + 1), 1, "app"}, InsertOpts: &river.InsertOpts{ScheduledAt: due}})
		}
		_, err := client.InsertManyFast(ctx, jobs)
		return err
	})
	if err != nil {
		return o, err
	}
	if !time.Now().Before(due) {
		return o, errTooSlow
	}
	var size int64
	err = s.SQL.QueryRow(ctx, `select pg_total_relation_size('river_job')`).Scan(&size)
	o.Bytes = float64(size) / float64(n)
	return o, err
}

// startClients starts the clients, each with connections of its own.
func startClients(ctx context.Context, url string, w *watch) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for range riverClients {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			stop()
			return nil, err
		}
		client, err := newClient(pool, w)
		if err == nil {
			err = client.Start(ctx)
		}
		if err != nil {
			pool.Close()
			stop()
			return nil, err
		}
		stops = append(stops, func() { _ = client.Stop(context.WithoutCancel(ctx)); pool.Close() })
	}
	return stop, nil
}

func newClient(pool *pgxpool.Pool, w *watch) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{watch: w})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}},
		FetchCooldown: riverFetch, FetchPollInterval: riverFetch,
		Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
}
