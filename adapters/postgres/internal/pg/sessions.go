package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// These limits hold in every session. The programs set them themselves, so that no setting of
// the server, the role, the database or the address removes them. The locks of a process that
// was suspended, or whose machine has failed, must end within seconds.
const (
	// transactionIdle is how long a transaction may be idle before the server ends its
	// session. A transaction that is idle on purpose raises its own limit.
	transactionIdle = 5 * time.Second
	// LockWait is how long statements of groups, and statements of end users' requests, wait
	// for a lock.
	LockWait = 300 * time.Millisecond

	// A peer that answers nothing is given up after unansweredFor, both by the server and by
	// the programs. Keepalives detect a silent peer on an idle connection.
	keepaliveIdle  = 5 * time.Second
	keepaliveEvery = 2 * time.Second
	keepalives     = 3
	unansweredFor  = 10 * time.Second

	dialTimeout    = 2 * time.Second
	connectTimeout = 5 * time.Second
)

// sessionSettings returns the statements that every new session of the server executes.
//
// jit: compiling a statement takes longer than running it, e.g. 150 ms for a statement of 100
// ms. statement_timeout: by default the server notices that a client has gone only when it
// sends rows, so the statement of such a client would run on.
//
// The settings are no connection parameters, because poolers may refuse parameters.
func (o Options) sessionSettings() string {
	return fmt.Sprintf(`set jit = off; set statement_timeout = %d; set idle_in_transaction_session_timeout = %d;
		set tcp_keepalives_idle = %d; set tcp_keepalives_interval = %d; set tcp_keepalives_count = %d; set tcp_user_timeout = %d`,
		o.Statements.Milliseconds(), o.TransactionIdle.Milliseconds(),
		int(keepaliveIdle.Seconds()), int(keepaliveEvery.Seconds()), keepalives, unansweredFor.Milliseconds())
}

// newDialer returns the function that opens connections to the server.
func newDialer() pgconn.DialFunc {
	d := &net.Dialer{Timeout: dialTimeout, Control: limitUnanswered,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveEvery, Count: keepalives}}
	return d.DialContext
}

// beginning returns the statement that begins a transaction in the mode, and sends the needed
// settings in the same round trip. A transaction of a caller with limited calls waits for each
// lock for [LockWait] at most. Behind a pooler the transaction gets the idle limit that a
// session has otherwise.
func (db *DB) beginning(ctx context.Context, mode string) pgx.TxOptions {
	begin := "begin" + mode
	if callLimit(ctx) > 0 {
		begin += fmt.Sprintf("; set local lock_timeout = %d", LockWait.Milliseconds())
	}
	if db.transactionPool {
		begin += fmt.Sprintf("; set local idle_in_transaction_session_timeout = %d", db.transactionIdle.Milliseconds())
	}
	return pgx.TxOptions{BeginQuery: begin}
}

type lockWaitKey struct{}

// WaitingFor returns a context whose groups wait for each lock for d at most.
func WaitingFor(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, lockWaitKey{}, d)
}

func lockLimit(ctx context.Context) (d time.Duration, limited bool) {
	d, limited = ctx.Value(lockWaitKey{}).(time.Duration)
	return d, limited
}

// LockTimeout is the parameter of [InGroup]: how long a group waits for each lock, in
// milliseconds.
func LockTimeout(ctx context.Context) string {
	d, limited := lockLimit(ctx)
	if !limited {
		d = LockWait
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// LockTimedOut reports whether a lock was not granted in time. Nothing of the transaction is
// then stored.
func LockTimedOut(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}

const limitLocks = `select set_config('lock_timeout', $1, true)`

// LimitLocks limits how long the following statements of the transaction wait for each lock,
// to the time of [LockTimeout].
func LimitLocks(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, limitLocks, LockTimeout(ctx))
	return err
}

// Briefly runs a statement as a transaction of its own, in one round trip. The statement waits
// for each lock for [LockWait] at most.
func (db *DB) Briefly(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(limitLocks, LockTimeout(ctx))
	b.Queue(sql, args...).Query(read)
	return db.Pool.SendBatch(ctx, b).Close()
}
