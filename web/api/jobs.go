package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/job"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// Job is work in the background.
type Job struct {
	ID         string     `json:"id" example:"7"`
	Kind       string     `json:"kind" example:"segment.list"`
	Title      string     `json:"title" example:"fair.csv"`
	State      string     `json:"state" enum:"waiting,running,done,failed,cancelled"`
	Total      int64      `json:"total" doc:"Rows there are; 0 while that is not known."`
	Done       int64      `json:"done" doc:"Rows that were processed."`
	Failed     int64      `json:"failed" doc:"Rows that failed; /admin/jobs/{id}/errors.csv has the reasons."`
	Reason     string     `json:"reason,omitempty" doc:"The code of the error that ended a failed job, or because of which the job is tried again."`
	Detail     string     `json:"detail,omitempty" doc:"The same in words."`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

func workJSON(j job.Job) Job {
	return Job{pipeline.Decimal(j.ID), j.Kind, j.Title, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail, j.CreatedAt.UTC(), pipeline.UTC(j.StartedAt), pipeline.UTC(j.FinishedAt)}
}

// JobRef names a job in the address.
type JobRef struct {
	ID string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
}

func (a *API) jobRoutes() {
	about := pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForStaff}, Method: http.MethodGet, Path: "/admin/jobs/{id}", ID: "get-job", Tag: pipeline.TagStaff,
		Summary: "Show the progress of a background job", Codes: []string{"job_not_found"},
		Description: "Files of lists, counts of segments, imports, bulk changes. Staff who are limited to shops see the jobs of these, and their own."}
	pipeline.Register(a.Pipeline, a.Operation(about), func(ctx context.Context, in *JobRef) (*struct{ Body Job }, error) {
		j, err := a.job(ctx, in.ID)
		return &struct{ Body Job }{workJSON(j)}, err
	})
	about.Path, about.ID, about.Stream = "/admin/jobs/{id}/errors.csv", "export-job-errors", true
	about.Summary = "Export the rows that failed"
	about.Description = "A heading, then line,row,error,kind for each, as far as the job has come. The kind is failed, or note for a row that is " +
		"processed all the same, such as an id that is in the file twice. It needs the permission to start such a job."
	op := a.Operation(about)
	op.Responses["200"] = &huma.Response{Description: "The rows.", Content: map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	pipeline.Register(a.Pipeline, op, a.jobErrors)
}

func (a *API) job(ctx context.Context, ref string) (job.Job, error) {
	id, err := pipeline.ParseID("path.id", ref)
	if err != nil {
		return job.Job{}, err
	}
	return a.Jobs.Job(ctx, pipeline.ActorOf(ctx), id)
}

func (a *API) jobErrors(ctx context.Context, in *JobRef) (*struct{ Body func(huma.Context) }, error) {
	by := pipeline.ActorOf(ctx)
	j, err := a.job(ctx, in.ID) // asked before anything is sent
	if err == nil {
		err = by.May(j.Needs, j.ShopNumber)
	}
	if err != nil {
		return nil, err
	}
	return &struct{ Body func(huma.Context) }{func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		a.sendRows(w, r, "errors-"+pipeline.Decimal(j.ID)+".csv", []string{"line", "row", "error", "kind"}, func(row func(...any) error) error {
			return a.Jobs.RowErrors(r.Context(), by, j.ID, func(e job.RowError) error { return row(e.Line, e.Row, e.Error, user.RowKind(e)) })
		})
	}}, nil
}
