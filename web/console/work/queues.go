package work

import (
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/queue"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// MonitorPath is where the queue dashboard is.
const MonitorPath = "/monitor/queues"

const dashboardPath = workpages.QueuesURL + "/dashboard"

// showDashboard shows asynqmon inside a page of the console.
func (h *handlers) showDashboard(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", ui.FramingPolicy(shell.Frame(r).Nonce))
	return h.Show(w, r, http.StatusOK, workpages.QueueDashboard{Inside: path.Join(MonitorPath, path.Clean("/"+r.FormValue("at")))}.Page())
}

// dashboardURL returns the address of the page that shows the dashboard's page at a path.
func dashboardURL(inside string) string {
	if at := strings.Trim(strings.TrimPrefix(inside, MonitorPath), "/"); at != "" {
		return dashboardPath + "?at=" + url.QueryEscape(at)
	}
	return dashboardPath
}

func (h *handlers) listQueues(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Queues.Queues(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	p := workpages.Queues{List: list}
	return h.Either(w, r, p.Live(), p.Page())
}

func (h *handlers) showQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := h.Queues.Queue(r.Context(), shell.Actor(r), r.PathValue("name"))
	if err != nil {
		return err
	}
	p := workpages.QueueTasks{Queue: q, State: queueState(r, q)}
	pages := taskPages(p)
	page := max(1, pages.In(r))
	if p.List, err = h.Queues.Tasks(r.Context(), shell.Actor(r), q.Name, p.State, page, shell.PageSize); err != nil {
		return err
	}
	p.Paged = pages.Paged(r, len(p.List), q.Sizes[p.State] > int64(page)*shell.PageSize, page+1)
	return h.Show(w, r, http.StatusOK, p.Page())
}

// taskPages are the pages of a queue's tasks. Redis counts tasks by their place, so the key of a page
// is its number; 0 is the first page.
func taskPages(p workpages.QueueTasks) shell.Keys[int] {
	return shell.Keys[int]{Param: "page", Text: strconv.Itoa, Parse: func(s string) int {
		n, _ := strconv.Atoi(s)
		if n <= 1 {
			return 0
		}
		return min(n, maxPage)
	}, URL: func(page string) string {
		if page == "" {
			return workpages.StateURL(p.Name, p.State)
		}
		return workpages.StateURL(p.Name, p.State) + "&page=" + page
	}}
}

// maxPage keeps the offset of a page within the range that Redis accepts.
const maxPage = 1 << 20

// queueState returns the requested state, or the first state that has a task.
func queueState(r *http.Request, q queue.Queue) queue.State {
	for _, s := range queue.States() {
		if string(s) == r.FormValue("state") {
			return s
		}
	}
	for _, s := range queue.States() {
		if q.Sizes[s] > 0 {
			return s
		}
	}
	return queue.Pending
}

func queueCrumbs(r *http.Request, name string) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "nav.queues"), URL: workpages.QueuesURL}, {Label: workpages.QueueName(r.Context(), name), URL: workpages.QueueURL(name)}}
}

// pauseQuestion asks whether the queue is to be paused or resumed.
func pauseQuestion(r *http.Request, name string) pageparts.Confirmation {
	step, kind := r.PathValue("step"), "primary"
	if step == "pause" {
		kind = "danger"
	}
	return pageparts.Confirmation{Active: "queues", Crumbs: queueCrumbs(r, name), ConfirmProps: ui.ConfirmProps{
		Title: shell.Say(r, "queues."+step+".title", workpages.QueueName(r.Context(), name)), Points: []string{shell.Say(r, "queues."+step+".1")},
		Action: workpages.QueueURL(name) + "/" + step, Cancel: workpages.QueueURL(name), Submit: shell.Say(r, "queues."+step), Kind: kind, NoReason: true}}
}

func (h *handlers) confirmPause(w http.ResponseWriter, r *http.Request) error {
	q, err := h.Queues.Queue(r.Context(), shell.Actor(r), r.PathValue("name"))
	if err != nil {
		return err
	}
	return h.Ask(w, r, http.StatusOK, pauseQuestion(r, q.Name))
}

func (h *handlers) pauseQueue(w http.ResponseWriter, r *http.Request) error {
	name, step := r.PathValue("name"), r.PathValue("step")
	if err := h.Queues.Pause(r.Context(), shell.Actor(r), name, step == "pause"); err != nil {
		return err
	}
	return h.Done(w, r, workpages.QueueURL(name), ui.Good, shell.Say(r, "queues."+step+".done"))
}

// stepQuestion asks whether a step is to be taken with a task.
func stepQuestion(r *http.Request, t queue.Task) pageparts.Confirmation {
	step, kind := queue.Step(r.PathValue("step")), "primary"
	if step != queue.Run {
		kind = "danger"
	}
	return pageparts.Confirmation{Active: "queues", Crumbs: queueCrumbs(r, t.Queue), ConfirmProps: ui.ConfirmProps{
		Title: shell.Say(r, "queues."+string(step)+".title"), Points: []string{t.ID, shell.Say(r, "queues."+string(step)+".1")},
		Action: workpages.TaskURL(t, step), Cancel: workpages.StateURL(t.Queue, t.State), Submit: shell.Say(r, "queues."+string(step)), Kind: kind, NoReason: true}}
}

func (h *handlers) confirmTaskStep(w http.ResponseWriter, r *http.Request) error {
	t, err := h.Queues.Task(r.Context(), shell.Actor(r), r.PathValue("name"), r.FormValue("id"))
	if err != nil {
		return err
	}
	return h.Ask(w, r, http.StatusOK, stepQuestion(r, t))
}

func (h *handlers) takeTaskStep(w http.ResponseWriter, r *http.Request) error {
	name, id, step := r.PathValue("name"), r.FormValue("id"), queue.Step(r.PathValue("step"))
	err := h.Queues.Do(r.Context(), shell.Actor(r), name, id, step)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Conflict {
		return h.Done(w, r, workpages.QueueURL(name), ui.Info, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, workpages.QueueURL(name), ui.Good, shell.Say(r, "queues."+string(step)+".done"))
}
