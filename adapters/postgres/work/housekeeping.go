package work

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// Housekeeping removes expired rows, in small chunks so that every statement is short.
type Housekeeping struct{ *pg.DB }

// NewHousekeeping returns the housekeeping of db.
func NewHousekeeping(db *pg.DB) Housekeeping { return Housekeeping{db} }

// Retention is how long each kind of row is kept. Zero = without end.
type Retention struct {
	Delivery    time.Duration // reservations, batches and exceptions after the opening; slots after the end of the drop
	Audit       time.Duration
	Coupons     time.Duration // coupons and claims of a drop after the last coupon's expiry
	Operations  time.Duration // steps of coupons, orders
	Idempotency time.Duration
	Events      time.Duration // ids of handled events
	Jobs        time.Duration // jobs that are over, with their row errors
	Uploads     time.Duration // files, once no unfinished job needs them
	Hooks       time.Duration // events of webhooks with their deliveries, whatever became of these
}

const (
	// chunk is how many rows one statement removes.
	chunk = 5000
	// smsNamesKept is how long the providers' ids of text messages are kept: providers report
	// within three days.
	smsNamesKept = 4 * 24 * time.Hour
	// passesKept is how long passes in wallets can be told of a change after the expiry.
	passesKept = 60 * 24 * time.Hour
	// stepBudget is how long one step may take before the next step runs. The next cleaning
	// continues where the step stopped.
	stepBudget = time.Minute
)

// Clean removes all rows past their retention. It returns the number of removed rows, without
// the rows of dropped tables. Clean may be stopped at any point and repeated. A step that fails
// or exceeds budget (0 = [stepBudget]) does not keep other steps from running. It stores what
// became of each step; see [Housekeeping.Steps].
func (h Housekeeping) Clean(ctx context.Context, keep Retention, budget time.Duration) (total int64, err error) {
	c := cleaning{Housekeeping: h, budget: cmp.Or(budget, stepBudget)}
	if err := h.Pool.QueryRow(ctx, `select statement_timestamp()`).Scan(&c.start); err != nil {
		return 0, pg.Translate(err)
	}
	c.dropRows(ctx, keep)
	c.campaignRows(ctx, keep.Delivery)
	// After the figures of drops and campaigns were kept, and before drops without batches are
	// archived.
	c.do(ctx, "batches", keep.Delivery, func(ctx context.Context) (int64, error) { return h.removeBatches(ctx, c.start, keep.Delivery) })
	c.planned(ctx, "drops", keep.Delivery, c.packDrops)
	c.do(ctx, "event_days", eventDaysAlways, func(ctx context.Context) (int64, error) { return 0, h.addEventDays(ctx) })
	c.do(ctx, "handled_events", keep.Events, func(ctx context.Context) (int64, error) { return 0, h.dropEventDays(ctx, keep.Events) })
	for _, s := range steps(keep) {
		c.do(ctx, s.name, s.age, func(ctx context.Context) (int64, error) { return h.inChunks(ctx, s.sql, s.age, chunk) })
	}
	c.record(ctx, keep)
	return c.rows, errors.Join(append(c.failed, ctx.Err())...)
}

// eventDaysAlways stands in the place of a retention: tables of days are always added.
const eventDaysAlways = time.Hour

// A cleaning is one run of all steps.
type cleaning struct {
	Housekeeping
	budget time.Duration
	start  time.Time // by the database's clock
	rows   int64
	runs   []run
	failed []error
}

// A run is what became of a step.
type run struct {
	name     string
	finished bool
	took     time.Duration
	rows     int64
}

// before returns the instant that is age before the start of the cleaning. All steps of a
// cleaning use the same instant, so that a step never removes rows that an earlier step has not
// looked at.
func (c *cleaning) before(age time.Duration) time.Time { return c.start.Add(-age) }

// do runs one step, unless age is zero. Exceeding the budget is not a failure.
func (c *cleaning) do(ctx context.Context, name string, age time.Duration, carryOut func(context.Context) (int64, error)) {
	if ctx.Err() != nil || age == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	begun := time.Now()
	n, err := carryOut(limited)
	c.rows += n
	c.runs = append(c.runs, run{name, err == nil, time.Since(begun), n})
	if err != nil && countsAsFailed(ctx, limited, err) {
		c.failed = append(c.failed, err)
	}
}

// inChunks repeats a statement that removes up to [chunk] rows, until the statement removes
// fewer rows.
func (h Housekeeping) inChunks(ctx context.Context, sql string, args ...any) (total int64, err error) {
	for {
		tag, err := h.Pool.Exec(ctx, sql, args...)
		total += tag.RowsAffected()
		if err != nil || tag.RowsAffected() < chunk {
			return total, pg.Translate(err)
		}
	}
}

// Leader runs do if no other process is running the same job right now. It holds a connection
// while do runs, which may take minutes. The connection is idle and has no snapshot: a snapshot
// would hold back vacuum and concurrent index builds.
func (h Housekeeping) Leader(ctx context.Context, job string, do func(context.Context) error) error {
	return h.Tx(ctx, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended($1, 0))`, "dropbell:"+job).Scan(&mine); err != nil || !mine {
			return err
		}
		// The lock query's snapshot lasts until the next statement, and this statement takes no
		// snapshot.
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		return do(ctx)
	})
}
