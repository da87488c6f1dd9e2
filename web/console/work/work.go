// Package work holds the console's pages about background work: jobs, the queues and their
// dashboard, events that no handler could process, and endpoints of shops' servers.
package work

import (
	"context"
	"net/http"
	"slices"
	"time"

	"dropbell/domain/event/hook"
	"dropbell/domain/housekeeping"
	"dropbell/domain/job"
	"dropbell/domain/queue"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	workpages "dropbell/views/pages/work"
	"dropbell/web/console/shell"
)

// AuditLog records changes that change nothing else in the database.
type AuditLog interface {
	Record(ctx context.Context, e staff.Entry) error
}

// Uploads finds the files that jobs read.
type Uploads interface {
	// Upload returns a file without its content, or [job.ErrUploadNotFound].
	Upload(ctx context.Context, id int64) (job.Upload, error)
}

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Jobs         *job.Service
	Uploads      Uploads
	DeadMessages DeadMessages
	Hooks        *hook.Service
	Audit        AuditLog
	// Queues are the queues that the dashboard also shows.
	Queues *queue.Service
	Alerts *alert.Service
	// Browsers are the browsers in which members get notifications.
	Browsers alert.Browsers
	// Housekeeping is the progress of the removal of old rows.
	Housekeeping housekeeping.Store
	// Monitor returns the queue dashboard, which serves [MonitorPath] and all paths below it, and
	// sets its own content security policy.
	Monitor func(writable bool) http.Handler
	// Others are the dependencies of the further databases whose jobs, alerts and webhook endpoints lists
	// have too.
	Others []Deps
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the handlers of all databases, these first.
	cells []*handlers
}

// Routes returns the routes about jobs, queues and events, and registers the queue dashboard with
// the shell.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d}
	h.cells = []*handlers{h}
	for _, o := range d.Others {
		h.cells = append(h.cells, &handlers{Shell: sh, Deps: o})
	}
	sh.Handle(MonitorPath, h.monitor())
	sh.OnSignIn(h.followBrowser)
	return slices.Concat(h.webhookRoutes(), []shell.Route{
		shell.Get("/alerts", staff.View, h.listAlerts),
		shell.Get("/alerts/settings", staff.View, shell.With(h.alertSettings, h.showAlertSettings)),
		shell.Post("/alerts/settings", staff.View, h.chooseAlerts),
		shell.Sure(shell.Post("/alerts/destinations", staff.ManageTemplates, h.addDestination)),
		shell.Post("/alerts/destinations/{id}/test", staff.ManageTemplates, shell.With(shell.PathID, h.tryDestination)),
		shell.Sure(shell.Post("/alerts/destinations/{id}/remove", staff.ManageTemplates, shell.With(shell.PathID, h.removeDestination))),
		shell.Open(shell.Get(pushWorkerPath, "", h.pushWorker)),
		shell.Post("/alerts/browsers", staff.View, h.addBrowser),
		shell.Post("/alerts/browsers/{id}/test", staff.View, shell.With(shell.PathID, h.tryBrowser)),
		shell.Post("/alerts/browsers/{id}/remove", staff.View, shell.With(shell.PathID, h.removeBrowser)),
		shell.Get("/jobs", staff.View, h.listWork),
		shell.Get("/jobs.csv", staff.View, shell.CSV(h.Shell, h.jobs)),
		shell.Live(time.Second, shell.Own(shell.Get("/jobs/{id}", staff.View, h.showWork))),
		shell.Get("/jobs/{id}/errors.csv", staff.View, shell.With(h.loadWork, h.workErrors)),
		shell.Get("/jobs/{id}/cancel", staff.View, shell.With(h.loadWork, h.confirmStopWork)),
		shell.Post("/jobs/{id}/cancel", staff.View, shell.With(shell.PathID, h.stopWork)),
	}, shell.OfOne([]shell.Route{
		shell.Everywhere(shell.Get("/dead-messages", staff.Operate, h.listDeadMessages)),
		shell.Everywhere(shell.Get("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, shell.With(shell.PathID, h.confirmDeadMessage))),
		shell.Everywhere(shell.Post("/dead-messages/{id}/{step:requeue|discard}", staff.Operate, shell.With(shell.PathID, h.settleDeadMessage))),
		// Steps remove the rows of all shops.
		shell.Live(10*time.Second, shell.Everywhere(shell.Get(workpages.HousekeepingURL, staff.View, h.showHousekeeping))),
		// Tasks say which shop's drops they are for.
		shell.Live(2*time.Second, shell.Everywhere(shell.Get("/queues", staff.View, h.listQueues))),
		shell.Everywhere(shell.Get("/queues/dashboard", staff.View, h.showDashboard)),
		shell.Everywhere(shell.Get("/queues/{name}", staff.View, h.showQueue)),
		shell.Everywhere(shell.Get("/queues/{name}/{step:pause|resume}", staff.Operate, h.confirmPause)),
		shell.Everywhere(shell.Post("/queues/{name}/{step:pause|resume}", staff.Operate, h.pauseQueue)),
		shell.Everywhere(shell.Get("/queues/{name}/tasks/{step:run|archive|delete}", staff.Operate, h.confirmTaskStep)),
		shell.Everywhere(shell.Post("/queues/{name}/tasks/{step:run|archive|delete}", staff.Operate, h.takeTaskStep)),
	}...))
}
