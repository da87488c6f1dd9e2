package pipeline

import (
	"errors"
	"net/http"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// noteRefusal writes refused credentials and denied requests to the security log. operation is the
// method and the path pattern.
func (pl *Pipeline) noteRefusal(r *http.Request, operation string, err error) {
	if pl.deps.Security == nil {
		return
	}
	o := security.Occurrence{Actor: security.Unknown(), Detail: operation}
	c := CallerOf(r.Context())
	credential := r.Header.Get("Authorization")
	known := c.Key != nil || c.User != 0
	switch {
	case fault.KindOf(err) == fault.Denied:
		o.Event = security.AccessDenied
		if c.Key != nil {
			o.Actor = c.Key.Actor()
		}
	case credential == "" || known:
		return
	case fault.KindOf(err) == fault.Unauthenticated, errors.Is(err, ErrRateLimited):
		o.Event, o.Detail = security.KeyRefused, ""
		if _, token, _ := strings.Cut(credential, " "); looksLikeToken(strings.TrimSpace(token)) {
			o.Event = security.TokenRefused
		}
	default:
		return
	}
	pl.note(r, o)
}

// noteActing writes a change by a service key in the name of a user to the security log.
func (pl *Pipeline) noteActing(r *http.Request, operation string) {
	c := CallerOf(r.Context())
	if pl.deps.Security == nil || c.Key == nil || c.User == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	pl.note(r, security.Occurrence{Event: security.ActedAsUser, Actor: c.Key.Actor(), Detail: operation})
}

func (pl *Pipeline) note(r *http.Request, o security.Occurrence) {
	o.Address, o.RequestID = addressOf(r), middleware.From(r.Context()).ID
	pl.deps.Security.Note(o)
}

// addressOf returns the client's address, empty = unknown.
func addressOf(r *http.Request) string {
	if ip := clientOf(r); ip.IsValid() {
		return ip.String()
	}
	return ""
}

// fromStaff gives the audit entries of a staff request the client's address and the request id.
// told, called at the end of the request, writes the changes to the security log.
func (pl *Pipeline) fromStaff(q *middleware.Request, r *http.Request) (_ *http.Request, told func()) {
	from := &staff.Origin{Address: addressOf(r), RequestID: q.ID}
	return r.WithContext(staff.WithOrigin(r.Context(), from)), func() {
		if q.Status() < http.StatusBadRequest {
			pl.deps.Security.Changed(from)
		}
	}
}
