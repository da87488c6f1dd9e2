// Package access holds the console's pages about its members: signing in and out, second factors,
// members, service keys and the audit log.
package access

import (
	"context"
	"net/http"
	"slices"

	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/console/shell"
)

// AuditLog reads the audit log.
type AuditLog interface {
	// Search returns one page of the entries that q selects.
	Search(ctx context.Context, q staff.AuditQuery) (staff.AuditPage, error)
	// Actions lists every action there is a record of.
	Actions(ctx context.Context) ([]string, error)
}

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Staff *staff.Service
	Audit AuditLog
	// Views are the filters of lists that members saved.
	Views staff.Views
	// Shops lists every shop that members can be limited to.
	Shops shell.ShopList
	// SingleSignOn signs members in elsewhere; nil = with a password only.
	SingleSignOn staff.IdentityProvider
	// Throttle bounds attempts from one network; Guesses bounds passwords tried for one account
	// from one network; AllGuesses bounds passwords tried for one account from all networks.
	Throttle, Guesses, AllGuesses staff.Throttle
	// Others are the dependencies of the further databases whose audit logs are searched too.
	Others []Deps
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// audits are the audit logs of all databases, of this one first.
	audits []AuditLog
	slowed throttledNotes
}

// Routes returns the routes of signing in and out, second factors, members, service keys and the
// audit log. It also gives the shell the page on which members authenticate again.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d, audits: []AuditLog{d.Audit}}
	for _, o := range d.Others {
		h.audits = append(h.audits, o.Audit)
	}
	h.slowed.once, h.slowed.turns = shell.NewThrottle(1, throttledEvery, sh.Now), make(chan struct{}, throttledAtATime)
	sh.BeforeClose(h.slowed.Wait)
	sh.ConfirmWith(func(w http.ResponseWriter, r *http.Request, p accesspages.Confirm) error {
		return h.showConfirm(w, r, http.StatusOK, p)
	})
	return append(slices.Concat(h.securityRoutes(), h.passwordLinkRoutes()), []shell.Route{
		shell.Open(shell.Get("/signin", "", h.signInForm)),
		shell.Open(shell.Post("/signin", "", h.signIn)),
		shell.Open(shell.Get(forgotPath, "", h.forgotForm)),
		shell.Open(shell.Post(forgotPath, "", h.forgotPassword)),
		shell.Open(shell.Get("/signin/second", "", h.secondForm)),
		shell.Open(shell.Post("/signin/second", "", h.secondStep)),
		shell.Open(shell.Get("/signin/oidc", "", h.beginSingleSignOn)),
		shell.Open(shell.Get("/signin/oidc/callback", "", h.endSingleSignOn)),
		shell.Open(shell.Post("/signout", "", h.signOut)),
		shell.Open(shell.Post("/preferences", "", h.savePreferences)),
		shell.Sure(shell.Report(shell.Get("/audit.csv", staff.View, h.exportAudit))),
		shell.Everywhere(shell.Get("/staff", staff.ManageStaff, h.listStaff)),
		shell.Sure(shell.Everywhere(shell.Get("/staff.csv", staff.ManageStaff, h.exportStaff))),
		shell.Sure(shell.Everywhere(shell.Post("/staff", staff.ManageStaff, h.createMember))),
		shell.Sure(shell.Everywhere(shell.Get("/staff/new", staff.ManageStaff, h.newMember))),
		shell.Everywhere(shell.Get("/staff/{id}", staff.ManageStaff, shell.With(shell.PathID, h.editMember))),
		shell.Sure(shell.Everywhere(shell.Post("/staff/{id}", staff.ManageStaff, shell.With(shell.PathID, h.saveMember)))),
		shell.Everywhere(shell.Post("/staff/{id}/signout", staff.ManageStaff, shell.With(shell.PathID, h.signMemberOut))),
		shell.Everywhere(shell.Get("/keys", staff.ManageStaff, h.listKeys)),
		shell.Sure(shell.Everywhere(shell.Get("/keys.csv", staff.ManageStaff, h.exportKeys))),
		shell.Sure(shell.Everywhere(shell.Post("/keys", staff.ManageStaff, h.createKey))),
		shell.Sure(shell.Everywhere(shell.Get("/keys/new", staff.ManageStaff, h.newKey))),
		shell.Everywhere(shell.Get("/keys/{id}/revoke", staff.ManageStaff, shell.With(shell.PathID, h.confirmRevokeKey))),
		shell.Everywhere(shell.Post("/keys/{id}/revoke", staff.ManageStaff, shell.With(shell.PathID, h.revokeKey))),
		shell.Report(shell.Get("/audit", staff.View, h.showAudit)),
		shell.Get("/views", staff.View, h.listViews),
		shell.Post("/views", staff.View, h.saveView),
		shell.Get("/views/{id}", staff.View, shell.With(shell.PathID, h.openView)),
		shell.Post("/views/{id}/rename", staff.View, shell.With(shell.PathID, h.renameView)),
		shell.Post("/views/{id}/delete", staff.View, shell.With(shell.PathID, h.deleteView)),
		shell.Get("/account", staff.View, h.account),
		shell.Post("/account/password", staff.View, h.changePassword),
		shell.Post("/account/revoke", staff.View, h.revokeSignIns),
	}...)
}
