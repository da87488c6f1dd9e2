package work_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The page of a job whose worker died shows no pace, but since when the job has stalled.
func TestAJobThatStandsStill(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	j := g.StartJob(staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}, "Pause templates", 0)
	g.Work(j.ID, job.Progress{Total: 40, Done: 12})
	g.Exec(`update jobs set started_at = now() - interval '1 minute', next_run_at = now() - interval '5 minutes'`)
	b.Get("/jobs").Is(200).Has("12 of 40", "Running</span>").HasNot("Stalled", "No worker has processed it")
	b.Get("/jobs/1").Is(200).Has("about 2 min").HasNot("Stalled")
	g.Exec(`update jobs set lease_until = date_trunc('minute', now()) - interval '1 minute'`)
	var since string
	g.Must(g.SQL.QueryRow(g.Context(), `select to_char(lease_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI') from jobs`).Scan(&since))
	for _, url := range []string{"/jobs", "/jobs/1"} {
		b.Get(url).Is(200).Has("12 of 40", "Stalled</span>", "No worker has processed it since", since, "It continues").HasNot("Running</span>", "about 2 min")
	}
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get("/jobs").Is(200).Has("停滞开始时间：", "会从中断处继续。")
}

func TestJobPages(t *testing.T) {
	g := consoletest.New(t)
	b, viewer := g.As(staff.Marketer), g.As(staff.Viewer)
	b.Get("/jobs").Is(200).Has("No jobs yet")
	ada := staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}
	j := g.StartJob(ada, "Pause <40> templates", 0)
	page := fmt.Sprintf("/jobs/%d", j.ID)
	b.Get(page).Is(200).Has("Pause &lt;40&gt; templates", "Not begun yet.", "Waiting", "Ada", `data-live="`, page+"/cancel", "Live")
	g.Work(j.ID, job.Progress{Total: 40, Done: 10, Failed: 2, Cursor: json.RawMessage(`1`), Errors: []job.RowError{{Line: 3, Row: "=cmd()", Error: "no"}, {Line: 5, Row: "+49", Error: "é\nlong"}}})
	b.Get(page).Is(200).Has("12 of 40", "Running", "Failures", "=cmd()")
	g.As(staff.Viewer).Htmx().Get(page).Is(200).Has("12 of 40").HasNot("<html")
	viewer.Get(page).Is(200).Has("12 of 40").HasNot("=cmd()", "/cancel", "errors.csv")
	viewer.Get(page + "/errors.csv").Is(http.StatusForbidden)
	viewer.Get(page + "/cancel").Is(http.StatusForbidden)
	viewer.Post(page+"/cancel", nil).Is(http.StatusForbidden)

	a := b.Get(page + "/errors.csv").Is(200)
	if got := a.Header.Get("Content-Type") + a.Header.Get("Content-Disposition"); !strings.Contains(got, "text/csv") || !strings.Contains(got, fmt.Sprintf("errors-%d.csv", j.ID)) {
		t.Errorf("headers %s", got)
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.Body, "\uFEFF"))).ReadAll()
	g.Must(err)
	if len(rows) != 3 || rows[0][0] != "line" || rows[1][1] != "'=cmd()" || rows[2][1] != "'+49" || rows[2][2] != "é\nlong" {
		t.Errorf("%q", rows)
	}

	b.Get("/jobs?state=running").Is(200).Has("Pause &lt;40&gt;")
	b.Get("/jobs?state=done").Is(200).Has("No job in this state")
	b.Get("/jobs?before=x").Is(200).Has("Pause &lt;40&gt;")
	b.Get("/jobs?state=nonsense&before=x").Is(200).Has("The filter cannot be read", "choose one").HasNot("Pause &lt;40&gt;", "/jobs.csv")
	b.Get("/jobs.csv?state=nonsense").Is(422).Has("Some input is not valid")
	b.Get(page+"/cancel").Is(200).Has("Stop “Pause &lt;40&gt; templates”?", "(12)")
	b.Post(page+"/cancel", nil).To(page)
	b.Get(page).Is(200).Has("is stopped.", "Stopped").HasNot("every 1s", page+"/cancel")
	b.Post(page+"/cancel", nil).To(page)
	b.Get(page + "/cancel").To(page)
	b.Get(page).Is(200).Has("has ended already")
	b.Get("/audit").Is(200).Has("started", "stopped")
	b.Get("/jobs/12345").Is(http.StatusNotFound)
}

func TestJobsOfOtherShops(t *testing.T) {
	g := consoletest.New(t)
	mine, theirs := g.StartJob(staff.System(), "Mine", 10), g.StartJob(staff.System(), "Theirs", 11)
	b := g.As(staff.Operator, 10)
	b.Get("/jobs").Is(200).Has("Mine").HasNot("Theirs")
	b.Get(fmt.Sprintf("/jobs/%d", mine.ID)).Is(200)
	for _, path := range []string{"", "/cancel", "/errors.csv"} {
		b.Get(fmt.Sprintf("/jobs/%d%s", theirs.ID, path)).Is(http.StatusNotFound)
	}
	b.Post(fmt.Sprintf("/jobs/%d/cancel", theirs.ID), nil).Is(http.StatusNotFound)
}

func TestJobListPages(t *testing.T) {
	g := consoletest.New(t)
	for i := range 2*shell.PageSize + 1 {
		g.StartJob(staff.System(), fmt.Sprintf("Job number %d.", i+1), 0)
	}
	b, seen, next := g.As(staff.Viewer), 0, "/jobs"
	for next != "" {
		a := b.Get(next).Is(200)
		seen += strings.Count(a.Body, "Job number ")
		next = consoletest.NextPage(a)
	}
	if seen != 2*shell.PageSize+1 {
		t.Errorf("%d jobs on all pages", seen)
	}
}

func TestDeadMessagePages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Get("/dead-messages").Is(200).Has("Nothing is stuck")
	g.Exec(`insert into dead_messages (message_id, topic, handler, reason, payload)
		values ('m1', 'users.changed.v1', 'cache', 'it <b>broke</b>', '{"from_user":"1"}'), ('m2', 't', 'h', 'r', '\xff00')`)
	b.Get("/dead-messages").Is(200).Has("users.changed.v1", "it &lt;b&gt;broke", "&#34;from_user&#34;: &#34;1&#34;")
	b.Get("/dead-messages/1/requeue").Is(200).Has("Send this message again?")
	b.Post("/dead-messages/1/requeue", nil).To("/dead-messages")
	b.Post("/dead-messages/1/requeue", nil).Is(http.StatusConflict).Has("has already been dealt with")
	b.Post("/dead-messages/2/requeue", nil).Is(http.StatusConflict)
	b.Post("/dead-messages/2/discard", nil).To("/dead-messages")
	b.Get("/dead-messages").Is(200).Has("The message has been discarded.", "Nothing is stuck")
	g.As(staff.Marketer).Get("/dead-messages").Is(http.StatusForbidden)
}

// A change by an operator in the queue dashboard is recorded before it is done.
func TestQueueChangesAreRecorded(t *testing.T) {
	done := 0
	g := consoletest.New(t, func(d *console.Deps) {
		d.Work.Monitor = func(writable bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { done++ })
		}
	})
	g.From()
	op := g.At("203.0.113.5")
	op.SignIn(g.Hire(staff.Operator).Email)
	op.Post("/monitor/queues/api/queues/email:pause", nil).Is(200)
	op.Post("/monitor/queues/api/queues/email:resume", nil).Is(200)
	op.Post("/monitor/queues/api/queues/email/archived_tasks:delete_all", nil).Is(200)
	g.As(staff.Admin).Get("/audit?kind=queue").Is(200).Has("paused", "resumed", "changed", "queue email", "From 203.0.113.5")
	if n := g.Number(`select count(*) from audit where object_kind = 'queue' and object_id = 'email'`); n != 3 || done != 3 {
		t.Errorf("%d entries, %d changes", n, done)
	}
}
