// Package audience holds the part of the API about users: their preferences, phones, browsers and
// verified numbers, imports and erasure, segments and lists.
package audience

import (
	"dropbell/domain/segment"
	"dropbell/domain/user"
	"dropbell/domain/user/verification"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Deps are the use cases of this package. All are required.
type Deps struct {
	Users    *user.Service
	Segments *segment.Service
	Uploads  pipeline.Uploads
	// Phones verifies the phone numbers of users.
	Phones *verification.Service
	// PushKey is the public key with which browsers subscribe, in base64url; empty = browsers get
	// no push messages.
	PushKey string
}

type handlers struct {
	*pipeline.Pipeline
	Deps
	// codesFrom are codes for phone numbers, by the address that requests them.
	codesFrom *middleware.Limiter
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d, pl.Limiter("codes-from", codesPerAddress)}
	h.preferenceRoutes()
	h.deviceRoutes()
	h.browserRoutes()
	h.phoneRoutes()
	h.importRoute()
	h.eraseRoutes()
	h.segmentRoutes()
	h.listRoutes()
}
