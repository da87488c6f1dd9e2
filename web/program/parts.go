package program

import (
	"dropbell/adapters/oidc"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/sheet"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/claim/gate"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// campaignLinks signs and reads the tracked links of campaigns. Without a secret there are no
// links.
func (p *program) campaignLinks() campaign.Links {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}
}

func (p *program) tables() job.Tables {
	return sheet.Tables{Open: p.Stores.Uploads.OpenUpload, Turns: p.workbooks}
}

func (p *program) telling(s template.Store) template.Store {
	gates := p.Stores.Gates
	// The streams are only read; no group is taken.
	writer := &gate.Writer{Stream: redisgate.NewStream(p.Redis, "web"), Recorder: p.Stores.GateRecorder}
	return appliedStore{s, &gate.Keeper{Store: gates, Shards: redisgate.NewShards(p.Redis), Writer: writer, Now: app.Clock,
		Divide: gate.Divider(p.Config.GateShards)}, p.claims.Gate}
}

// singleSignOn returns the identity provider of the environment, nil without it. It sends no
// request yet: a provider that is down does not prevent the start.
func (p *program) singleSignOn() staff.IdentityProvider {
	if p.Config.OIDCIssuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{Issuer: p.Config.OIDCIssuer, ClientID: p.Config.OIDCClientID,
		ClientSecret: p.Config.OIDCClientSecret, PublicURL: p.Config.PublicURL, Now: app.Clock})
}
