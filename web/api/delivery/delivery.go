// Package delivery holds the part of the API about sent messages: the inbox and its stream, dead
// letters, and suppressed mail addresses.
package delivery

import (
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/inbox"
	"dropbell/web/api/pipeline"
)

// Deps are the use cases of this package. All are required.
type Deps struct {
	Inbox       *inbox.Service
	Hub         *Hub
	DeadLetters *delivery.DeadLetters
	// Suppressions are mail addresses that nothing is sent to.
	Suppressions *feedback.Suppressions
}

type handlers struct {
	*pipeline.Pipeline
	Deps
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d}
	h.inboxRoutes()
	h.suppressionRoutes()
	h.deadLetterRoutes()
}
