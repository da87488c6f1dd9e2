// Package api is the public JSON API under /api/v1, for end users, the shop's services
// and automation. Each package below reads the requests of one subject, calls one use
// case and writes the answer; it decides nothing. This package joins their operations
// into one router and one OpenAPI document.
package api

import (
	"dropbell/domain/hook"
	"dropbell/domain/job"
	"dropbell/web/api/audience"
	"dropbell/web/api/campaigns"
	"dropbell/web/api/coupons"
	"dropbell/web/api/delivery"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
)

// Deps is everything the API needs. All fields are required unless stated otherwise.
type Deps struct {
	pipeline.Deps
	Audience  audience.Deps
	Campaigns campaigns.Deps
	Coupons   coupons.Deps
	Delivery  delivery.Deps
	Drops     drops.Deps
	Jobs      *job.Service
	Hooks     *hook.Service
}

// API serves everything under /api/v1. Mount it on a chi router there.
type API struct {
	Deps
	*pipeline.Pipeline
}

// New returns the API.
func New(d Deps) *API {
	a := &API{Deps: d, Pipeline: pipeline.New(d.Deps)}
	a.jobRoutes()
	a.adminWebhookRoutes()
	audience.Routes(a.Pipeline, d.Audience)
	campaigns.Routes(a.Pipeline, d.Campaigns)
	coupons.Routes(a.Pipeline, d.Coupons)
	delivery.Routes(a.Pipeline, d.Delivery)
	drops.Routes(a.Pipeline, d.Drops)
	a.Finish()
	return a
}
