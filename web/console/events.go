package console

import (
	"net/http"
	"strings"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// recordQueueChange records what an operator is about to change in the queue
// dashboard, such as "queue.pause" of the queue "email".
func (c *Console) recordQueueChange(r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, MonitorPath+"/api/")
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "queues/"), "/")
	name, verb, _ := strings.Cut(name, ":")
	if rest != "" || verb != "pause" && verb != "resume" {
		verb = "change"
	}
	return c.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "queue." + verb, ObjectKind: "queue", ObjectID: name,
		After: map[string]string{"request": r.Method + " " + path}})
}
