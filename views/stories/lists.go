package stories

import (
	"time"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/views/pages"
	"dropbell/views/ui"
)

// longLists are the stories of long lists and of what is done to many rows.
func longLists() []Story {
	var all []Story
	for _, group := range [][]Story{work()} {
		all = append(all, group...)
	}
	return all
}

func workOf(id int64, title string, state job.State, total, done, failed int64) job.Job {
	j := job.Job{ID: id, Kind: "templates.bulk", Title: title, State: state, Needs: staff.ManageTemplates, Total: total, Done: done, Failed: failed,
		CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now().Add(-4 * time.Minute)}
	if state != job.Waiting {
		j.StartedAt = ptr(Now().Add(-3 * time.Minute))
	}
	if state.Over() {
		j.FinishedAt = ptr(Now().Add(-20 * time.Second))
	}
	return j
}

func work() []Story {
	waiting, running := workOf(9, "Close 3 templates", job.Waiting, 3, 0, 0), workOf(8, "Pause 2,318 templates whose name is rather longer than anybody would like to read in a list of jobs", job.Running, 2318, 1204, 3)
	unknown := workOf(7, "Import people.csv", job.Running, 0, 48_211, 0)
	done, partly := workOf(6, "Pause 12 templates", job.Done, 12, 12, 0), workOf(5, "Resume 12 templates", job.Done, 12, 9, 3)
	failed, stopped := workOf(4, "Import people.xlsx", job.Failed, 0, 3, 0), workOf(3, "Cancel 40 templates", job.Cancelled, 40, 11, 0)
	failed.Reason, failed.UploadID = "upload_not_found", 3
	again := workOf(2, "Grant “Moon cake night”", job.Running, 50_000, 12_000, 0)
	again.Reason = "internal"
	rows := []job.RowError{{Line: 4, Row: "#4 Lunch", Error: "The drop has opened; close it instead."}, {Line: 7, Row: "#7 Yesterday", Error: "Its current state does not allow this."}, {Line: 12, Row: "", Error: "There is no such template."}}
	return []Story{
		{Name: "jobs/empty", Page: pages.WorkList{}.Page()},
		{Name: "jobs/none", Page: pages.WorkList{State: "failed"}.Page()},
		{Name: "jobs/one", Page: pages.WorkList{List: []job.Job{done}}.Page()},
		{Name: "jobs/many", Page: pages.WorkList{List: []job.Job{waiting, running, unknown, done, partly, failed, stopped}, First: "/jobs", Next: "/jobs?before=3"}.Page()},
		{Name: "jobs/waiting", Page: pages.Work{Job: waiting, MayStop: true}.Page()},
		{Name: "jobs/running", Page: pages.Work{Job: running, MayStop: true, Errors: rows}.Page()},
		{Name: "jobs/retrying", Page: pages.Work{Job: again, MayStop: true}.Page()},
		{Name: "jobs/done", Page: pages.Work{Job: done, MayStop: true, Actions: []ui.ButtonProps{{Label: "Resume them again", Icon: "refresh", URL: "/templates"}}}.Page()},
		{Name: "jobs/partly", Page: pages.Work{Job: partly, MayStop: true, Errors: rows}.Page()},
		{Name: "jobs/failed", Page: pages.Work{Job: failed, Upload: "people.xlsx"}.Page(), Role: staff.Viewer},
	}
}
