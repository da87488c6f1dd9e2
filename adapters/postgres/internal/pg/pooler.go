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

// errSharedSession is returned while several sessions of the server run the
// transactions of one connection, and [Options].TransactionPool does not allow
// this.
var errSharedSession = errors.New("the database is behind a connection pooler in transaction mode: set DATABASE_POOL_MODE=transaction, " +
	"or let DATABASE_URL lead to the server itself or to a pool in session mode")

// The pooler's mode is probed every probeEvery, within probeTimeout. At the
// start, when a pooler is idle, transaction mode is detected reliably; later its
// detection depends on chance.
const (
	probeEvery   = time.Minute
	probeTimeout = 500 * time.Millisecond
)

// pooling records whether a pooler is between a pool and its server.
type pooling struct {
	mu     sync.Mutex
	shared bool      // a session of the server serves several connections
	probed time.Time // when that was found out; zero = never

	advised bool // see adviseJIT
}

// sessions returns errSharedSession if the pool needs sessions of its own and a
// pooler shares them. It returns no error if the database does not answer.
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

// adviseJIT warns once that jit is on: behind a pooler a session cannot change
// this setting.
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

// probe reports whether several connections share a session of the server, and
// whether the database answered. A server announces its backend's process id when
// a connection begins. A pooler announces another number.
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

// HasSessions reports whether connections to url have sessions of their own. It
// returns false if a pooler in transaction mode is detected; detection is not
// always possible.
func HasSessions(ctx context.Context, url string) (bool, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return false, errNoAddress // the error itself may hold the password
	}
	shared, _ := probe(ctx, plain(c))
	return !shared, nil
}

// mixed reports whether two connections share sessions: other sees a session
// setting of one, or one loses its setting while other is in a transaction.
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

// Error codes for prepared statements: the statement was prepared in another
// session, or another client has prepared a statement of this name in the
// session.
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
