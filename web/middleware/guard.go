package middleware

import (
	"context"
	"net/http"
	"time"

	chimw "github.com/go-chi/chi/v5/middleware"
)

// BodyLimit makes reading more than n bytes of a request's body fail.
func BodyLimit(n int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, n)
			next.ServeHTTP(w, r)
		})
	}
}

// Timeout gives the request's context a deadline. It interrupts no handler; do not use it for
// streams.
func Timeout(d time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// Compress compresses pages, scripts, styles and JSON for clients that accept it. Event streams are
// not compressed. Keep Compress off hot paths: compressing an answer of 300 bytes costs more than
// it saves.
func Compress() func(http.Handler) http.Handler {
	return chimw.Compress(5, "text/html", "text/css", "text/javascript", "application/javascript",
		"application/json", "application/openapi+json", "image/svg+xml")
}
