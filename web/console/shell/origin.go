package shell

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// origin gives the audit entries of a request the client's address and the request id. It writes
// the changes of a successful request to the security log.
func (sh *Shell) origin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &staff.Origin{Address: ClientIP(r), RequestID: requestID(r)}
		next.ServeHTTP(w, r.WithContext(staff.WithOrigin(r.Context(), from)))
		if q := middleware.From(r.Context()); q == nil || q.Status() < http.StatusBadRequest {
			sh.security.Changed(from)
		}
	})
}

// Refused writes a refusal to the security log. The actor is the member, if known.
func (sh *Shell) Refused(r *http.Request, e security.Event, m staff.Member, detail string) {
	by := security.Unknown()
	if m.ID != 0 {
		by = m.Actor()
	}
	sh.security.Note(security.Occurrence{Event: e, Actor: by, Address: ClientIP(r), Detail: detail, RequestID: requestID(r)})
}

// denied writes a request without the required permission to the security log.
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

// Network returns the network whose requests are counted together, by the same rule as the API: one
// subscriber has a whole /64 of IPv6 addresses.
func Network(r *http.Request) string {
	return NetworkOf(ClientIP(r))
}

// NetworkOf is [Network] of an address.
func NetworkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	k := middleware.AddressKey(0, ip)
	return fmt.Sprintf("%x:%x", k.High, k.Low)
}
