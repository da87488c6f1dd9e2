// Package coupons is the room of worker for coupons: the claim gate, locks and expiry, notices
// before coupons expire, passes in wallets, and the recount of stocks.
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
	"dropbell/worker/shell"
)

// Deps are the dependencies of the room. All are required except Wallets, which is nil in an
// installation that issues no passes.
type Deps struct {
	Steps      couponsdb.CouponSteps
	Payments   *coupon.Service
	Notices    *coupon.Announcer
	NoticeRuns couponsdb.Notices
	Stock      couponsdb.Ledgers
	Tallies    couponsdb.CouponTallies
	Passes     couponsdb.Wallet
	Wallets    *wallet.Updater
	Gate       GateDeps
	Queue      shell.Queue

	Registry *prometheus.Registry
	Log      *slog.Logger
}

// Roles returns what worker does for coupons.
func Roles(d Deps) shell.Roles {
	c, w, g := newCoupons(d), newWallets(d), newGateWork(d)
	stock, notices := newStockCensus(d), newNoticeCensus(d)
	r := shell.Roles{
		Loops: g.loops(d.Gate.Listen),
		Sweeps: []shell.Sweep{
			{Role: shell.Events, Name: "wallets", Do: w.sweep},
			{Role: shell.House, Name: "coupons", Do: c.sweep},
			{Role: shell.House, Name: "notices", Do: d.Notices.Sweep},
		},
		Handlers: append(g.handlers(),
			shell.On("coupon-timers", event.CouponChanged, app.Decoded(func(ctx context.Context, _ string, e event.Coupon) error {
				if e.Step != string(coupon.StepLock) || e.LockedUntil == nil {
					return nil
				}
				return d.Queue.Enqueue(ctx, task.LockEnd(e.CouponID, e.OrderID, *e.LockedUntil))
			})),
			shell.On("coupon-tallies", event.CouponChanged, app.Decoded(d.Tallies.Changed)),
			shell.On("coupon-tallies", event.CouponsExpired, app.Decoded(d.Tallies.Expired)),
			// The sweep settles too; this is for batches whose dead letters were replayed.
			shell.On("notices", event.BatchFinished, app.Decoded(func(ctx context.Context, _ string, e event.Batch) error {
				if e.Kind != string(delivery.KindNotice) {
					return nil
				}
				return d.Notices.Store.SettleNotices(ctx, e.OwnerID)
			}), watermill.Ahead()),
			shell.On("wallets", event.CouponChanged, app.Decoded(w.changed), watermill.Parallel(4))),
		Tasks: []shell.Task{
			{Name: task.EndLock, Do: shell.Decoded(c.endLock)},
			{Name: task.TellWallet, Do: shell.Decoded(w.tell), Turn: true},
		},
		Counts: []shell.Count{{Take: stock.count, Forget: stock.forget}, {Take: notices.count, Forget: notices.forget}},
	}
	for range gateSweeps {
		r.Sweeps = append(r.Sweeps, shell.Sweep{Role: shell.Gate, Name: "gate keeper", Do: g.keeper.Sweep})
	}
	return r
}
