package pipeline

import (
	"context"
	"net/http"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/web/middleware"
)

const (
	// defaultRequestTimeout is how long an end user waits for an answer.
	defaultRequestTimeout = 2 * time.Second
	// callsPerRequest is the share of the request's time that one call to the
	// database may take: half a second of two.
	callsPerRequest = 4
	// staffTimeout bounds what staff's programs ask for, which reads more.
	staffTimeout = 15 * time.Second
)

// timed returns the request with the time that its answer may take. Reading
// the body has a limit of its own and comes before: a slow uplink is not
// Dropbell's delay.
func (pl *Pipeline) timed(r *http.Request, t Traits) (*http.Request, context.CancelFunc) {
	ctx, d := r.Context(), staffTimeout
	if t.Access != ForStaff {
		ctx, d = postgres.LimitCalls(ctx, pl.callTimeout()), pl.requestTimeout()
	}
	limit := timely
	if t.Detached {
		limit = detached
	}
	ctx, cancel := limit(ctx, d)
	return r.WithContext(ctx), cancel
}

func (pl *Pipeline) requestTimeout() time.Duration {
	if pl.deps.RequestTimeout > 0 {
		return pl.deps.RequestTimeout
	}
	return defaultRequestTimeout
}

// callTimeout bounds one call to the database that an end user waits for.
func (pl *Pipeline) callTimeout() time.Duration { return pl.requestTimeout() / callsPerRequest }

// budget returns what the operation's requests are counted in, so that a rush
// of end users leaves room for staff.
func (pl *Pipeline) budget(t Traits) *middleware.Budget {
	if t.Access == ForStaff {
		return pl.deps.StaffBudget
	}
	return pl.deps.Budget
}
