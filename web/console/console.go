// Package console is the web console for staff. Package views renders its pages, and the use cases
// decide what staff may do. Each package below reads the requests of one subject, calls one use
// case and answers. This package gathers their routes.
//
// Every page works without scripts. Where scripts run, htmx requests parts of pages: the same
// address answers with the part alone.
package console

import (
	"net/http"
	"slices"

	"dropbell/domain/staff"
	"dropbell/web/console/access"
	"dropbell/web/console/audience"
	"dropbell/web/console/campaigns"
	"dropbell/web/console/coupons"
	"dropbell/web/console/delivery"
	"dropbell/web/console/docs"
	"dropbell/web/console/drops"
	"dropbell/web/console/messages"
	"dropbell/web/console/search"
	"dropbell/web/console/shell"
	"dropbell/web/console/work"
)

// Deps are the dependencies of the console. All are required unless stated otherwise, except
// Drops.Step and Campaigns.Messages, which New sets from Messages.
type Deps struct {
	shell.Deps
	Access    access.Deps
	Audience  audience.Deps
	Campaigns campaigns.Deps
	Coupons   coupons.Deps
	Delivery  delivery.Deps
	Docs      docs.Deps
	Drops     drops.Deps
	Messages  messages.Deps
	Search    search.Deps
	Work      work.Deps
}

// Join has lists show the rows of a further database too, and forms offer its shops. o are its
// dependencies. [shell.Deps.Others] has the same databases in the same order.
func (d *Deps) Join(o Deps) {
	o.shareMessages()
	d.Access.Others, d.Audience.Others = append(d.Access.Others, o.Access), append(d.Audience.Others, o.Audience)
	d.Campaigns.Others, d.Coupons.Others = append(d.Campaigns.Others, o.Campaigns), append(d.Coupons.Others, o.Coupons)
	d.Delivery.Others, d.Drops.Others, d.Search.Others = append(d.Delivery.Others, o.Delivery), append(d.Drops.Others, o.Drops), append(d.Search.Others, o.Search)
	d.Work.Others = append(d.Work.Others, o.Work)
}

// shareMessages gives forms of drops and campaigns their parts about messages.
func (d *Deps) shareMessages() {
	d.Drops.Step, d.Campaigns.Messages = messages.NewStep(d.Messages), messages.NewShared(d.Messages)
}

// Console serves the console.
type Console struct {
	*shell.Shell
	routes  []shell.Route
	handler http.Handler
}

// New returns the console. It panics if the catalogues or assets embedded in the program cannot be
// read.
func New(d Deps) *Console {
	sh := shell.New(d.Deps)
	d.shareMessages()
	c := &Console{Shell: sh, routes: slices.Concat(
		[]shell.Route{shell.Get("/live", staff.View, sh.StreamParts)},
		access.Routes(sh, d.Access), audience.Routes(sh, d.Audience), campaigns.Routes(sh, d.Campaigns), coupons.Routes(sh, d.Coupons),
		delivery.Routes(sh, d.Delivery), docs.Routes(sh, d.Docs), drops.Routes(sh, d.Drops), messages.Routes(sh, d.Messages), search.Routes(sh, d.Search), work.Routes(sh, d.Work))}
	c.handler = sh.Mount(c.routes)
	return c
}

// Routes returns every route except static files and the queue dashboard.
func (c *Console) Routes() []shell.Route { return c.routes }

// ServeHTTP answers every address that is not the API's.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }
