package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The limits of every session. The programs set them themselves, so that neither the server,
// the role, the database nor the address can take them away: locks of a process that was
// halted, or whose machine is gone, must end within seconds.
const (
	// transactionIdle is how long a transaction may wait for its program before the server
	// ends the session. A transaction that waits on purpose exempts itself.
	transactionIdle = 5 * time.Second
	// LockWait is how long statements of groups, and those of end users, wait for a lock.
	LockWait = 300 * time.Millisecond

	// A machine that answers nothing is given up after unansweredFor, by the server as by
	// the programs: keepalives find it on a silent connection.
	keepaliveIdle  = 5 * time.Second
	keepaliveEvery = 2 * time.Second
	keepalives     = 3
	unansweredFor  = 10 * time.Second

	dialTimeout    = 2 * time.Second
	connectTimeout = 5 * time.Second
)

// sessionSettings are the statements that a new session of the server executes.
//
// jit: compiling a statement takes longer than it runs, 150 ms for one of 100 ms.
// statement_timeout: a statement whose client has gone would run on, since by default the
// server checks its client only when it sends rows.
//
// They are no parameters of the connection, which poolers may refuse.
func (o Options) sessionSettings() string {
	return fmt.Sprintf(`set jit = off; set statement_timeout = %d; set idle_in_transaction_session_timeout = %d;
		set tcp_keepalives_idle = %d; set tcp_keepalives_interval = %d; set tcp_keepalives_count = %d; set tcp_user_timeout = %d`,
		o.Statements.Milliseconds(), o.TransactionIdle.Milliseconds(),
		int(keepaliveIdle.Seconds()), int(keepaliveEvery.Seconds()), keepalives, unansweredFor.Milliseconds())
}

// newDialer returns what opens the connections of this side.
func newDialer() pgconn.DialFunc {
	d := &net.Dialer{Timeout: dialTimeout, Control: limitUnanswered,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveEvery, Count: keepalives}}
	return d.DialContext
}

// beginning returns the statement that begins a transaction in the mode, in one round trip
// with the settings that it needs. A transaction of a caller with limited calls waits for
// each lock for [LockWait] at most. Behind a pooler a transaction has the limit that
// otherwise its session has.
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

// LockTimedOut reports whether a lock could not be had in time. Nothing of the transaction
// is stored then.
func LockTimedOut(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}

const limitLocks = `select set_config('lock_timeout', $1, true)`

// LimitLocks makes the statements that follow in the transaction wait for each lock as long
// as [LockTimeout] says.
func LimitLocks(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, limitLocks, LockTimeout(ctx))
	return err
}

// Briefly runs a statement, as a transaction of its own and in one round trip, that waits for
// each lock for [LockWait] at most.
func (db *DB) Briefly(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(limitLocks, LockTimeout(ctx))
	b.Queue(sql, args...).Query(read)
	return db.Pool.SendBatch(ctx, b).Close()
}

// BrieflyOne is [DB.Briefly] for a statement that returns one row, or [pgx.ErrNoRows].
func (db *DB) BrieflyOne(ctx context.Context, sql string, args []any, into ...any) error {
	return db.Briefly(ctx, sql, args, func(rows pgx.Rows) error {
		if !rows.Next() {
			return cmp.Or(rows.Err(), pgx.ErrNoRows)
		}
		return rows.Scan(into...)
	})
}
