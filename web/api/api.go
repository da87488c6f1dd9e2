// Package api is the public JSON API under /api/v1, for end users, the shop's services and
// automation. Each package below reads the requests of one subject, calls one use case and writes
// the answer; use cases make all decisions. This package joins the operations of all subjects into
// one router and one OpenAPI document.
package api

import (
	"dropbell/web/api/audience"
	"dropbell/web/api/campaigns"
	"dropbell/web/api/coupons"
	"dropbell/web/api/delivery"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/api/work"
)

// Deps is everything the API needs. All fields are required unless stated otherwise.
type Deps struct {
	pipeline.Deps
	Audience  audience.Deps
	Campaigns campaigns.Deps
	Coupons   coupons.Deps
	Delivery  delivery.Deps
	Drops     drops.Deps
	Work      work.Deps
}

// API serves everything under /api/v1. Mount it on a chi router there.
type API struct{ *pipeline.Pipeline }

// New returns the API.
func New(d Deps) *API {
	pl := pipeline.New(d.Deps)
	audience.Routes(pl, d.Audience)
	campaigns.Routes(pl, d.Campaigns)
	coupons.Routes(pl, d.Coupons)
	delivery.Routes(pl, d.Delivery)
	drops.Routes(pl, d.Drops)
	work.Routes(pl, d.Work)
	pl.Finish()
	return &API{pl}
}
