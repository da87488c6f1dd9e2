package console

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func (g *rig) startJob(by staff.Actor, title string, shop int64) job.Job {
	g.Helper()
	j, err := g.Jobs.Start(g.Context(), by, job.New{Kind: "test", Title: title, ShopNumber: shop, Total: 40}, staff.ManageTemplates)
	g.must(err)
	return j
}

// work saves a step of the job as a worker would.
func (g *rig) work(id int64, p job.Progress) {
	g.Helper()
	jobs := postgres.NewJobs(g.db)
	g.exec(`update jobs set lease_until = null, lease_token = null where id = $1`, id)
	l, err := jobs.LeaseJob(g.Context(), id, []string{"test"}, time.Minute)
	g.must(err)
	_, err = jobs.SaveJob(g.Context(), l, p, time.Minute)
	g.must(err)
}

// Of a job whose worker died no pace is told, but since when it stands still.
func TestAJobThatStandsStill(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	j := g.startJob(staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}, "Pause templates", 0)
	g.work(j.ID, job.Progress{Total: 40, Done: 12})
	g.exec(`update jobs set started_at = now() - interval '1 minute', next_run_at = now() - interval '5 minutes'`)
	b.get("/jobs").is(200).has("12 of 40", "running</span>").hasNot("stands still", "No worker has processed it")
	b.get("/jobs/1").is(200).has("about 2 min").hasNot("stands still")
	g.exec(`update jobs set lease_until = date_trunc('minute', now()) - interval '1 minute'`)
	var since string
	g.must(g.sql.QueryRow(g.Context(), `select to_char(lease_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI') from jobs`).Scan(&since))
	for _, url := range []string{"/jobs", "/jobs/1"} {
		b.get(url).is(200).has("12 of 40", "stands still</span>", "No worker has processed it since", since, "It continues").hasNot("running</span>", "about 2 min")
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
	b.get(page).is(200).has("12 of 40", "running", "Failures", "=cmd()")
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
	b.get("/jobs.csv?state=nonsense").is(422).has("Some input is not valid")
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

// nextPage returns where the page's link to the next one leads, or "".
func nextPage(a answer) string {
	_, tail, ok := strings.Cut(a.body, `<nav class="pager"`)
	if !ok || !strings.Contains(tail, "Next page") {
		return ""
	}
	links := strings.Split(tail[:strings.Index(tail, "Next page")], `href="`)
	url, _, _ := strings.Cut(links[len(links)-1], `"`)
	return strings.ReplaceAll(url, "&amp;", "&")
}
