// Package coupons holds the console's pages about coupons: claims, redeem codes,
// grants to lists of users, coupons with their steps, and their notices.
package coupons

import (
	"time"

	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/review"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Templates shell.Templates
	Coupons   *coupon.Admin
	Codes     *redeemcode.Service
	Grants    *coupon.Grants
	Jobs      *job.Service
	// Files receives lists of users.
	Files   *upload.Files
	Notices NoticeCalendar
	Tallies Tallies
	Sales   *Sales
	Reviews *review.Service
	// Carts lists what goes together in one order.
	Carts cart.Lists
	// Patience is how long a page waits for the worker that gives a coupon.
	Patience time.Duration
	// Others are the dependencies of the further databases whose coupons, codes and reviews lists have too.
	Others []Deps
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the handlers of all databases, these first.
	cells []*handlers
}

// Routes returns the routes about coupons, codes and grants. It also sets the content of the job
// pages of grants.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d}
	h.cells = []*handlers{h}
	for _, o := range d.Others {
		h.cells = append(h.cells, &handlers{Shell: sh, Deps: o})
	}
	for _, o := range h.cells {
		o.cells = h.cells
	}
	h.showGrantJobs()
	return append(append(h.giftRoutes(), h.reviewRoutes()...), []shell.Route{
		shell.Live(time.Second, shell.Get("/templates/{id}/claims", staff.View, shell.With(shell.TemplateOf(h.Templates), h.showClaims))),
		shell.Report(shell.Get("/grants", staff.View, h.listGrants)),
		shell.Report(shell.Get("/grants.csv", staff.View, shell.CSV(h.Shell, h.exportedGrants))),
		shell.Get("/grants/list.csv", staff.ManageUsers, h.grantFile),
		shell.Live(time.Second, shell.Own(shell.Get("/grants/{id}", staff.View, h.showGrant))),
		shell.Get("/grants/{id}/results.csv", staff.ManageUsers, shell.With(h.loadGrant, h.grantResults)),
		shell.Get("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, h.confirmGrantStep),
		shell.Post("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, shell.With(h.loadGrantStep, h.takeGrantStep)),
		shell.Report(shell.Get("/templates/{id}/grants", staff.View, h.listGrants)),
		shell.Get("/templates/{id}/grants/new", staff.ManageUsers, shell.With(h.loadGiving, h.newGrant)),
		shell.Upload(shell.Post("/templates/{id}/grants/new", staff.ManageUsers, h.startGrant)),
		shell.Live(2*time.Second, shell.Get("/codes", staff.View, h.allCodes)),
		shell.Report(shell.Get("/codes.csv", staff.View, shell.CSV(h.Shell, h.exportedBatches))),
		shell.Post("/codes/check", staff.View, h.checkCode),
		shell.Live(2*time.Second, shell.Get("/templates/{id}/codes", staff.View, shell.With(shell.TemplateOf(h.Templates), h.listCodes))),
		shell.Post("/templates/{id}/codes", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.generateCodes)),
		shell.Sure(shell.Get("/templates/{id}/codes.csv", staff.ManageTemplates, h.exportCodes)),
		shell.Get("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, h.confirmRevokeCodes),
		shell.Post("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, h.revokeCodes),
		shell.Report(shell.Get("/coupons", staff.View, h.findCoupons)),
		shell.Report(shell.Get("/coupons.csv", staff.View, h.exportCoupons)),
		shell.Report(shell.Get("/coupons/locks", staff.View, h.listLocks)),
		shell.Report(shell.Get("/coupons/locks.csv", staff.View, shell.CSV(h.Shell, h.allLocks))),
		shell.Report(shell.Get("/coupons/together", staff.View, shell.With(h.AllShopsOf, h.showTogether))),
		shell.Get("/coupons/{id}", staff.View, shell.With(shell.PathID, h.showCoupon)),
		shell.Get("/coupons/{id}/{step:release|revoke}", staff.View, shell.With(h.ownCoupon, h.confirmCouponStep)),
		shell.Post("/coupons/{id}/{step:release|revoke}", staff.View, h.takeCouponStep),
		shell.Get("/notices", staff.View, h.showNotices),
	}...)
}
