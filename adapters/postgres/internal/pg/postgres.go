// Package pg is shared by the stores of adapters/postgres. It contains the
// connection pool, transactions, error translation, group commit, the outbox, the
// audit log, sets of users, and rows that several subjects read. pg has no
// subject of its own.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/domain/cell"
	"dropbell/domain/fault"
	"dropbell/killpoint"
)

// ErrUnavailable is returned when the database cannot be reached or cannot
// answer now; the same call may succeed later.
var ErrUnavailable = fault.New(fault.Unavailable, "overloaded", "the database cannot answer right now; try again").Told("fault.database_away")

// errTooSlow is returned for a statement that ran into [Options].Statements.
var errTooSlow = ErrUnavailable.Because("the database took too long and was stopped; ask for less, or try again later").Told("fault.database_slow")

var errNoAddress = errors.New("DATABASE_URL is not a valid PostgreSQL address")

// DB is a pool of connections to one database.
type DB struct {
	// Pool is for statements outside of transactions; their errors must be passed
	// to [Translate].
	Pool   *pgxpool.Pool
	log    *slog.Logger
	traced bool

	transactionPool bool
	transactionIdle time.Duration
	pooling         *pooling
	renewal         *renewal
	// bulk has a place for each bulk read under way.
	bulk chan struct{}

	replica *Replica // see [DB.WithReplica]
	tallies *keptTallies
}

// Options tune a pool.
type Options struct {
	MaxConns int32 // 0 = 16
	AppName  string
	Log      *slog.Logger // nil = slog.Default()
	// Statements is how long one statement may take; 0 = any time.
	Statements time.Duration
	// TransactionPool says that a pooler may run each transaction in another
	// session of the server. Nothing is then kept in sessions.
	TransactionPool bool
	// TransactionIdle is how long a transaction may be idle before the server
	// ends its session; 0 = 5 s.
	TransactionIdle time.Duration
	// Tracer, if set, is called for every statement. Without Tracer, callers'
	// contexts are not searched for a trace.
	Tracer pgx.QueryTracer
}

// Open returns a pool for url. It does not wait for the database to be
// reachable; see [DB.Ping].
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errNoAddress // the error itself may hold the password
	}
	cfg.MaxConns = max(o.MaxConns, 4)
	if o.MaxConns == 0 {
		cfg.MaxConns = 16
	}
	if o.TransactionIdle == 0 {
		o.TransactionIdle = transactionIdle
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	cfg.ConnConfig.ConnectTimeout, cfg.ConnConfig.DialFunc = connectTimeout, newDialer()
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.ConnConfig.RuntimeParams["application_name"] = o.AppName
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	state, limiter, renewal := &pooling{}, callLimiter{}, newRenewal()
	limiter.failed = func(err error) {
		state.learn(err)
		renewal.heed(err)
	}
	cfg.ShouldPing = renewal.ping
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		_, err := conn.Exec(ctx, o.sessionSettings())
		return err
	}
	if o.TransactionPool {
		// Session settings would reach an arbitrary session of the server, and a
		// prepared statement would be missing in another session. So only the
		// statements' types are cached, on the client. The client enforces the
		// statement limit too, a moment later than a limit of the pooler or the
		// role, whose error says more.
		cfg.AfterConnect = nil
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		if o.Statements > 0 {
			limiter.most = o.Statements + time.Second
		}
	}
	cfg.ConnConfig.Tracer = limiter.with(o.Tracer)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database pool: %w", err)
	}
	renewal.pool = pool
	return &DB{tallies: &keptTallies{}, Pool: pool, log: o.Log, traced: o.Tracer != nil, transactionPool: o.TransactionPool, transactionIdle: o.TransactionIdle,
		pooling: state, renewal: renewal, bulk: make(chan struct{}, cfg.MaxConns/2)}, nil
}

// Bulk waits until fewer than half of the connections serve bulk reads, and then
// counts the caller's connection as a bulk read until release is called. Bulk
// reads take seconds, and many may start at the same moment. The other half of
// the connections is left for leases, checkpoints and health checks, which must
// not wait for bulk reads.
func (db *DB) Bulk(ctx context.Context) (release func(), err error) {
	select {
	case db.bulk <- struct{}{}:
		return func() { <-db.bulk }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close waits for running statements and closes every connection.
func (db *DB) Close() {
	db.renewal.stop()
	db.Pool.Close()
}

// Ping returns [ErrUnavailable] unless the database answers.
func (db *DB) Ping(ctx context.Context) error { return Translate(db.Pool.Ping(ctx)) }

// Stat returns how many connections are in use and how many there can be.
func (db *DB) Stat() (used, limit int32) {
	s := db.Pool.Stat()
	return s.AcquiredConns(), s.MaxConns()
}

// Tx runs do in one transaction. Its kill point is named after its caller.
func (db *DB) Tx(ctx context.Context, do func(pgx.Tx) error) error {
	point := killpoint.Caller()
	ctx, cancel := finishing(ctx)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, db.Pool, db.beginning(ctx, ""), func(tx pgx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		// By the clock: the timer of a deadline may be late.
		if deadline, ends := ctx.Deadline(); ends && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return killpoint.Before(point)
	})
	if err == nil {
		err = killpoint.After(point)
	}
	return Translate(err)
}

// Instant runs do in one read-only transaction. All its statements see the
// snapshot of the first statement.
func (db *DB) Instant(ctx context.Context, do func(pgx.Tx) error) error {
	return Translate(pgx.BeginTxFunc(ctx, db.Pool, db.beginning(ctx, " isolation level repeatable read read only"), do))
}

// Translate turns driver errors that may pass into [ErrUnavailable]. A statement
// timeout becomes errTooSlow, and invalid text becomes [fault.ErrInvalid].
// Translate returns faults and all other errors unchanged.
func Translate(err error) error {
	if err == nil || fault.KindOf(err) != 0 || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57P"),
			pg.Code == "40001", pg.Code == "40P01", pg.Code == "55P03", pg.Code == "25006", pg.Code == "25P03":
			return unavailable(err)
		case pg.Code == "57014" && strings.Contains(pg.Message, "statement timeout"):
			return fmt.Errorf("%w (%w)", errTooSlow, err)
		case pg.Code == "DB003":
			return cell.ErrMoved
		case pg.Code == "22021", pg.Code == "22P05":
			return fault.ErrInvalid.Because("text must be UTF-8 without the character U+0000")
		}
		return err
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err) || errors.Is(err, net.ErrClosed) {
		return unavailable(err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return unavailable(err)
	}
	return err
}

// NewID draws an id from the sequence of a table, for a row that is inserted with it later.
func NewID(ctx context.Context, db *DB, table string) (id int64, err error) {
	err = db.Pool.QueryRow(ctx, `select nextval(pg_get_serial_sequence($1, 'id'))`, table).Scan(&id)
	return id, Translate(err)
}

// unavailable keeps the cause for the log and returns the fault for the caller.
func unavailable(err error) error { return fmt.Errorf("%w (%w)", ErrUnavailable, err) }

// Violates reports whether err is the violation of the named constraint.
func Violates(err error, constraint string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.ConstraintName == constraint
}

// Ready returns an error with advice if the database lacks migrations up to the
// version needs, or if a pooler that [Options] do not allow is in between.
func (db *DB) Ready(ctx context.Context, needs int64) error {
	if err := db.sessions(ctx); err != nil {
		return err
	}
	have, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if have < needs {
		return fmt.Errorf("the database is at migration %d and needs %d: run worker migrate", have, needs)
	}
	return nil
}

// SchemaVersion returns the number of the newest migration the database has,
// 0 if it has none.
func (db *DB) SchemaVersion(ctx context.Context) (int64, error) {
	var version int64
	err := db.Pool.QueryRow(ctx, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&version)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P01" {
		return 0, nil
	}
	return version, Translate(err)
}
