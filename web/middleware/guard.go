package middleware

import (
	"net/http"

	chimw "github.com/go-chi/chi/v5/middleware"
)

// Compress compresses pages, scripts, styles and JSON for clients that accept it. Event streams are
// not compressed. Keep Compress off hot paths: compressing an answer of 300 bytes costs more than
// it saves.
func Compress() func(http.Handler) http.Handler {
	return chimw.Compress(5, "text/html", "text/css", "text/javascript", "application/javascript",
		"application/json", "application/openapi+json", "image/svg+xml")
}
