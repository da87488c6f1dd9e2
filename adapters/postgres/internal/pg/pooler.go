package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errSharedSession is returned while transactions of one connection are run by
// several sessions of the server, and [Options].TransactionPool does not say so.
var errSharedSession = errors.New("the database is behind a connection pooler in transaction mode: set DATABASE_POOL_MODE=transaction, " +
	"or let DATABASE_URL lead to the server itself or to a pool in session mode")

// A pooler is probed for its mode every probeEvery, within probeTimeout. It
// gives itself away at the start, when it has nothing else to do, and later by
// chance.
const (
	probeEvery   = time.Minute
	probeTimeout = 500 * time.Millisecond
)

// pooling is what is known about poolers between a pool and its server.
type pooling struct {
	mu     sync.Mutex
	shared bool      // a session of the server serves several connections
	probed time.Time // when that was found out; zero = never

	advised bool // see adviseJIT
}

// sessions returns errSharedSession if the pool needs sessions and has none.
// It returns no error if the database does not answer.
func (db *DB) sessions(ctx context.Context) error {
	db.pooling.mu.Lock()
	defer db.pooling.mu.Unlock()
	if db.transactionPool {
		db.adviseJIT(ctx)
		return nil
	}
	if time.Since(db.pooling.probed) >= probeEvery {
		shared, asked := probe(ctx, plain(db.Pool.Config().ConnConfig))
		if asked {
			db.pooling.probed = time.Now()
		}
		db.pooling.shared = shared
	}
	if db.pooling.shared {
		return errSharedSession
	}
	return nil
}

// adviseJIT warns once of a setting that is no session's to change then.
func (db *DB) adviseJIT(ctx context.Context) {
	var jit string
	if db.pooling.advised || db.Pool.QueryRow(ctx, `select current_setting('jit')`).Scan(&jit) != nil {
		return
	}
	db.pooling.advised = true
	if jit != "off" {
		db.log.Warn("the database compiles statements (jit), which takes longer than running them: ALTER ROLE … SET jit = off for the role of DATABASE_URL, or connect_query of PgBouncer")
	}
}

// probe reports whether a session of the server serves two connections, and
// whether the database answered. A server announces the number of its process
// when a connection begins; a pooler announces another number.
func probe(ctx context.Context, c *pgx.ConnConfig) (shared, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	one, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return false, false
	}
	defer one.Close(context.WithoutCancel(ctx))
	var process uint32
	if err := one.QueryRow(ctx, `select pg_backend_pid()`).Scan(&process); err != nil {
		return false, false
	}
	if process == one.PgConn().PID() {
		return false, true
	}
	other, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return false, true
	}
	defer other.Close(context.WithoutCancel(ctx))
	shared, err = mixed(ctx, one, other)
	return shared && err == nil, true
}

// HasSessions reports whether the database at url is not behind a pooler in
// transaction mode, as far as that can be found out.
func HasSessions(ctx context.Context, url string) (bool, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return false, errNoAddress // the error itself may hold the password
	}
	shared, _ := probe(ctx, plain(c))
	return !shared, nil
}

// mixed reports whether a setting of one connection's session is seen by the
// other, or lost while the other is in a transaction.
func mixed(ctx context.Context, one, other *pgx.Conn) (bool, error) {
	const ask = `select coalesce(current_setting('dropbell.probe', true), '')`
	mark := rand.Text()
	if _, err := one.Exec(ctx, `select set_config('dropbell.probe', $1, false)`, mark); err != nil {
		return false, err
	}
	var seen, kept string
	err := pgx.BeginFunc(ctx, other, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, ask).Scan(&seen); err != nil || seen == mark {
			return err
		}
		return one.QueryRow(ctx, ask).Scan(&kept)
	})
	if err != nil {
		return false, err
	}
	return seen == mark || kept != mark, nil
}

// plain makes c the configuration of connections whose queries need no session.
func plain(c *pgx.ConnConfig) *pgx.ConnConfig {
	c.DefaultQueryExecMode, c.Tracer = pgx.QueryExecModeExec, nil
	return c
}

// Codes of errors about prepared statements that another session has, or that
// another client prepared in this one.
const (
	noSuchStatement    = "26000"
	duplicateStatement = "42P05"
)

// learn takes an error of a statement for proof, if it is one.
func (p *pooling) learn(err error) {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == noSuchStatement || pg.Code == duplicateStatement) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.shared, p.probed = true, time.Now()
	}
}
