package middleware

import (
	"net/http"
	"slices"
)

const (
	// corsMethods, corsRequest and corsAnswer are the methods, request headers and answer headers
	// that pages of other origins may use. X-User-ID is not among them: it goes with service keys,
	// which are for servers.
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsRequest = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID"
	corsAnswer  = "Date, ETag, Idempotency-Replayed, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id"
	// corsSeconds is how long browsers keep the answer to a preflight, in seconds. Chromium keeps
	// an answer no longer than this.
	corsSeconds = "7200"
)

// CORS lets pages of the origins call the handlers behind it, except on closed paths. Cookies are
// not sent with such calls. Without origins CORS does nothing.
func CORS(origins []string, closed func(path string) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if len(origins) == 0 {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h, origin := w.Header(), r.Header.Get("Origin")
			h.Add("Vary", "Origin")
			if closed(r.URL.Path) || !slices.Contains(origins, origin) {
				next.ServeHTTP(w, r)
				return
			}
			h.Set("Access-Control-Allow-Origin", origin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", corsMethods)
				h.Set("Access-Control-Allow-Headers", corsRequest)
				h.Set("Access-Control-Max-Age", corsSeconds)
				w.WriteHeader(http.StatusNoContent)
				return
			}
			h.Set("Access-Control-Expose-Headers", corsAnswer)
			next.ServeHTTP(w, r)
		})
	}
}
