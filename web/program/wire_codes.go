package program

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/lookup"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/redeemcode"
)

// wireCodes makes what staff do with redeem codes.
func (p *program) wireCodes() error {
	keys, err := redeemcode.ParseKeys(p.Config.CodeKeys)
	if err != nil {
		return err
	}
	p.codes = &redeemcode.Service{Store: couponsdb.NewCodes(p.DB), Keys: keys, Now: app.Clock}
	if p.codeLookup, err = lookup.NewCodes(couponsdb.NewCodes(p.DB)); err != nil {
		return err
	}
	p.redeemer = &redeemcode.Redeemer{Keys: keys, Batches: p.codeLookup, Marks: redis.NewCodeMarks(p.Redis),
		Uses: couponsdb.NewCodes(p.DB),
		// In front of the durable gate nothing is refused from memory: a code
		// that was used is told apart from a drop that is sold out.
		Gate:     count(p.claims.All(), p.claims.total),
		NewID:    func(templateID int64) claim.ID { return claim.NewID(rand.Uint64(), templateID) },
		Answered: p.redemptionMetrics(), Failed: p.marksFailed()}
	return nil
}

// redemptionMetrics counts the answers to codes.
func (p *program) redemptionMetrics() func(error) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_redemptions_total", Help: "Redeem codes answered, by result."}, []string{"result"})
	p.Registry.MustRegister(total)
	result := func(err error) string { return claimResult(claim.Issued, err) }
	for _, err := range []error{nil, redeemcode.ErrInvalid, redeemcode.ErrUsed, claim.ErrSoldOut, claim.ErrLimit} {
		total.WithLabelValues(result(err)) // an increase from nothing is none
	}
	return func(err error) { total.WithLabelValues(result(err)).Inc() }
}

// marksFailed logs, once a minute at most, that used codes are refused the
// slow way.
func (p *program) marksFailed() func(error) {
	var last atomic.Int64
	return func(err error) {
		now := app.Clock().Unix()
		if before := last.Load(); now-before >= 60 && last.CompareAndSwap(before, now) {
			p.Log.Warn("marks of used codes are not available; going on, the database decides", "error", err)
		}
	}
}

// listenCodes makes this process see at once what happened to a batch.
func (p *program) listenCodes() {
	p.bus.Listen("code-cache", event.CodesChanged, app.Decoded(func(_ context.Context, _ string, e event.Codes) error {
		p.codeLookup.Forget(e.BatchID)
		return nil
	}))
}
