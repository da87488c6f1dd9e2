package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
)

// table lists every route of the console except static files and the queue
// dashboard.
func (c *Console) table() []route {
	return append(slices.Concat(c.campaignRoutes(), c.securityRoutes(), c.passwordLinkRoutes()), []route{
		open(get("/signin", "", c.signInForm)),
		open(post("/signin", "", c.signIn)),
		open(get("/signin/second", "", c.secondForm)),
		open(post("/signin/second", "", c.secondStep)),
		open(get("/signin/oidc", "", c.beginSingleSignOn)),
		open(get("/signin/oidc/callback", "", c.endSingleSignOn)),
		open(post("/signout", "", c.signOut)),
		open(post("/preferences", "", c.savePreferences)),

		get("/live", staff.View, c.streamParts),

		live(2*time.Second, get("/", staff.View, c.overview)),

		get("/templates", staff.View, c.listTemplates),
		post("/templates", staff.ManageTemplates, c.createTemplate),
		get("/templates/choices", staff.View, c.chooseTemplate),
		get("/templates/new", staff.ManageTemplates, c.newTemplate),
		post("/templates/preview", staff.ManageTemplates, c.previewTemplate),
		live(time.Second, get("/templates/{id}", staff.View, c.showTemplate)),
		get("/templates/{id}/cockpit", staff.View, c.showCockpit),
		get("/templates/{id}/cockpit/live", staff.View, c.streamCockpit),
		live(time.Second, get("/templates/{id}/claims", staff.View, c.showClaims)),
		get("/templates/{id}/edit", staff.ManageTemplates, c.editTemplate),
		post("/templates/{id}/edit", staff.ManageTemplates, c.saveTemplate),
		get("/templates/{id}/move", staff.ManageTemplates, c.moveForm),
		post("/templates/{id}/move", staff.ManageTemplates, c.move),
		get("/templates/{id}/stock", staff.ManageTemplates, c.stockForm),
		post("/templates/{id}/stock", staff.ManageTemplates, c.raiseStock),
		get("/templates/{id}/balance", staff.View, c.balance),
		get("/templates/{id}/slots/{slot}/receipt.csv", staff.View, c.receipt),
		get("/templates/{id}/users/{user}", staff.View, c.explain),
		live(time.Second, get("/templates/{id}/announcements", staff.View, c.listAnnouncements)),
		get("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.confirmAnnouncement),
		post("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.sendAnnouncement),
		get("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.confirmStep),
		post("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.takeStep),

		get("/grants", staff.View, c.listGrants),
		get("/grants.csv", staff.View, c.exportGrants),
		get("/grants/list.csv", staff.ManageUsers, c.grantFile),
		live(time.Second, own(get("/grants/{id}", staff.View, c.showGrant))),
		get("/grants/{id}/results.csv", staff.ManageUsers, c.grantResults),
		get("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, c.confirmGrantStep),
		post("/grants/{id}/{step:apply|takeback}", staff.ManageUsers, c.takeGrantStep),
		get("/templates/{id}/grants", staff.View, c.listGrants),
		get("/templates/{id}/grants/new", staff.ManageUsers, c.newGrant),
		post("/templates/{id}/grants/new", staff.ManageUsers, c.startGrant),

		live(2*time.Second, get("/codes", staff.View, c.allCodes)),
		get("/codes.csv", staff.View, c.exportBatches),
		post("/codes/check", staff.View, c.checkCode),
		live(2*time.Second, get("/templates/{id}/codes", staff.View, c.listCodes)),
		post("/templates/{id}/codes", staff.ManageTemplates, c.generateCodes),
		sure(get("/templates/{id}/codes.csv", staff.ManageTemplates, c.exportCodes)),
		get("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, c.confirmRevokeCodes),
		post("/templates/{id}/codes/{batch}/revoke", staff.ManageTemplates, c.revokeCodes),

		get("/users", staff.View, c.findUsers),
		get("/users/import", staff.ManageUsers, c.ofAllShops(c.importForm)),
		post("/users/import", staff.ManageUsers, c.ofAllShops(c.importUpload)),
		get("/users/import/template.csv", staff.ManageUsers, c.ofAllShops(c.importTemplate)),
		get("/users/import/{id}", staff.ManageUsers, c.ofAllShops(c.importColumns)),
		post("/users/import/{id}", staff.ManageUsers, c.ofAllShops(c.importCheck)),
		get("/users/import/{id}/apply", staff.ManageUsers, c.ofAllShops(c.confirmImport)),
		post("/users/import/{id}/apply", staff.ManageUsers, c.ofAllShops(c.startImport)),
		get("/users/{id}", staff.View, c.showUser),
		post("/users/{id}/contacts", staff.ManageUsers, c.revealContacts),
		get("/users/{id}/edit", staff.ManageUsers, c.editUser),
		post("/users/{id}/edit", staff.ManageUsers, c.saveUser),
		get("/users/{id}/data.json", staff.ManageUsers, c.userData),
		post("/users/{id}/lift", staff.ManageUsers, c.liftErasure),
		get("/users/{id}/erase", staff.ManageUsers, c.confirmErase),
		post("/users/{id}/erase", staff.ManageUsers, c.eraseUser),

		get("/segments", staff.View, c.listSegments),
		get("/segments.csv", staff.View, c.exportSegments),
		get("/segments/new", staff.ManageUsers, c.newSegment),
		post("/segments/new", staff.ManageUsers, c.createSegment),
		get("/segments/lists/new", staff.ManageUsers, c.newList),
		post("/segments/lists/new", staff.ManageUsers, c.createList),
		get("/segments/{id}", staff.View, c.showSegment),
		get("/segments/{id}/edit", staff.ManageUsers, c.editSegment),
		post("/segments/{id}/edit", staff.ManageUsers, c.saveSegment),
		get("/segments/{id}/file", staff.ManageUsers, c.fileForm),
		post("/segments/{id}/file", staff.ManageUsers, c.addFile),
		post("/segments/{id}/count", staff.ManageUsers, c.countSegment),
		post("/segments/{id}/clone", staff.ManageUsers, c.cloneSegment),
		get("/segments/{id}/delete", staff.ManageUsers, c.confirmDeleteSegment),
		post("/segments/{id}/delete", staff.ManageUsers, c.deleteSegment),

		get("/coupons", staff.View, c.findCoupons),
		get("/coupons.csv", staff.View, c.exportCoupons),
		get("/coupons/locks", staff.View, c.listLocks),
		get("/coupons/locks.csv", staff.View, c.exportLocks),
		get("/coupons/{id}", staff.View, c.showCoupon),
		get("/coupons/{id}/{step:release|revoke}", staff.View, c.confirmCouponStep),
		post("/coupons/{id}/{step:release|revoke}", staff.View, c.takeCouponStep),
		get("/notices", staff.View, c.showNotices),

		live(2*time.Second, get("/channels", staff.View, c.listChannels)),
		get("/channels/{channel}/{step:pause|resume}", staff.Operate, c.confirmChannel),
		post("/channels/{channel}/{step:pause|resume}", staff.Operate, c.changeChannel),
		get("/channels/{channel}/rate", staff.Operate, c.rateForm),
		post("/channels/{channel}/rate", staff.Operate, c.saveRate),
		live(time.Second, get("/channels/{channel}/test", staff.Operate, c.showTests)),
		post("/channels/{channel}/test", staff.Operate, c.startTest),
		get("/forecast", staff.View, c.forecast),
		get("/dead-letters", staff.View, c.listDeadLetters),
		get("/dead-letters/list", staff.View, c.listSingleDeadLetters),
		get("/dead-letters/replay", staff.Operate, c.confirmReplay),
		post("/dead-letters/replay", staff.Operate, c.replay),
		get("/dead-letters/discard", staff.Operate, c.confirmDiscard),
		post("/dead-letters/discard", staff.Operate, c.discard),
		live(time.Second, get("/dead-letters/jobs", staff.View, c.refreshJobs)),
		get("/dead-letters/jobs/{id}/cancel", staff.Operate, c.confirmCancelJob),
		post("/dead-letters/jobs/{id}/cancel", staff.Operate, c.cancelJob),
		everywhere(get("/dead-messages", staff.Operate, c.listDeadMessages)),
		everywhere(get("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, c.confirmDeadMessage)),
		everywhere(post("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, c.settleDeadMessage)),

		get("/deliveries", staff.View, c.listDeliveries),
		get("/deliveries.csv", staff.View, c.exportDeliveries),
		get("/deliveries/{id}", staff.View, c.showBatch),
		get("/deliveries/{id}/recipients.csv", staff.View, c.exportRecipients),
		get("/templates/bulk", staff.ManageTemplates, c.confirmBulk),
		post("/templates/bulk", staff.ManageTemplates, c.startBulk),
		get("/templates.csv", staff.View, c.exportTemplates),
		get("/users.csv", staff.ManageUsers, c.exportUsers),
		get("/dead-letters.csv", staff.View, c.exportDeadLetters),
		get("/audit.csv", staff.View, c.exportAudit),

		get("/jobs", staff.View, c.listWork),
		get("/jobs.csv", staff.View, c.exportWork),
		live(time.Second, own(get("/jobs/{id}", staff.View, c.showWork))),
		get("/jobs/{id}/errors.csv", staff.View, c.workErrors),
		get("/jobs/{id}/cancel", staff.View, c.confirmStopWork),
		post("/jobs/{id}/cancel", staff.View, c.stopWork),

		everywhere(get("/queues", staff.View, c.showQueues)), // tasks say which shop's drops they are for

		get("/shops", staff.View, c.listShops),
		get("/shops.csv", staff.View, c.exportShops),
		post("/shops", staff.ManageTemplates, c.createShop),
		get("/shops/new", staff.ManageTemplates, c.newShop),
		get("/shops/{id}", staff.ManageTemplates, c.editShop),
		post("/shops/{id}", staff.ManageTemplates, c.saveShop),
		get("/shops/{id}/limits", staff.ManageStaff, c.showLimits),
		post("/shops/{id}/limits", staff.ManageStaff, c.saveLimits),

		everywhere(get("/staff", staff.ManageStaff, c.listStaff)),
		everywhere(get("/staff.csv", staff.ManageStaff, c.exportStaff)),
		sure(everywhere(post("/staff", staff.ManageStaff, c.createMember))),
		sure(everywhere(get("/staff/new", staff.ManageStaff, c.newMember))),
		everywhere(get("/staff/{id}", staff.ManageStaff, c.editMember)),
		sure(everywhere(post("/staff/{id}", staff.ManageStaff, c.saveMember))),
		everywhere(post("/staff/{id}/signout", staff.ManageStaff, c.signMemberOut)),
		everywhere(get("/keys", staff.ManageStaff, c.listKeys)),
		everywhere(get("/keys.csv", staff.ManageStaff, c.exportKeys)),
		sure(everywhere(post("/keys", staff.ManageStaff, c.createKey))),
		sure(everywhere(get("/keys/new", staff.ManageStaff, c.newKey))),
		everywhere(get("/keys/{id}/revoke", staff.ManageStaff, c.confirmRevokeKey)),
		everywhere(post("/keys/{id}/revoke", staff.ManageStaff, c.revokeKey)),

		get("/audit", staff.View, c.showAudit),
		get("/account", staff.View, c.account),
		post("/account/password", staff.View, c.changePassword),
		post("/account/revoke", staff.View, c.revokeSignIns),
	}...)
}

func (c *Console) routes() http.Handler {
	return c.mount(c.table(), func(r chi.Router) {
		monitor := c.monitor()
		r.Handle(MonitorPath, monitor)
		r.Handle(MonitorPath+"/*", monitor)
	})
}

// monitor lets operators work on the queues and everybody else look who is not
// limited to shops: the shops share the queues.
func (c *Console) monitor() http.Handler {
	readOnly, writable := c.Monitor(false), c.Monitor(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.admit(r, everywhere(get(MonitorPath, staff.View, nil))); err != nil {
			c.fail(w, r, err)
			return
		}
		if reads(r) && r.Header.Get("Sec-Fetch-Dest") == "document" {
			redirect(w, r, queuesURL(r.URL.Path)) // not without a way back
			return
		}
		if actor(r).MayEverywhere(staff.Operate) == nil {
			if !reads(r) {
				// Recorded first: nothing is changed that is not in the audit log.
				if err := c.recordQueueChange(r); err != nil {
					c.fail(w, r, err)
					return
				}
			}
			writable.ServeHTTP(w, r)
			return
		}
		if !reads(r) {
			c.fail(w, r, actor(r).MayEverywhere(staff.Operate))
			return
		}
		readOnly.ServeHTTP(w, r)
	})
}
