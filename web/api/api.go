// Package api is the public JSON API under /api/v1, for end users, the shop's services
// and automation. It reads requests, calls one use case and writes the answer; it
// decides nothing.
package api

import (
	"context"
	"io"

	"dropbell/domain/hook"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/domain/verification"
	"dropbell/web/api/campaigns"
	"dropbell/web/api/coupons"
	"dropbell/web/api/delivery"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Uploads keeps files that jobs read; see [workdb.Uploads].
type Uploads interface {
	SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error)
	// RemoveUpload removes a file that was refused.
	RemoveUpload(ctx context.Context, id int64) error
}

// Deps is everything the API needs. All fields are required but those that
// say otherwise.
type Deps struct {
	pipeline.Deps
	Campaigns campaigns.Deps
	Coupons   coupons.Deps
	Delivery  delivery.Deps
	Drops     drops.Deps
	Users     *user.Service
	Segments  *segment.Service
	Jobs      *job.Service
	Uploads   Uploads
	Hooks     *hook.Service
	// Phones are the numbers that users prove.
	Phones *verification.Service
}

// API serves everything under /api/v1. Mount it on a chi router there.
type API struct {
	Deps
	*pipeline.Pipeline
	// codesFrom are codes for phone numbers, by the address that requests them.
	codesFrom *middleware.Limiter
}

// Limiters are those of the pipeline, of redeem codes and of codes for phone numbers.
func (a *API) Limiters() map[string]*middleware.Limiter {
	list := a.Pipeline.Limiters()
	list["codes-from"] = a.codesFrom
	return list
}

// New returns the API.
func New(d Deps) *API {
	a := &API{Deps: d, Pipeline: pipeline.New(d.Deps), codesFrom: middleware.NewLimiter(codesPerAddress)}
	a.preferenceRoutes()
	a.deviceRoutes()
	a.phoneRoutes()
	a.adminUserRoutes()
	a.eraseRoute()
	a.segmentRoutes()
	a.jobRoutes()
	a.adminWebhookRoutes()
	campaigns.Routes(a.Pipeline, d.Campaigns)
	coupons.Routes(a.Pipeline, d.Coupons)
	delivery.Routes(a.Pipeline, d.Delivery)
	drops.Routes(a.Pipeline, d.Drops)
	a.Finish()
	return a
}
