package console

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// origin gives the audit entries of a request its address and id, and tells the
// security log what a request that succeeded has changed.
func (c *Console) origin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &staff.Origin{Address: clientIP(r), RequestID: requestID(r)}
		next.ServeHTTP(w, r.WithContext(staff.WithOrigin(r.Context(), from)))
		if q := middleware.From(r.Context()); q == nil || q.Status() < http.StatusBadRequest {
			c.Security.Changed(from)
		}
	})
}

// refused tells the security log of a refusal. The actor is the member, where
// one is known.
func (c *Console) refused(r *http.Request, e security.Event, m staff.Member, detail string) {
	by := security.Unknown()
	if m.ID != 0 {
		by = m.Actor()
	}
	c.Security.Note(security.Occurrence{Event: e, Actor: by, Address: clientIP(r), Detail: detail, RequestID: requestID(r)})
}

// denied tells the security log of a member who asked for something they may
// not have or do.
func (c *Console) denied(r *http.Request, err error) {
	if m := frame(r).Member; fault.KindOf(err) == fault.Denied && m.ID != 0 {
		c.refused(r, security.AccessDenied, m, r.Method+" "+chi.RouteContext(r.Context()).RoutePattern())
	}
}

// recordQueueChange records what an operator is about to change in the queue
// dashboard, such as "queue.pause" of the queue "email".
func (c *Console) recordQueueChange(r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, MonitorPath+"/api/")
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "queues/"), "/")
	name, verb, _ := strings.Cut(name, ":")
	if rest != "" || verb != "pause" && verb != "resume" {
		verb = "change"
	}
	return c.Audit.Record(r.Context(), staff.Entry{Actor: actor(r), Action: "queue." + verb, ObjectKind: "queue", ObjectID: name,
		After: map[string]string{"request": r.Method + " " + path}})
}
