package main

import (
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// optOutURL returns where a user can turn a channel off, as web serves it; nil
// without a secret to sign the links with.
func (p *program) optOutURL() func(user.ID, delivery.Channel) string {
	links := user.NewLinks(p.cfg.LinkSecret)
	if !links.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(p.cfg.PublicURL, "/") + "/u/"
	return func(id user.ID, c delivery.Channel) string { return base + links.Token(id, uint8(c)) }
}
