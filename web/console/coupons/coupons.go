// Package coupons holds the console's pages about coupons: claims, redeem codes,
// grants to lists of users, coupons with their steps, and their notices.
package coupons

import (
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// Deps are what the pages of this package stand on.
type Deps struct {
	Templates shell.Templates
	Coupons   *coupon.Desk
	Codes     *redeemcode.Service
	Grants    *coupon.Grants
	Jobs      *job.Service
	// Files receives lists of users.
	Files   *upload.Files
	Notices NoticeCalendar
	Tallies Tallies
	Sales   *Sales
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
}

// Routes returns the routes about coupons, codes and grants, and says what
// pages show of the jobs of grants.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	c := &handlers{Shell: sh, Deps: d}
	c.showGrantJobs()
	return []shell.Route{
		shell.Live(time.Second, shell.Get("/templates/{id}/claims", staff.View, c.showClaims)),
		shell.Get("/grants", staff.View, c.listGrants),
		shell.Get("/grants.csv", staff.View, c.exportGrants),
		shell.Get("/grants/list.csv", staff.ManageUsers, c.grantFile),
		shell.Live(time.Second, shell.Own(shell.Get("/grants/{id}", staff.View, c.showGrant))),
		shell.Get("/grants/{id}/results.csv", staff.ManageUsers, c.grantResults),
		shell.Get("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, c.confirmGrantStep),
		shell.Post("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, c.takeGrantStep),
		shell.Get("/templates/{id}/grants", staff.View, c.listGrants),
		shell.Get("/templates/{id}/grants/new", staff.ManageUsers, c.newGrant),
		shell.Upload(shell.Post("/templates/{id}/grants/new", staff.ManageUsers, c.startGrant)),
		shell.Live(2*time.Second, shell.Get("/codes", staff.View, c.allCodes)),
		shell.Get("/codes.csv", staff.View, c.exportBatches),
		shell.Post("/codes/check", staff.View, c.checkCode),
		shell.Live(2*time.Second, shell.Get("/templates/{id}/codes", staff.View, c.listCodes)),
		shell.Post("/templates/{id}/codes", staff.ManageTemplates, c.generateCodes),
		shell.Sure(shell.Get("/templates/{id}/codes.csv", staff.ManageTemplates, c.exportCodes)),
		shell.Get("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, c.confirmRevokeCodes),
		shell.Post("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, c.revokeCodes),
		shell.Get("/coupons", staff.View, c.findCoupons),
		shell.Get("/coupons.csv", staff.View, c.exportCoupons),
		shell.Get("/coupons/locks", staff.View, c.listLocks),
		shell.Get("/coupons/locks.csv", staff.View, c.exportLocks),
		shell.Get("/coupons/{id}", staff.View, c.showCoupon),
		shell.Get("/coupons/{id}/{step:release|revoke}", staff.View, c.confirmCouponStep),
		shell.Post("/coupons/{id}/{step:release|revoke}", staff.View, c.takeCouponStep),
		shell.Get("/notices", staff.View, c.showNotices),
	}
}
