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
	// callsPerRequest is the number of calls to the database among which a request's time is
	// divided: one call may take half a second of two.
	callsPerRequest = 4
	// staffTimeout bounds requests of staff's programs, which read more.
	staffTimeout = 15 * time.Second
)

// timed returns the request with a deadline for its answer. The deadline excludes reading the body,
// which comes before and has a limit of its own: a slow uplink is not Dropbell's delay.
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

// budget returns the budget that counts the operation's requests. Staff have a budget of their own,
// so that a rush of end users leaves room for them.
func (pl *Pipeline) budget(t Traits) *middleware.Budget {
	if t.Access == ForStaff {
		return pl.deps.StaffBudget
	}
	return pl.deps.Budget
}
