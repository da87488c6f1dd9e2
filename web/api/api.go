// Package api is the public JSON API under /api/v1, for end users, the shop's services
// and automation. It reads requests, calls one use case and writes the answer; it
// decides nothing.
package api

import (
	"context"
	"io"

	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/hook"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/verification"
	"dropbell/domain/wallet"
	"dropbell/web/api/campaigns"
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
	Campaigns   campaigns.Deps
	Delivery    delivery.Deps
	Drops       drops.Deps
	Templates   *template.Service
	Users       *user.Service
	Segments    *segment.Service
	Jobs        *job.Service
	Uploads     Uploads
	Coupons     *coupon.Service
	CouponAdmin *coupon.Admin
	Grants      *coupon.Grants
	Codes       *redeemcode.Service
	Redeemer    *redeemcode.Redeemer
	Hooks       *hook.Service
	// Passes are those of coupons; nil = none are issued.
	Passes *wallet.Service
	// Phones are the numbers that users prove.
	Phones *verification.Service
	Claims *claim.Service
}

// API serves everything under /api/v1. Mount it on a chi router there.
type API struct {
	Deps
	*pipeline.Pipeline
	// guesses are redeem codes that were made up or mistyped.
	guesses, guessesFrom *middleware.Limiter
	// codesFrom are codes for phone numbers, by the address that requests them.
	codesFrom *middleware.Limiter
}

// Limiters are those of the pipeline, of redeem codes and of codes for phone numbers.
func (a *API) Limiters() map[string]*middleware.Limiter {
	list := a.Pipeline.Limiters()
	list["guesses"], list["guesses-from"], list["codes-from"] = a.guesses, a.guessesFrom, a.codesFrom
	return list
}

// New returns the API.
func New(d Deps) *API {
	a := &API{Deps: d, Pipeline: pipeline.New(d.Deps), guesses: middleware.NewLimiter(guessesPerUser),
		guessesFrom: middleware.NewLimiter(guessesPerAddress), codesFrom: middleware.NewLimiter(codesPerAddress)}
	a.preferenceRoutes()
	a.deviceRoutes()
	a.phoneRoutes()
	a.adminUserRoutes()
	a.eraseRoute()
	a.segmentRoutes()
	a.jobRoutes()
	a.couponRoutes()
	a.passRoutes()
	a.adminCouponRoutes()
	a.adminCodeRoutes()
	a.redemptionRoutes()
	a.adminWebhookRoutes()
	a.claimRoutes()
	campaigns.Routes(a.Pipeline, d.Campaigns)
	delivery.Routes(a.Pipeline, d.Delivery)
	drops.Routes(a.Pipeline, d.Drops)
	a.Finish()
	return a
}
