package console

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// Of a job whose worker died no pace is told, but since when it stands still.
func TestAJobThatStandsStill(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	j := g.startJob(staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}, "Pause templates", 0)
	g.work(j.ID, job.Progress{Total: 40, Done: 12})
	g.exec(`update jobs set started_at = now() - interval '1 minute', next_run_at = now() - interval '5 minutes'`)
	b.get("/jobs").is(200).has("12 of 40", "running</span>").hasNot("stands still", "Nobody has worked on it")
	b.get("/jobs/1").is(200).has("about 2 min").hasNot("stands still")
	g.exec(`update jobs set lease_until = date_trunc('minute', now()) - interval '1 minute'`)
	var since string
	g.must(g.sql.QueryRow(g.Context(), `select to_char(lease_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI') from jobs`).Scan(&since))
	for _, url := range []string{"/jobs", "/jobs/1"} {
		b.get(url).is(200).has("12 of 40", "stands still</span>", "Nobody has worked on it since", since, "It goes on where it stopped").hasNot("running</span>", "about 2 min")
	}
	b.header.Set("Accept-Language", "zh-CN")
	b.get("/jobs").is(200).has("停滞开始时间：", "会从中断处继续。")
}

func TestJobPages(t *testing.T) {
	g := newRig(t)
	b, viewer := g.as(staff.Marketer), g.as(staff.Viewer)
	b.get("/jobs").is(200).has("No jobs yet")
	ada := staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}
	j := g.startJob(ada, "Pause <40> templates", 0)
	page := fmt.Sprintf("/jobs/%d", j.ID)
	b.get(page).is(200).has("Pause &lt;40&gt; templates", "Not begun yet.", "waiting", "Ada", `data-live="`, page+"/cancel", "Live")
	g.work(j.ID, job.Progress{Total: 40, Done: 10, Failed: 2, Cursor: json.RawMessage(`1`), Errors: []job.RowError{{Line: 3, Row: "=cmd()", Error: "no"}, {Line: 5, Row: "+49", Error: "é\nlong"}}})
	b.get(page).is(200).has("12 of 40", "running", "What could not be done", "=cmd()")
	g.as(staff.Viewer).htmx().get(page).is(200).has("12 of 40").hasNot("<html")
	viewer.get(page).is(200).has("12 of 40").hasNot("=cmd()", "/cancel", "errors.csv")
	viewer.get(page + "/errors.csv").is(http.StatusForbidden)
	viewer.get(page + "/cancel").is(http.StatusForbidden)
	viewer.post(page+"/cancel", nil).is(http.StatusForbidden)

	a := b.get(page + "/errors.csv").is(200)
	if got := a.header.Get("Content-Type") + a.header.Get("Content-Disposition"); !strings.Contains(got, "text/csv") || !strings.Contains(got, fmt.Sprintf("errors-%d.csv", j.ID)) {
		t.Errorf("headers %s", got)
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.body, "\uFEFF"))).ReadAll()
	g.must(err)
	if len(rows) != 3 || rows[0][0] != "line" || rows[1][1] != "'=cmd()" || rows[2][1] != "'+49" || rows[2][2] != "é\nlong" {
		t.Errorf("%q", rows)
	}

	b.get("/jobs?state=running").is(200).has("Pause &lt;40&gt;")
	b.get("/jobs?state=done").is(200).has("No job in this state")
	b.get("/jobs?before=x").is(200).has("Pause &lt;40&gt;")
	b.get("/jobs?state=nonsense&before=x").is(200).has("The filter cannot be read", "choose one").hasNot("Pause &lt;40&gt;", "/jobs.csv")
	b.get("/jobs.csv?state=nonsense").is(422).has("Something typed is not valid")
	b.get(page+"/cancel").is(200).has("Stop “Pause &lt;40&gt; templates”?", "(12)")
	b.post(page+"/cancel", nil).to(page)
	b.get(page).is(200).has("is stopped.", "stopped").hasNot("every 1s", page+"/cancel")
	b.post(page+"/cancel", nil).to(page)
	b.get(page + "/cancel").to(page)
	b.get(page).is(200).has("has ended already")
	b.get("/audit").is(200).has("started", "stopped")
	b.get("/jobs/12345").is(http.StatusNotFound)
}

func TestJobsOfOtherShops(t *testing.T) {
	g := newRig(t)
	mine, theirs := g.startJob(staff.System(), "Mine", 10), g.startJob(staff.System(), "Theirs", 11)
	b := g.as(staff.Operator, 10)
	b.get("/jobs").is(200).has("Mine").hasNot("Theirs")
	b.get(fmt.Sprintf("/jobs/%d", mine.ID)).is(200)
	for _, path := range []string{"", "/cancel", "/errors.csv"} {
		b.get(fmt.Sprintf("/jobs/%d%s", theirs.ID, path)).is(http.StatusNotFound)
	}
	b.post(fmt.Sprintf("/jobs/%d/cancel", theirs.ID), nil).is(http.StatusNotFound)
}

func TestJobListPages(t *testing.T) {
	g := newRig(t)
	for i := range 2*shell.PageSize + 1 {
		g.startJob(staff.System(), fmt.Sprintf("Job number %d.", i+1), 0)
	}
	b, seen, next := g.as(staff.Viewer), 0, "/jobs"
	for next != "" {
		a := b.get(next).is(200)
		seen += strings.Count(a.body, "Job number ")
		next = nextPage(a)
	}
	if seen != 2*shell.PageSize+1 {
		t.Errorf("%d jobs on all pages", seen)
	}
}

func TestDeadMessagePages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	b.get("/dead-messages").is(200).has("Nothing is stuck")
	g.exec(`insert into dead_messages (message_id, topic, handler, reason, payload)
		values ('m1', 'users.changed.v1', 'cache', 'it <b>broke</b>', '{"from_user":"1"}'), ('m2', 't', 'h', 'r', '\xff00')`)
	b.get("/dead-messages").is(200).has("users.changed.v1", "it &lt;b&gt;broke", "&#34;from_user&#34;: &#34;1&#34;")
	b.get("/dead-messages/1/requeue").is(200).has("Send this message again?")
	b.post("/dead-messages/1/requeue", nil).to("/dead-messages")
	b.post("/dead-messages/1/requeue", nil).is(http.StatusConflict).has("somebody has dealt with it")
	b.post("/dead-messages/2/requeue", nil).is(http.StatusConflict)
	b.post("/dead-messages/2/discard", nil).to("/dead-messages")
	b.get("/dead-messages").is(200).has("The message has been discarded.", "Nothing is stuck")
	g.as(staff.Marketer).get("/dead-messages").is(http.StatusForbidden)
}

// What an operator changes in the queue dashboard is recorded before it is done.
func TestQueueChangesAreRecorded(t *testing.T) {
	done := 0
	g := newRig(t, func(d *Deps) {
		d.Work.Monitor = func(writable bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { done++ })
		}
	})
	g.from()
	op := g.at("203.0.113.5")
	op.signIn(g.hire(staff.Operator).Email)
	op.post("/monitor/queues/api/queues/email:pause", nil).is(200)
	op.post("/monitor/queues/api/queues/email:resume", nil).is(200)
	op.post("/monitor/queues/api/queues/email/archived_tasks:delete_all", nil).is(200)
	g.as(staff.Admin).get("/audit?kind=queue").is(200).has("paused", "resumed", "changed", "queue email", "From 203.0.113.5")
	if n := g.number(`select count(*) from audit where object_kind = 'queue' and object_id = 'email'`); n != 3 || done != 3 {
		t.Errorf("%d entries, %d changes", n, done)
	}
}
