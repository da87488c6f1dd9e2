package chaos_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// stallsFrom is how long a commit of nothing may take before the machine counts as stalled. Usually
// it takes a few milliseconds.
const stallsFrom = 250 * time.Millisecond

// watchMachine commits nothing, over and over, in a session of its own, and notes when that stalls:
// then the machine has no processor or disk for anybody, and no answer in this time says anything
// about locks. A commit waits for no row of any drop.
func (r *haltRun) watchMachine(over <-chan struct{}) {
	conn, err := pgx.Connect(r.ctx, r.stack.PostgresURL)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer conn.Close(context.WithoutCancel(r.ctx))
	for {
		at := time.Now()
		if _, err := conn.Exec(r.ctx, `select pg_logical_emit_message(true, 'machine', '')`); err != nil {
			if r.ctx.Err() == nil {
				r.t.Error(err)
			}
			return
		}
		wait(20*time.Millisecond, over)
		if end := time.Now(); end.Sub(at) > stallsFrom {
			r.mu.Lock()
			r.stalls = append(r.stalls, window{at, end})
			r.mu.Unlock()
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// stalled returns how long the machine was stalled in the window.
func (r *haltRun) stalled(w window) (long time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.stalls {
		from, to := s.from, s.to
		if w.from.After(from) {
			from = w.from
		}
		if w.to.Before(to) {
			to = w.to
		}
		long += max(0, to.Sub(from))
	}
	return long
}
