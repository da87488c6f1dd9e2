package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// reopenEvery is how often new connections are tried while no server takes any.
	reopenEvery = 100 * time.Millisecond
	// reopenFor is how long connections are reopened; afterwards only calls open connections.
	reopenFor = time.Minute
	// keepFor is how long an open connection waits for the other connections of its renewal.
	keepFor = time.Second
	// A connection that was idle for pingAfter shows within pingTimeout that it is alive.
	pingAfter   = time.Second
	pingTimeout = time.Second
)

// A renewal replaces all connections of a pool at once when one of them shows that the server
// behind them has ended or has become a standby. Without a renewal each broken connection
// would fail a call, and calls would open the new connections one by one.
type renewal struct {
	pool    *pgxpool.Pool
	running atomic.Bool
	ctx     context.Context
	stop    context.CancelFunc
}

func newRenewal() *renewal {
	r := &renewal{}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// heed begins the renewal if the error of a statement asks for it.
func (r *renewal) heed(err error) {
	if serverGone(err) {
		r.begin()
	}
}

// ping is called before a connection is used, and tests a connection that was idle. If the
// connection is dead, ping begins the renewal and returns true. The pool then pings the
// connection again, fails, and takes another connection.
func (r *renewal) ping(ctx context.Context, p pgxpool.ShouldPingParams) (again bool) {
	if p.IdleDuration < pingAfter {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := p.Conn.Ping(limited)
	if err != nil && ctx.Err() == nil {
		r.begin()
	}
	return err != nil
}

// begin begins the renewal if none is under way.
func (r *renewal) begin() {
	if !r.running.CompareAndSwap(false, true) {
		return
	}
	stat := r.pool.Stat()
	// A call that has a connection opens its next connection itself.
	idle := max(1, int(stat.TotalConns()-stat.AcquiredConns()+1))
	r.pool.Reset()
	go func() {
		defer r.running.Store(false)
		r.reopen(idle)
	}()
}

// reopen opens n connections side by side, again and again until a server takes them.
func (r *renewal) reopen(n int) {
	ctx, cancel := context.WithTimeout(r.ctx, reopenFor)
	defer cancel()
	tick := time.NewTicker(reopenEvery)
	defer tick.Stop()
	for !r.open(ctx, n) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// open acquires n connections and reports whether all were opened. Each connection is held
// back from calls until all n are open, for at most keepFor. Then the connections are in the
// pool.
func (r *renewal) open(ctx context.Context, n int) bool {
	var tried, all sync.WaitGroup
	tried.Add(n)
	together := make(chan struct{})
	all.Go(func() {
		tried.Wait()
		close(together)
	})
	var failed atomic.Bool
	for range n {
		all.Go(func() {
			c, err := r.pool.Acquire(ctx)
			tried.Done()
			if err != nil {
				failed.Store(true)
				return
			}
			select {
			case <-together:
			case <-time.After(keepFor):
			}
			c.Release()
		})
	}
	all.Wait()
	return !failed.Load()
}

// serverGone reports whether the error of a statement on an open connection means that the
// other connections will fail too. SQLSTATE 25006: a write has reached a server that accepts
// no writes, such as a former primary that is now a standby; a pooler keeps connections to
// this server open. New connections find the primary by target_session_attrs, or by the
// pooler's own means.
func serverGone(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "25006" || strings.HasPrefix(pg.Code, "57P0") && pg.Code != "57P05"
	}
	if failed, ok := errors.AsType[net.Error](err); ok {
		return !failed.Timeout() && !errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ETIMEDOUT)
	}
	closed := pgconn.SafeToRetry(err) && !errors.Is(err, context.Canceled) // before anything was sent
	return closed || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
