package program

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/siteverify"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/pass"
	"dropbell/domain/user"
)

// newClaimPasses makes the use case by which users earn passes of protected drops.
func (p *program) newClaimPasses() *pass.Passes {
	s := &pass.Passes{Keys: p.passKeys, Templates: p.lookup, Phones: p.newPhones(),
		Texts: func() bool { return p.Config.LinkSecret != "" && p.channels.Has(delivery.SMS) }, Now: app.Clock}
	if p.Config.SiteVerifyURL != "" {
		s.Verifier = siteverify.New(p.Config.SiteVerifyURL, p.Config.SiteVerifySecret)
	}
	return s
}

// linkPass returns a pass for the reader of a link: the link was sent to the user's own address.
// A strict drop does not accept it. It is empty for a drop without protection.
func (p *program) linkPass(ctx context.Context, by user.ID, templateID int64) string {
	t, err := p.lookup.Shared(ctx, templateID)
	if err != nil || !t.Protected() || !p.passKeys.Enabled() {
		return ""
	}
	now := app.Clock()
	return p.passKeys.Issue(pass.Pass{Way: pass.Link, IssuedAt: now, ExpiresAt: now.Add(time.Minute)}, by, templateID)
}

// startSigns begins to store the signs of claims of protected drops.
func (p *program) startSigns() {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_claim_signs_lost_total", Help: "Signs of claims that were not stored because too many waited."})
	p.Registry.MustRegister(lost)
	p.signs = couponsdb.NewSigns(p.DB, p.passKeys, couponsdb.SignsReport{Lost: func(n int) { lost.Add(float64(n)) },
		Failed: func(err error, waiting int) {
			p.Log.Warn("signs of claims could not be stored and wait", "waiting", waiting, "error", err)
		}})
	p.OnClose(func() error { p.signs.Close(); return nil })
}
