// Package delivery holds the console's pages about the delivery of messages: channels with their
// rates and breakers, deliveries, and dead letters.
package delivery

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/web/console/shell"
)

// Settings stores the operators' settings of channels.
type Settings interface {
	Settings(ctx context.Context) ([delivery.Channels]delivery.Setting, error)
}

// Deps are the dependencies of the pages of this package.
type Deps struct {
	// States are the states of the channels; see [NewStates].
	States   *shell.ChannelStates
	Settings Settings
	Control  *delivery.Control
	Tests    *testmessage.ChannelTests
	// Ledger lists batches and their recipients.
	Ledger      *delivery.Ledger
	DeadLetters *delivery.DeadLetters
	Templates   shell.Templates
	// Channels are the channels with a configured sender.
	Channels  delivery.Available
	Providers Providers
	// Mail checks the records of the domain that mails come from.
	Mail MailCheck
	// Others are the dependencies of the further databases whose batches and dead letters lists have too.
	// Of their fields only Ledger and DeadLetters are used.
	Others []Deps
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the handlers of all databases, these first.
	cells []*handlers
}

// Routes returns the routes about channels, deliveries and dead letters.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d}
	h.cells = []*handlers{h}
	for _, o := range d.Others {
		h.cells = append(h.cells, &handlers{Shell: sh, Deps: o})
	}
	return []shell.Route{
		shell.Report(shell.Get("/deliveries", staff.View, h.listDeliveries)),
		shell.Report(shell.Get("/deliveries.csv", staff.View, h.exportDeliveries)),
		shell.Live(2*time.Second, shell.Get("/channels", staff.View, h.listChannels)),
		shell.Get("/channels/mail", staff.View, h.checkMail),
		shell.Get("/channels/{channel}/{step:pause|resume}", staff.Operate, shell.With(sharedChannel, h.confirmChannel)),
		shell.Post("/channels/{channel}/{step:pause|resume}", staff.Operate, shell.With(channelOf, h.changeChannel)),
		shell.Sure(shell.Get("/channels/{channel}/rate", staff.Operate, shell.With(sharedChannel, h.rateForm))),
		shell.Sure(shell.Post("/channels/{channel}/rate", staff.Operate, h.saveRate)),
		shell.Live(time.Second, shell.Get("/channels/{channel}/test", staff.Operate, shell.With(channelOf, h.showTests))),
		shell.Post("/channels/{channel}/test", staff.Operate, shell.With(channelOf, h.startTest)),
		shell.Get("/providers", staff.Operate, h.listProviders),
		shell.Sure(shell.Get("/providers/new", staff.Operate, h.newProvider)),
		shell.Sure(shell.Post("/providers", staff.Operate, h.createProvider)),
		shell.Sure(shell.Post("/providers/try", staff.Operate, h.tryProvider)),
		shell.Sure(shell.Get("/providers/{id}/edit", staff.Operate, shell.With(h.loadProvider, h.editProvider))),
		shell.Sure(shell.Post("/providers/{id}/try", staff.Operate, h.tryProvider)),
		shell.Sure(shell.Post("/providers/{id}", staff.Operate, h.saveProvider)),
		shell.Sure(shell.Get("/providers/{id}/{step:enable|disable|delete}", staff.Operate, shell.With(h.loadProvider, h.confirmProvider))),
		shell.Sure(shell.Post("/providers/{id}/{step:enable|disable|delete}", staff.Operate, h.stepProvider)),
		shell.Report(shell.Get("/dead-letters", staff.View, h.listDeadLetters)),
		shell.Report(shell.Get("/dead-letters/list", staff.View, h.listSingleDeadLetters)),
		shell.Get("/dead-letters/replay", staff.Operate, h.confirmReplay),
		shell.Post("/dead-letters/replay", staff.Operate, h.replay),
		shell.Get("/dead-letters/discard", staff.Operate, h.confirmDiscard),
		shell.Post("/dead-letters/discard", staff.Operate, h.discard),
		shell.Live(time.Second, shell.Get("/dead-letters/jobs", staff.View, shell.With(h.deadLetterJobs, h.refreshJobs))),
		shell.Get("/dead-letters/jobs/{id}/cancel", staff.Operate, shell.With(h.deadLetterJob, h.confirmCancelJob)),
		shell.Post("/dead-letters/jobs/{id}/cancel", staff.Operate, shell.With(h.deadLetterJob, h.cancelJob)),
		shell.Report(shell.Get("/deliveries/{id}", staff.View, h.showBatch)),
		shell.Sure(shell.Report(shell.Get("/deliveries/{id}/recipients.csv", staff.View, h.exportRecipients))),
		shell.Sure(shell.Report(shell.Get("/dead-letters.csv", staff.View, h.exportDeadLetters))),
	}
}
