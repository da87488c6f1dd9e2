package coupons

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/task"
	"dropbell/domain/wallet"
	"dropbell/worker/shell"
)

const (
	// walletExpiries bounds how many expiries one step of a sweep makes changes of passes.
	walletExpiries = 1000
	// walletCompared is how many passes one step of a sweep compares with their coupons.
	walletCompared = 2000
	// compareEvery is the pause after all passes were compared.
	compareEvery = time.Minute
	// anyLife is how long it is remembered whether there are passes at all.
	anyLife = time.Second
)

// wallets tells the wallets of phones of changes of coupons. The zero value, of an
// installation that issues no passes, does nothing.
type wallets struct {
	store   couponsdb.Wallet
	updater *wallet.Updater
	queue   shell.Queue
	// compared is the last pass that the sweep has compared with its coupon, 0 = it
	// begins; again is when. Both are of the sweep alone.
	compared int64
	again    time.Time

	mu sync.Mutex
	// some is whether there are passes at all, as far as it is known until then.
	some  bool
	until time.Time
}

// newWallets returns what tells wallets through the updater, which may be nil.
func newWallets(d Deps) *wallets {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_wallet_answers_total",
		Help: "Answers of Apple and Google that were told of changed passes, by wallet and result."}, []string{"wallet", "result"})
	d.Registry.MustRegister(answers)
	if d.Wallets == nil {
		return &wallets{}
	}
	d.Wallets.Observe = func(service string, a wallet.Answer) {
		answers.WithLabelValues(service, walletResults[a.Verdict]).Inc()
		if a.Verdict == wallet.Failed || a.Verdict == wallet.Refused {
			d.Log.Warn("a wallet was not told of a changed pass", "wallet", service, "error", a.Detail, "again", a.Verdict == wallet.Failed)
		}
	}
	return &wallets{store: d.Passes, updater: d.Wallets, queue: d.Queue}
}

// walletResults are the verdicts as metrics name them.
var walletResults = map[wallet.Verdict]string{wallet.Failed: "failed", wallet.Told: "told", wallet.Gone: "gone", wallet.Refused: "refused"}

// changed makes each step of a coupon that has a pass a change of the pass. Without
// wallets an event is only acknowledged: a group without readers, of the time when there
// were some, would keep every event.
func (w *wallets) changed(ctx context.Context, _ string, e event.Coupon) error {
	if w.updater == nil || !w.any(ctx) {
		return nil
	}
	changed, err := w.store.Note(ctx, e.CouponID)
	if err != nil || !changed {
		return err
	}
	return w.queue.Enqueue(ctx, task.TellWallets(app.Clock()))
}

// any reports whether some coupon has a pass. The answer is up to a second old: a step
// that is missed because of that is found by [wallets.noteMissed]. If that cannot be told
// it is true.
func (w *wallets) any(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := app.Clock(); !now.Before(w.until) {
		some, err := w.store.Any(ctx)
		if err != nil {
			return true
		}
		w.some, w.until = some, now.Add(anyLife)
	}
	return w.some
}

// sweep makes expiries changes of passes, and steps whose event was lost; it queues what
// is due: retries, and changes whose task was lost.
func (w *wallets) sweep(ctx context.Context) error {
	if w.updater == nil {
		return nil
	}
	if _, err := w.store.NoteExpired(ctx, walletExpiries); err != nil {
		return err
	}
	if err := w.noteMissed(ctx); err != nil {
		return err
	}
	due, err := w.store.Due(ctx)
	if err != nil || !due {
		return err
	}
	return w.queue.Enqueue(ctx, task.TellWallets(app.Clock()))
}

// noteMissed compares some passes with their coupons, and all of them again a while
// after the last one.
func (w *wallets) noteMissed(ctx context.Context) (err error) {
	if app.Clock().Before(w.again) {
		return nil
	}
	if w.compared, err = w.store.NoteMissed(ctx, w.compared, walletCompared); err == nil && w.compared == 0 {
		w.again = app.Clock().Add(compareEvery)
	}
	return err
}

// tell tells wallets of what is due, for a turn.
func (w *wallets) tell(ctx context.Context, _ struct{}) error {
	if w.updater == nil {
		return nil // a program with passes queued it
	}
	_, err := w.updater.Drain(ctx)
	return err
}
