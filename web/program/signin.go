package program

import (
	"dropbell/adapters/oidc"
	"dropbell/app"
	"dropbell/domain/staff"
)

// singleSignOn is the identity provider in the environment, nil without one. No
// request is sent to it yet: one that is down does not prevent the start.
func (p *program) singleSignOn() staff.IdentityProvider {
	if p.Config.OIDCIssuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{Issuer: p.Config.OIDCIssuer, ClientID: p.Config.OIDCClientID,
		ClientSecret: p.Config.OIDCClientSecret, PublicURL: p.Config.PublicURL, Now: app.Clock})
}
