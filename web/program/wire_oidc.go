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
	if p.Config.OIDCIssuer == "" {
		return
	}
	d.Access.SingleSignOn = oidc.New(oidc.Options{Issuer: p.Config.OIDCIssuer, ClientID: p.Config.OIDCClientID,
		ClientSecret: p.Config.OIDCClientSecret, PublicURL: p.Config.PublicURL, Now: app.Clock})
}
