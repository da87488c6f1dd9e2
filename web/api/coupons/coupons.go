// Package coupons holds the part of the API about coupons: claims, redeem codes, grants
// to lists, payment, and passes for wallets.
package coupons

import (
	"dropbell/domain/cart"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/pass"
	"dropbell/domain/redeemcode"
	"dropbell/domain/review"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Deps are the use cases of this package. All are required unless stated otherwise.
type Deps struct {
	Claims      *claim.Service
	Coupons     *coupon.Service
	CouponAdmin *coupon.Admin
	Codes       *redeemcode.Service
	Redeemer    *redeemcode.Redeemer
	Access      *redeemcode.Access
	Grants      *coupon.Grants
	Templates   *template.Service
	Uploads     pipeline.Uploads
	// Passes are the passes of coupons in wallets; nil = none are issued.
	Passes *wallet.Service
	Orders *coupon.Orders
	Carts  *cart.Service
	// CartOrders are orders with several coupons.
	CartOrders *cart.Orders
	// Waitlist are the waitlists of drops that sold out.
	Waitlist *waitlist.Service
	// ClaimPasses are the passes of protected drops.
	ClaimPasses *pass.Passes
	// Signs notes the signs of claims; nil = none are noted.
	Signs   ClaimSigns
	Reviews *review.Service
}

type handlers struct {
	*pipeline.Pipeline
	Deps
	// guesses are redeem codes that were made up or mistyped, by user and by address.
	guesses, guessesFrom *middleware.Limiter
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d, pl.Limiter("guesses", guessesPerUser), pl.Limiter("guesses-from", guessesPerAddress)}
	h.couponRoutes()
	h.orderRoutes()
	h.cartRoutes()
	h.cartOrderRoutes()
	h.passRoutes()
	h.staffRoutes()
	h.grantRoutes()
	h.codeRoutes()
	h.redemptionRoutes()
	h.accessRoutes()
	h.claimRoutes()
	h.waitlistRoutes()
	h.claimPassRoutes()
	h.reviewRoutes()
}
