// Package work holds the part of the API about work in the background: jobs, and the
// webhooks of shops with their deliveries.
package work

import (
	"dropbell/domain/event/hook"
	"dropbell/domain/job"
	"dropbell/web/api/pipeline"
)

// Deps are the use cases of this package. All are required.
type Deps struct {
	Jobs  *job.Service
	Hooks *hook.Service
	// Closing reports whether the server is shutting down.
	Closing func() bool
}

type handlers struct {
	*pipeline.Pipeline
	Deps
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d}
	h.jobRoutes()
	h.webhookRoutes()
	h.deliveryRoutes()
}
