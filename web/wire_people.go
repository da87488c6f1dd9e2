package main

import (
	"github.com/go-chi/chi/v5"

	"dropbell/domain/user"
	"dropbell/web/links"
)

// mountLinks serves the pages behind links in messages. Without a secret
// there are no links, and every address below is missing.
func (p *program) mountLinks(r chi.Router) {
	r.Mount(links.Prefix, links.New(links.Deps{Users: p.users, Links: user.NewLinks(p.cfg.LinkSecret), Channels: p.channels, Now: clock, Log: p.log}))
}
