package program

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/wallet/googlewallet"
	"dropbell/adapters/wallet/pkpass"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/task"
	"dropbell/domain/wallet"
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
	queue   *asynq.Queue
	// compared is the last pass that the sweep has compared with its coupon, 0 = it
	// begins; again is when. Both are of the sweep alone.
	compared int64
	again    time.Time

	mu sync.Mutex
	// some is whether there are passes at all, as far as it is known until then.
	some  bool
	until time.Time
}

// newWallets connects what is configured.
func (p *program) newWallets() (*wallets, error) {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_wallet_answers_total",
		Help: "Answers of Apple and Google that were told of changed passes, by wallet and result."}, []string{"wallet", "result"})
	p.Registry.MustRegister(answers)
	w := p.Config.Wallet
	if !w.Apple() && !w.Google() {
		return &wallets{}, nil
	}
	store := p.Stores.Wallet
	u := &wallet.Updater{Store: store, Now: app.Clock, Observe: func(service string, a wallet.Answer) {
		answers.WithLabelValues(service, walletResults[a.Verdict]).Inc()
		if a.Verdict == wallet.Failed || a.Verdict == wallet.Refused {
			p.Log.Warn("a wallet was not told of a changed pass", "wallet", service, "error", a.Detail, "again", a.Verdict == wallet.Failed)
		}
	}}
	var wrong error
	if w.Apple() {
		issuer, err := pkpass.New(pkpass.Config{TypeID: w.TypeID, TeamID: w.TeamID, Certificate: []byte(w.Certificate), Key: []byte(w.Key), WWDR: []byte(w.WWDR), PushURL: w.PushURL})
		if err == nil {
			u.Apple = issuer
			p.OnClose(issuer.Close)
		}
		wrong = err
	}
	if w.Google() {
		issuer, err := googlewallet.New(googlewallet.Config{Account: []byte(w.GoogleAccount), Issuer: w.GoogleIssuer, URL: w.GoogleURL})
		if err == nil {
			u.Google = issuer
			p.OnClose(issuer.Close)
		}
		wrong = errors.Join(wrong, err)
	}
	if wrong != nil {
		return nil, config.Mistake{Err: wrong}
	}
	return &wallets{store: store, updater: u, queue: p.queue}, nil
}

// walletResults are the verdicts as metrics name them.
var walletResults = map[wallet.Verdict]string{wallet.Failed: "failed", wallet.Told: "told", wallet.Gone: "gone", wallet.Refused: "refused"}

// listen makes each step of a coupon that has a pass a change of the pass. Without
// wallets an event is only acknowledged: a group without readers, of the time when there
// were some, would keep every event.
func (w *wallets) listen(bus *watermill.Bus) {
	bus.Handle("wallets", event.CouponChanged, app.Decoded(func(ctx context.Context, _ string, e event.Coupon) error {
		if w.updater == nil {
			return nil
		}
		if !w.any(ctx) {
			return nil
		}
		changed, err := w.store.Note(ctx, e.CouponID)
		if err != nil || !changed {
			return err
		}
		return w.queue.Enqueue(ctx, task.TellWallets(app.Clock()))
	}), watermill.Parallel(4))
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

// walletTask tells wallets of what is due, for a turn.
func (p *program) walletTask(ctx context.Context, _ struct{}) error {
	if p.wallets.updater == nil {
		return nil // a program with passes queued it
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	_, err := p.wallets.updater.Drain(ctx)
	if p.life.Err() != nil {
		return nil // the sweep of another worker continues
	}
	return err
}
