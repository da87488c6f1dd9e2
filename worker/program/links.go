package program

import (
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/user"
)

// optOutURL returns where a user can turn a channel off, as web serves it; nil
// without a secret to sign the links with.
func (p *program) optOutURL() func(user.ID, delivery.Channel) string {
	links := user.NewLinks(p.Config.LinkSecret)
	if !links.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(p.Config.PublicURL, "/") + "/u/"
	return func(id user.ID, c delivery.Channel) string { return base + links.Token(id, uint8(c)) }
}

// linkURL returns the tracked link of one recipient, as web serves it; nil
// without a secret to sign the links with.
func (p *program) linkURL() func(int64, user.ID, int) string {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}.Addresses(p.Config.PublicURL)
}

// reference returns what names messages to providers; nil without the secret.
func (p *program) reference() func(int64, user.ID) string {
	refs := feedback.NewRefs(p.Config.LinkSecret)
	if !refs.Enabled() {
		return nil
	}
	return func(batch int64, id user.ID) string { return refs.Text(feedback.Ref{Batch: batch, User: id}) }
}
