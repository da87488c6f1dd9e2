// Package app holds the common parts of the programs web and worker: reading the environment,
// opening stores, health, and the gates that decide claims of coupons. In package app and in the
// programs, adapters meet use cases.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/adapters/telemetry"
)

// Clock returns now, in UTC and to the microsecond, as PostgreSQL stores it.
func Clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Load reads the environment of the program called name and writes its log to out. The error is
// a [config.Mistake] that names every variable to correct.
func Load(name string, getenv func(string) string, out io.Writer) (config.Config, *slog.Logger, error) {
	cfg, err := config.Load(getenv)
	if err != nil {
		return cfg, nil, config.Mistake{Err: fmt.Errorf("the environment must be corrected (%s --help describes each variable):\n%w", name, err)}
	}
	return cfg, cfg.Logger(name, out), nil
}

// Options differ between the programs.
type Options struct {
	// Name is web or worker.
	Name string
	// Statements bounds every database statement; 0 = no bound.
	Statements time.Duration
	// Replica opens the standby that the configuration names, for reports of the console. The
	// caller must run [postgres.Replica.Watch].
	Replica bool
}

// An App is a program's configuration and its open stores. Close it, even after [Open] has
// returned an error.
type App struct {
	Config   config.Config
	Log      *slog.Logger
	Registry *prometheus.Registry
	Tracing  *telemetry.Tracing
	DB       *postgres.DB
	// Replica is nil without [Options.Replica] or DATABASE_REPLICA_URL. It does not have to answer.
	Replica *postgres.Replica
	// Stores are the stores of DB. Reports may be read from Replica.
	Stores Stores
	Redis  goredis.UniversalClient
	// Shared is the Redis of limits that all cells share: rates and circuits of providers, and limits
	// of requests. With one cell it is Redis.
	Shared goredis.UniversalClient
	// Erased knows the erased users, after the program's first look. Erased users claim and
	// reserve nothing.
	Erased *lookup.Erased

	closers []func() error
}

// Open opens the stores that cfg names. PostgreSQL and Redis do not have to answer yet.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, o Options) (*App, error) {
	if name := cfg.CellName(); name != "" {
		log = log.With("cell", name)
	}
	a := &App{Config: cfg, Log: log, Registry: prometheus.NewRegistry()}
	service := "dropbell-" + o.Name
	var err error
	if a.Tracing, err = telemetry.Start(ctx, telemetry.Options{Service: service, Endpoint: cfg.TraceEndpoint, Ratio: cfg.TraceRatio, Log: log}); err != nil {
		return a, err
	}
	a.OnClose(a.Tracing.Shutdown)
	if a.DB, err = postgres.Open(ctx, cfg.DatabaseURL, postgres.Options{MaxConns: int32(cfg.DBConns), AppName: service, Log: log, Statements: o.Statements,
		TransactionPool: cfg.TransactionPool(), Tracer: a.Tracing.Queries()}); err != nil {
		return a, err
	}
	a.OnClose(func() error { a.DB.Close(); return nil })
	a.measurePool()
	if o.Replica && cfg.ReplicaURL != "" {
		if err := a.openReplica(ctx, o); err != nil {
			return a, err
		}
	}
	a.Stores = NewStores(a.DB.WithReplica(a.Replica))
	a.Erased = &lookup.Erased{Load: a.Stores.Users.ErasedSince}
	if a.Redis, err = redis.Open(cfg.RedisURL); err != nil {
		return a, err
	}
	a.OnClose(a.Redis.Close)
	if a.Shared = a.Redis; cfg.SharedRedisURL != "" && cfg.SharedRedisURL != cfg.RedisURL {
		if a.Shared, err = redis.Open(cfg.SharedRedisURL); err != nil {
			return a, err
		}
		a.OnClose(a.Shared.Close)
	}
	return a, a.Tracing.Redis(a.Redis)
}

func (a *App) openReplica(ctx context.Context, o Options) (err error) {
	a.Replica, err = postgres.OpenReplica(ctx, a.DB, a.Config.ReplicaURL, a.Config.ReplicaMaxLag, postgres.Options{MaxConns: int32(a.Config.DBConns),
		AppName: "dropbell-" + o.Name + "-reports", Log: a.Log, Statements: o.Statements, TransactionPool: a.Config.TransactionPool(), Tracer: a.Tracing.Queries()})
	if err != nil {
		return err
	}
	a.OnClose(func() error { a.Replica.Close(); return nil })
	a.measureReplica()
	return nil
}

// measureReplica shows how far the replica is behind and how many reports read it.
func (a *App) measureReplica() {
	lag := func() float64 {
		if s := a.Replica.State(); s.CaughtUp {
			return s.Lag.Seconds()
		}
		return math.NaN()
	}
	usable := func() float64 {
		if a.Replica.State().Usable {
			return 1
		}
		return 0
	}
	a.Registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_replica_lag_seconds", Help: "How old the state is that the replica shows, at most; not a number while that cannot be told."}, lag),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_replica_usable", Help: "1 while reports are read from the replica, 0 while they are read from the primary."}, usable))
	for database, n := range map[string]func() float64{
		"replica": func() float64 { n, _ := a.Replica.Reports(); return float64(n) },
		"primary": func() float64 { _, n := a.Replica.Reports(); return float64(n) },
	} {
		a.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dropbell_reports_total",
			Help: "Requests of the console for a report, by the database that it was read from.", ConstLabels: prometheus.Labels{"database": database}}, n))
	}
}

// measurePool shows how many database connections are in use.
func (a *App) measurePool() {
	a.Registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_db_connections", Help: "Database connections in use."},
			func() float64 { used, _ := a.DB.Stat(); return float64(used) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_db_connections_limit", Help: "Database connections there can be."},
			func() float64 { _, limit := a.DB.Stat(); return float64(limit) }))
}

// EraseEvery is how often a program looks which users were erased.
const EraseEvery = time.Second

// OnClose makes [App.Close] call each of closing, the latest first.
func (a *App) OnClose(closing ...func() error) { a.closers = append(a.closers, closing...) }

// Close closes everything in the reverse order of opening.
func (a *App) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}
