// Package coupons is the room of worker for coupons: the claim gate, locks and expiry, notices
// before coupons expire, waitlists, passes in wallets, and the recount of stocks.
package coupons

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/task"
	"dropbell/domain/waitlist"
	"dropbell/worker/shell"
)

// Deps are the dependencies of the room. All are required except Wallets, which is nil in an
// installation that issues no passes.
type Deps struct {
	Steps      couponsdb.CouponSteps
	Notices    *coupon.Announcer
	NoticeRuns couponsdb.Notices
	Stock      couponsdb.Ledgers
	Tallies    *couponsdb.TallyEvents
	Filler     *waitlist.Filler
	Returner   *coupon.Returner
	Passes     couponsdb.Wallet
	Reviews    couponsdb.Reviews
	Wallets    *wallet.Updater
	Gate       GateDeps
	Queue      shell.Queue

	Registry *prometheus.Registry
	Log      *slog.Logger
}

// tallyReaders is how many events about changed coupons are counted at a time, in one
// transaction.
const tallyReaders = 8

// single handles an event of [event.CouponChanged] as the event of one change.
func single(do func(context.Context, string, event.CouponChanges) error) watermill.HandlerFunc {
	return app.Decoded(func(ctx context.Context, id string, e event.Coupon) error {
		return do(ctx, id, event.CouponChanges{Changes: []event.Coupon{e}})
	})
}

// Roles returns what worker does for coupons.
func Roles(d Deps) shell.Roles {
	c, w, g := newCoupons(d), newWallets(d), newGateWork(d)
	stock, notices := newStockCensus(d), newNoticeCensus(d)
	tallied := func(ctx context.Context, id string, e event.CouponChanges) error {
		return d.Tallies.Changed(ctx, id, e.Changes)
	}
	r := shell.Roles{
		Loops: g.loops(d.Gate.Listen),
		Sweeps: []shell.Sweep{
			{Role: shell.Events, Name: "wallets", Do: w.sweep},
			{Role: shell.House, Name: "coupons", Do: c.sweep},
			{Role: shell.House, Name: "notices", Do: d.Notices.Sweep},
			{Role: shell.House, Name: "waitlists", Do: newWaitlists(d).sweep},
			{Role: shell.House, Name: "reviews", Do: reviews{d.Reviews}.sweep},
		},
		Handlers: append(g.handlers(),
			shell.On("coupon-tallies", event.CouponsChanged, app.Decoded(tallied), watermill.Parallel(tallyReaders)),
			shell.On("coupon-tallies", event.CouponChanged, single(tallied)),
			shell.On("coupon-tallies", event.CouponsExpired, app.Decoded(d.Tallies.Expired)),
			// The sweep settles too; this is for batches whose dead letters were replayed.
			shell.On("notices", event.BatchFinished, app.Decoded(func(ctx context.Context, _ string, e event.Batch) error {
				if e.Kind != string(delivery.KindNotice) {
					return nil
				}
				return d.Notices.Store.SettleNotices(ctx, e.OwnerID)
			}), watermill.Ahead()),
			shell.On("wallets", event.CouponsChanged, app.DecodedIf(w.any, w.changed), watermill.Parallel(4)),
			shell.On("wallets", event.CouponChanged, single(w.changed)),
			// The program before set a timer for the end of each lock. Its group would keep the
			// stream's events, and its tasks would wait: both are only acknowledged.
			shell.On("coupon-timers", event.CouponChanged, func(context.Context, watermill.Event) error { return nil })),
		Tasks: []shell.Task{
			{Name: task.EndLock, Do: func(context.Context, []byte) error { return nil }},
			{Name: task.TellWallet, Do: shell.Decoded(w.tell), Turn: true},
		},
		Counts: []shell.Count{{Take: stock.count, Forget: stock.forget}, {Take: notices.count, Forget: notices.forget}},
	}
	for range gateSweeps {
		r.Sweeps = append(r.Sweeps, shell.Sweep{Role: shell.Gate, Name: "gate keeper", Do: g.keeper.Sweep})
	}
	return r
}
