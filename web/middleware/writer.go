package middleware

import (
	"net/http"
	"net/url"
	"strings"
)

// Header is part of [http.ResponseWriter].
func (q *Request) Header() http.Header { return q.w.Header() }

// WriteHeader is part of [http.ResponseWriter].
func (q *Request) WriteHeader(status int) {
	if q.status == 0 && status >= 200 {
		q.status = status
	}
	q.w.WriteHeader(status)
}

// Write is part of [http.ResponseWriter].
func (q *Request) Write(b []byte) (int, error) {
	if q.status == 0 {
		q.status = http.StatusOK
	}
	n, err := q.w.Write(b)
	q.bytes += int64(n)
	return n, err
}

// Flush is for libraries that ask for [http.Flusher] instead of using
// [http.ResponseController].
func (q *Request) Flush() { _ = http.NewResponseController(q.w).Flush() }

// Answered reports whether an answer has begun.
func (q *Request) Answered() bool { return q.status != 0 }

// Unwrap is for [http.ResponseController].
func (q *Request) Unwrap() http.ResponseWriter { return q.w }

// The values are shared by all answers; appending to one of them copies it.
var (
	nosniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	deny       = []string{"DENY"}
	sameOrigin = []string{"same-origin"}
	// A year, for this host alone: other hosts of the domain may belong to other programs.
	encryptedOnly = []string{"max-age=31536000"}
)

// dataPrefix begins the addresses that answer with data, never with a page.
const dataPrefix = "/api/v1/"

// protect sets the headers of every answer. Pages add a policy of their own. Data is not framed,
// opens nothing and loads nothing, so data goes without the headers about that; each of these
// headers costs a hot request about 200 ns.
func protect(h http.Header, u *url.URL, id string) {
	h[RequestIDHeader] = []string{id}
	h["X-Content-Type-Options"] = nosniff
	if u.RawPath == "" && strings.HasPrefix(u.Path, dataPrefix) {
		return
	}
	h["Referrer-Policy"] = noReferrer
	h["X-Frame-Options"] = deny
	h["Cross-Origin-Opener-Policy"] = sameOrigin
	h["Cross-Origin-Resource-Policy"] = sameOrigin
}
