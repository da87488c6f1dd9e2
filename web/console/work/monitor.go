package work

import (
	"net/http"
	"strings"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// monitor lets operators change the queues, and other staff of all shops read them: the shops share
// the queues.
func (h *handlers) monitor() http.Handler {
	readOnly, writable := h.Monitor(false), h.Monitor(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Admit(r, shell.Everywhere(shell.Get(MonitorPath, staff.View, nil))); err != nil {
			h.Fail(w, r, err)
			return
		}
		if shell.Reads(r) && r.Header.Get("Sec-Fetch-Dest") == "document" {
			shell.Redirect(w, r, dashboardURL(r.URL.Path)) // not without a way back
			return
		}
		if shell.Actor(r).MayEverywhere(staff.Operate) == nil {
			if !shell.Reads(r) {
				// Recorded first: nothing is changed that is not in the audit log.
				if err := h.recordQueueChange(r); err != nil {
					h.Fail(w, r, err)
					return
				}
			}
			writable.ServeHTTP(w, r)
			return
		}
		if !shell.Reads(r) {
			h.Fail(w, r, shell.Actor(r).MayEverywhere(staff.Operate))
			return
		}
		readOnly.ServeHTTP(w, r)
	})
}

// recordQueueChange records a change that an operator is about to make in the queue dashboard, such
// as "queue.pause" of the queue "email".
func (h *handlers) recordQueueChange(r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, MonitorPath+"/api/")
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "queues/"), "/")
	name, verb, _ := strings.Cut(name, ":")
	if rest != "" || verb != "pause" && verb != "resume" {
		verb = "change"
	}
	return h.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "queue." + verb, ObjectKind: "queue", ObjectID: name,
		After: map[string]string{"request": r.Method + " " + path}})
}
