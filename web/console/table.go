package console

import (
	"net/http"
	"slices"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/access"
	"dropbell/web/console/shell"
)

// routesOfSubjects gathers the routes of all subjects.
func (c *Console) routesOfSubjects() []shell.Route {
	return append(slices.Concat(c.campaignRoutes(), access.Routes(c.Shell, c.Access)), []shell.Route{

		shell.Get("/live", staff.View, c.StreamParts),

		shell.Live(2*time.Second, shell.Get("/", staff.View, c.overview)),

		shell.Get("/templates", staff.View, c.listTemplates),
		shell.Post("/templates", staff.ManageTemplates, c.createTemplate),
		shell.Get("/templates/choices", staff.View, c.chooseTemplate),
		shell.Get("/templates/new", staff.ManageTemplates, c.newTemplate),
		shell.Post("/templates/preview", staff.ManageTemplates, c.previewTemplate),
		shell.Live(time.Second, shell.Get("/templates/{id}", staff.View, c.showTemplate)),
		shell.Get("/templates/{id}/cockpit", staff.View, c.showCockpit),
		shell.Get("/templates/{id}/cockpit/live", staff.View, c.streamCockpit),
		shell.Live(time.Second, shell.Get("/templates/{id}/claims", staff.View, c.showClaims)),
		shell.Get("/templates/{id}/edit", staff.ManageTemplates, c.editTemplate),
		shell.Post("/templates/{id}/edit", staff.ManageTemplates, c.saveTemplate),
		shell.Get("/templates/{id}/move", staff.ManageTemplates, c.moveForm),
		shell.Post("/templates/{id}/move", staff.ManageTemplates, c.move),
		shell.Get("/templates/{id}/stock", staff.ManageTemplates, c.stockForm),
		shell.Post("/templates/{id}/stock", staff.ManageTemplates, c.raiseStock),
		shell.Get("/templates/{id}/balance", staff.View, c.balance),
		shell.Get("/templates/{id}/slots/{slot}/receipt.csv", staff.View, c.receipt),
		shell.Get("/templates/{id}/users/{user}", staff.View, c.explain),
		shell.Live(time.Second, shell.Get("/templates/{id}/announcements", staff.View, c.listAnnouncements)),
		shell.Get("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.confirmAnnouncement),
		shell.Post("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.sendAnnouncement),
		shell.Get("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.confirmStep),
		shell.Post("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.takeStep),

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

		shell.Get("/users", staff.View, c.findUsers),
		shell.Get("/users/import", staff.ManageUsers, c.ofAllShops(c.importForm)),
		shell.Upload(shell.Post("/users/import", staff.ManageUsers, c.ofAllShops(c.importUpload))),
		shell.Get("/users/import/template.csv", staff.ManageUsers, c.ofAllShops(c.importTemplate)),
		shell.Get("/users/import/{id}", staff.ManageUsers, c.ofAllShops(c.importColumns)),
		shell.Post("/users/import/{id}", staff.ManageUsers, c.ofAllShops(c.importCheck)),
		shell.Get("/users/import/{id}/apply", staff.ManageUsers, c.ofAllShops(c.confirmImport)),
		shell.Post("/users/import/{id}/apply", staff.ManageUsers, c.ofAllShops(c.startImport)),
		shell.Get("/users/{id}", staff.View, c.showUser),
		shell.Post("/users/{id}/contacts", staff.ManageUsers, c.revealContacts),
		shell.Get("/users/{id}/edit", staff.ManageUsers, c.editUser),
		shell.Post("/users/{id}/edit", staff.ManageUsers, c.saveUser),
		shell.Get("/users/{id}/data.json", staff.ManageUsers, c.userData),
		shell.Post("/users/{id}/lift", staff.ManageUsers, c.liftErasure),
		shell.Get("/users/{id}/erase", staff.ManageUsers, c.confirmErase),
		shell.Post("/users/{id}/erase", staff.ManageUsers, c.eraseUser),

		shell.Get("/segments", staff.View, c.listSegments),
		shell.Get("/segments.csv", staff.View, c.exportSegments),
		shell.Get("/segments/new", staff.ManageUsers, c.newSegment),
		shell.Post("/segments/new", staff.ManageUsers, c.createSegment),
		shell.Get("/segments/lists/new", staff.ManageUsers, c.newList),
		shell.Upload(shell.Post("/segments/lists/new", staff.ManageUsers, c.createList)),
		shell.Get("/segments/{id}", staff.View, c.showSegment),
		shell.Get("/segments/{id}/edit", staff.ManageUsers, c.editSegment),
		shell.Post("/segments/{id}/edit", staff.ManageUsers, c.saveSegment),
		shell.Get("/segments/{id}/file", staff.ManageUsers, c.fileForm),
		shell.Upload(shell.Post("/segments/{id}/file", staff.ManageUsers, c.addFile)),
		shell.Post("/segments/{id}/count", staff.ManageUsers, c.countSegment),
		shell.Post("/segments/{id}/clone", staff.ManageUsers, c.cloneSegment),
		shell.Get("/segments/{id}/delete", staff.ManageUsers, c.confirmDeleteSegment),
		shell.Post("/segments/{id}/delete", staff.ManageUsers, c.deleteSegment),

		shell.Get("/coupons", staff.View, c.findCoupons),
		shell.Get("/coupons.csv", staff.View, c.exportCoupons),
		shell.Get("/coupons/locks", staff.View, c.listLocks),
		shell.Get("/coupons/locks.csv", staff.View, c.exportLocks),
		shell.Get("/coupons/{id}", staff.View, c.showCoupon),
		shell.Get("/coupons/{id}/{step:release|revoke}", staff.View, c.confirmCouponStep),
		shell.Post("/coupons/{id}/{step:release|revoke}", staff.View, c.takeCouponStep),
		shell.Get("/notices", staff.View, c.showNotices),

		shell.Live(2*time.Second, shell.Get("/channels", staff.View, c.listChannels)),
		shell.Get("/channels/{channel}/{step:pause|resume}", staff.Operate, c.confirmChannel),
		shell.Post("/channels/{channel}/{step:pause|resume}", staff.Operate, c.changeChannel),
		shell.Get("/channels/{channel}/rate", staff.Operate, c.rateForm),
		shell.Post("/channels/{channel}/rate", staff.Operate, c.saveRate),
		shell.Live(time.Second, shell.Get("/channels/{channel}/test", staff.Operate, c.showTests)),
		shell.Post("/channels/{channel}/test", staff.Operate, c.startTest),
		shell.Get("/forecast", staff.View, c.forecast),
		shell.Get("/dead-letters", staff.View, c.listDeadLetters),
		shell.Get("/dead-letters/list", staff.View, c.listSingleDeadLetters),
		shell.Get("/dead-letters/replay", staff.Operate, c.confirmReplay),
		shell.Post("/dead-letters/replay", staff.Operate, c.replay),
		shell.Get("/dead-letters/discard", staff.Operate, c.confirmDiscard),
		shell.Post("/dead-letters/discard", staff.Operate, c.discard),
		shell.Live(time.Second, shell.Get("/dead-letters/jobs", staff.View, c.refreshJobs)),
		shell.Get("/dead-letters/jobs/{id}/cancel", staff.Operate, c.confirmCancelJob),
		shell.Post("/dead-letters/jobs/{id}/cancel", staff.Operate, c.cancelJob),
		shell.Everywhere(shell.Get("/dead-messages", staff.Operate, c.listDeadMessages)),
		shell.Everywhere(shell.Get("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, c.confirmDeadMessage)),
		shell.Everywhere(shell.Post("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, c.settleDeadMessage)),

		shell.Get("/deliveries", staff.View, c.listDeliveries),
		shell.Get("/deliveries.csv", staff.View, c.exportDeliveries),
		shell.Get("/deliveries/{id}", staff.View, c.showBatch),
		shell.Get("/deliveries/{id}/recipients.csv", staff.View, c.exportRecipients),
		shell.Get("/templates/bulk", staff.ManageTemplates, c.confirmBulk),
		shell.Post("/templates/bulk", staff.ManageTemplates, c.startBulk),
		shell.Get("/templates.csv", staff.View, c.exportTemplates),
		shell.Get("/users.csv", staff.ManageUsers, c.exportUsers),
		shell.Get("/dead-letters.csv", staff.View, c.exportDeadLetters),

		shell.Get("/jobs", staff.View, c.listWork),
		shell.Get("/jobs.csv", staff.View, c.exportWork),
		shell.Live(time.Second, shell.Own(shell.Get("/jobs/{id}", staff.View, c.showWork))),
		shell.Get("/jobs/{id}/errors.csv", staff.View, c.workErrors),
		shell.Get("/jobs/{id}/cancel", staff.View, c.confirmStopWork),
		shell.Post("/jobs/{id}/cancel", staff.View, c.stopWork),

		shell.Everywhere(shell.Get("/queues", staff.View, c.showQueues)), // tasks say which shop's drops they are for

		shell.Get("/shops", staff.View, c.listShops),
		shell.Get("/shops.csv", staff.View, c.exportShops),
		shell.Post("/shops", staff.ManageTemplates, c.createShop),
		shell.Get("/shops/new", staff.ManageTemplates, c.newShop),
		shell.Get("/shops/{id}", staff.ManageTemplates, c.editShop),
		shell.Post("/shops/{id}", staff.ManageTemplates, c.saveShop),
		shell.Get("/shops/{id}/limits", staff.ManageStaff, c.showLimits),
		shell.Post("/shops/{id}/limits", staff.ManageStaff, c.saveLimits),
	}...)
}

func (c *Console) routes() http.Handler {
	return c.Mount(c.table, map[string]http.Handler{MonitorPath: c.monitor()})
}
