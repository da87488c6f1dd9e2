package program

import (
	"dropbell/adapters/oidc"
	"dropbell/app"
	"dropbell/web/console"
)

// wireSingleSignOn opens the console's second door if the environment names
// an identity provider. Nothing is asked of it yet: one that is down keeps
// nobody from starting.
func (p *program) wireSingleSignOn(d *console.Deps) {
	if p.cfg.OIDCIssuer == "" {
		return
	}
	d.Access.SingleSignOn = oidc.New(oidc.Options{Issuer: p.cfg.OIDCIssuer, ClientID: p.cfg.OIDCClientID,
		ClientSecret: p.cfg.OIDCClientSecret, PublicURL: p.cfg.PublicURL, Now: app.Clock})
}
