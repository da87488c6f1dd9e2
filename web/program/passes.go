package program

import (
	"context"
	"time"

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
