package work

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// MonitorPath is where the queue dashboard is.
const MonitorPath = "/monitor/queues"

const queuesPath = "/queues"

// showQueues shows the queue dashboard inside a page of the console.
func (h *handlers) showQueues(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", ui.FramingPolicy(shell.Frame(r).Nonce))
	return h.Show(w, r, http.StatusOK, workpages.Queues{Inside: path.Join(MonitorPath, path.Clean("/"+r.FormValue("at")))}.Page())
}

// queuesURL is the page that shows what the dashboard has at a path.
func queuesURL(inside string) string {
	if at := strings.Trim(strings.TrimPrefix(inside, MonitorPath), "/"); at != "" {
		return queuesPath + "?at=" + url.QueryEscape(at)
	}
	return queuesPath
}
