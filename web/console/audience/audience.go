// Package audience holds the console's pages about users: finding, importing and
// erasing them, segments of them, and lists.
package audience

import (
	"context"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// AuditLog records changes that change nothing else in the database.
type AuditLog interface {
	Record(ctx context.Context, e staff.Entry) error
}

// Deps are what the pages of this package stand on.
type Deps struct {
	People *user.Service
	// Users finds users.
	Users     reminder.Users
	Segments  *segment.Service
	Reminders *reminder.Service
	Inbox     *inbox.Service
	Coupons   *coupon.Desk
	// Letters lists the campaigns that a user received.
	Letters *campaign.Letters
	Jobs    *job.Service
	// Files receives tables of users.
	Files *upload.Files
	Audit AuditLog
	// Channels are those with a configured sender.
	Channels delivery.ChannelSet
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
}

// Routes returns the routes about users and segments, and says what pages show
// of the jobs that read tables of users or count segments.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	c := &handlers{Shell: sh, Deps: d}
	c.showImportJobs()
	return []shell.Route{
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
		shell.Get("/users.csv", staff.ManageUsers, c.exportUsers),
	}
}
