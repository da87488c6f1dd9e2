// Package audience holds the console's pages about users: finding, importing and
// erasing them, segments of them, lists, and suppressed mail addresses.
package audience

import (
	"context"

	"dropbell/domain/campaign"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/timeline"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// AuditLog records changes that change nothing else in the database.
type AuditLog interface {
	Record(ctx context.Context, e staff.Entry) error
	// RecordRevealed returns [staff.ErrRevealed] if too many contacts were shown lately.
	RecordRevealed(ctx context.Context, e staff.Entry) error
}

// Deps are the dependencies of the pages of this package.
type Deps struct {
	People *user.Service
	// Users finds users.
	Users     reminder.Users
	Timeline  *timeline.Service
	Reports   *report.Service
	Segments  *segment.Service
	Reminders *reminder.Service
	Inbox     *inbox.Service
	Coupons   *coupon.Admin
	// Carts lists the orders of a user.
	Carts cart.Lists
	// Letters lists the campaigns that a user received.
	Letters *campaign.Letters
	Jobs    *job.Service
	// Suppressions are mail addresses that nothing is sent to.
	Suppressions *feedback.Suppressions
	// Files receives tables of users.
	Files *upload.Files
	Audit AuditLog
	// Channels are the channels with a configured sender.
	Channels delivery.Available
	// VerifiedOnly is whether text messages go to verified numbers alone.
	VerifiedOnly bool
	// Others are the dependencies of the further databases, whose customers are among the recent ones. Of
	// their fields only Timeline and Reports are used.
	Others []Deps
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the dependencies of all databases, these first.
	cells []Deps
}

// Routes returns the routes about users and segments. It also sets the content of the job pages of
// imports and of segment counts.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d, cells: append([]Deps{d}, d.Others...)}
	h.showImportJobs()
	return append(shell.OfOne(shell.Get("/users/{id}", staff.View, h.showUser)), []shell.Route{
		shell.Report(shell.Get("/users", staff.View, h.findUsers)),
		shell.Get("/users/import", staff.ManageUsers, ofAllShops(h.importForm)),
		shell.Upload(shell.Post("/users/import", staff.ManageUsers, ofAllShops(h.importUpload))),
		shell.Get("/users/import/template.csv", staff.ManageUsers, ofAllShops(h.importTemplate)),
		shell.Get("/users/import/{id}", staff.ManageUsers, ofAllShops(h.importColumns)),
		shell.Post("/users/import/{id}", staff.ManageUsers, ofAllShops(h.importCheck)),
		shell.Get("/users/import/{id}/apply", staff.ManageUsers, ofAllShops(h.confirmImport)),
		shell.Post("/users/import/{id}/apply", staff.ManageUsers, ofAllShops(h.startImport)),
		shell.Post("/users/{id}/contacts", staff.ManageUsers, h.revealContacts),
		shell.Get("/users/{id}/edit", staff.ManageUsers, shell.With(h.loadUser, h.editUser)),
		shell.Post("/users/{id}/edit", staff.ManageUsers, h.saveUser),
		shell.Get("/users/{id}/data.json", staff.ManageUsers, h.userData),
		shell.Post("/users/{id}/lift", staff.ManageUsers, h.liftErasure),
		shell.Get("/users/{id}/erase", staff.ManageUsers, h.confirmErase),
		shell.Post("/users/{id}/erase", staff.ManageUsers, h.eraseUser),
		shell.Report(shell.Get("/segments", staff.View, h.listSegments)),
		shell.Report(shell.Get("/segments.csv", staff.View, shell.CSV(h.Shell, h.segments))),
		shell.Get("/segments/new", staff.ManageUsers, h.newSegment),
		shell.Post("/segments/new", staff.ManageUsers, h.createSegment),
		shell.Get("/segments/lists/new", staff.ManageUsers, h.newList),
		shell.Upload(shell.Post("/segments/lists/new", staff.ManageUsers, h.createList)),
		shell.Report(shell.Get("/segments/{id}", staff.View, h.showSegment)),
		shell.Get("/segments/{id}/edit", staff.ManageUsers, shell.With(h.loadSegment, h.editSegment)),
		shell.Post("/segments/{id}/edit", staff.ManageUsers, shell.With(h.loadSegment, h.saveSegment)),
		shell.Get("/segments/{id}/file", staff.ManageUsers, h.fileForm),
		shell.Upload(shell.Post("/segments/{id}/file", staff.ManageUsers, h.addFile)),
		shell.Post("/segments/{id}/count", staff.ManageUsers, shell.With(shell.PathID, h.countSegment)),
		shell.Post("/segments/{id}/clone", staff.ManageUsers, shell.With(h.loadSegment, h.cloneSegment)),
		shell.Get("/segments/{id}/delete", staff.ManageUsers, shell.With(h.loadSegment, h.confirmDeleteSegment)),
		shell.Post("/segments/{id}/delete", staff.ManageUsers, shell.With(shell.PathID, h.deleteSegment)),
		shell.Get("/suppressions", staff.View, h.listSuppressions),
		shell.Sure(shell.Everywhere(shell.Get("/suppressions.csv", staff.ManageUsers, h.exportSuppressions))),
		shell.Everywhere(shell.Get("/suppressions/new", staff.ManageUsers, h.newSuppression)),
		shell.Everywhere(shell.Post("/suppressions/new", staff.ManageUsers, h.addSuppression)),
		shell.Everywhere(shell.Get("/suppressions/release", staff.ManageUsers, h.confirmRelease)),
		shell.Everywhere(shell.Post("/suppressions/release", staff.ManageUsers, h.releaseSuppression)),
		shell.Sure(shell.Report(shell.Get("/users.csv", staff.ManageUsers, h.exportUsers))),
	}...)
}
