package shell

import (
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// origin gives the audit entries of a request its address and id, and tells the
// security log what a request that succeeded has changed.
func (sh *Shell) origin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &staff.Origin{Address: ClientIP(r), RequestID: requestID(r)}
		next.ServeHTTP(w, r.WithContext(staff.WithOrigin(r.Context(), from)))
		if q := middleware.From(r.Context()); q == nil || q.Status() < http.StatusBadRequest {
			sh.security.Changed(from)
		}
	})
}

// Refused tells the security log of a refusal. The actor is the member, where
// one is known.
func (sh *Shell) Refused(r *http.Request, e security.Event, m staff.Member, detail string) {
	by := security.Unknown()
	if m.ID != 0 {
		by = m.Actor()
	}
	sh.security.Note(security.Occurrence{Event: e, Actor: by, Address: ClientIP(r), Detail: detail, RequestID: requestID(r)})
}

// denied tells the security log of a member who asked for something they may
// not have or do.
func (sh *Shell) denied(r *http.Request, err error) {
	if m := Frame(r).Member; fault.KindOf(err) == fault.Denied && m.ID != 0 {
		sh.Refused(r, security.AccessDenied, m, r.Method+" "+chi.RouteContext(r.Context()).RoutePattern())
	}
}

// ClientIP returns the address of the browser, behind the proxies that are trusted.
func ClientIP(r *http.Request) string {
	if q := middleware.From(r.Context()); q != nil {
		if ip := q.ClientIP(r); ip.IsValid() {
			return ip.String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func requestID(r *http.Request) string {
	if q := middleware.From(r.Context()); q != nil {
		return q.ID
	}
	return ""
}
