package coupons

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/app"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/event"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

const (
	// walletExpiries bounds how many expiries one step of a sweep makes changes of passes.
	walletExpiries = 1000
	// walletCompared is how many passes one step of a sweep compares with their coupons.
	walletCompared = 2000
	// compareEvery is the pause after all passes were compared.
	compareEvery = time.Minute
	// anyLife is how long the answer of [wallets.any] is cached.
	anyLife = time.Second
)

// wallets tells the wallets of phones about changes of coupons. The zero value does nothing; it
// is used in an installation that issues no passes.
type wallets struct {
	store   couponsdb.Wallet
	updater *wallet.Updater
	queue   shell.Queue
	// compared is the last pass that the sweep has compared with its coupon; 0 = the comparison
	// starts at the first pass. again is when the next comparison may start. Only the sweep uses
	// both.
	compared int64
	again    time.Time

	mu sync.Mutex
	// some is the cached answer of [wallets.any]; until is when the answer expires.
	some  bool
	until time.Time
}

// newWallets returns the wallets of the room; d.Wallets may be nil.
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

// changed records each step of a coupon that has a pass as a change of the pass. Without
// configured wallets an event is only acknowledged: if wallets were configured earlier, their
// consumer group exists, and without readers it would keep every event.
func (w *wallets) changed(ctx context.Context, _ string, e event.CouponChanges) error {
	if w.updater == nil || !w.any(ctx) {
		return nil
	}
	coupons := make([]int64, len(e.Changes))
	for i, c := range e.Changes {
		coupons[i] = c.CouponID
	}
	changed, err := w.store.Note(ctx, coupons)
	if err != nil || !changed {
		return err
	}
	return w.queue.Enqueue(ctx, task.TellWallets(app.Clock()))
}

// any reports whether any coupon has a pass. The answer is up to a second old; a step that is
// missed because of its age is found by [wallets.noteMissed]. If the database does not answer,
// any is true.
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

// sweep records expiries as changes of passes, and also steps whose event was lost. If a change
// is due (a retry, or a change whose task was lost), it queues the task that tells the wallets.
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

// noteMissed compares the next [walletCompared] passes with their coupons. After the last pass
// it starts again at the first pass, not before compareEvery has passed.
func (w *wallets) noteMissed(ctx context.Context) (err error) {
	if app.Clock().Before(w.again) {
		return nil
	}
	if w.compared, err = w.store.NoteMissed(ctx, w.compared, walletCompared); err == nil && w.compared == 0 {
		w.again = app.Clock().Add(compareEvery)
	}
	return err
}

// tell tells wallets about due changes, for one turn.
func (w *wallets) tell(ctx context.Context, _ struct{}) error {
	if w.updater == nil {
		return nil // a program with passes queued it
	}
	_, err := w.updater.Drain(ctx)
	return err
}
