package program

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/wallet/googlewallet"
	"dropbell/adapters/wallet/pkpass"
	"dropbell/app"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/waitlist"
	"dropbell/worker/coupons"
)

// coupons makes what worker does for coupons.
func (p *program) coupons() (d coupons.Deps, err error) {
	d = coupons.Deps{Steps: p.Stores.CouponSteps, Notices: &coupon.Announcer{Store: p.Stores.Notices, Queue: p.queue},
		NoticeRuns: p.Stores.Notices, Stock: p.Stores.StockLedgers,
		Tallies: couponsdb.NewTallyEvents(p.DB), Passes: p.Stores.Wallet, Reviews: p.Stores.Reviews, Queue: p.queue, Registry: p.Registry, Log: p.Log}
	waitlists := couponsdb.NewWaitlists(p.DB, postgres.Grouping{})
	d.Returner = &coupon.Returner{Store: p.Stores.CouponSteps}
	d.Filler = &waitlist.Filler{Store: waitlists, Queue: p.queue}
	p.OnClose(func() error { d.Tallies.Close(); waitlists.Close(); return nil })
	if d.Gate, err = p.gate("worker-" + uuid.NewString()); err == nil {
		d.Wallets, err = p.wallets()
	}
	return d, err
}

func (p *program) gate(consumer string) (coupons.GateDeps, error) {
	codes, err := lookup.NewCodes(p.Stores.Codes)
	stream := redisgate.NewStream(p.Redis, consumer)
	writer := &gate.Writer{Stream: stream, Recorder: p.Stores.GateRecorder}
	return coupons.GateDeps{Store: p.Stores.Gates, Stream: stream, Members: redisgate.NewMembers(p.Redis, consumer), Writer: writer,
		Keeper: &gate.Keeper{Store: p.Stores.Gates, Shards: redisgate.NewShards(p.Redis), Writer: writer, Now: app.Clock, Divide: gate.Divider(p.Config.GateShards)},
		Codes:  coupons.CodeMarks{Batches: codes, Marks: redis.NewCodeMarks(p.Redis)},
		Listen: func(ctx context.Context, calls redisgate.Calls) error { return redisgate.Listen(ctx, p.Redis, calls) }}, err
}

// wallets returns what tells the configured wallets; nil without any.
func (p *program) wallets() (*wallet.Updater, error) {
	w := p.Config.Wallet
	if !w.Apple() && !w.Google() {
		return nil, nil
	}
	u := &wallet.Updater{Store: p.Stores.Wallet, Now: app.Clock}
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
	return u, nil
}
