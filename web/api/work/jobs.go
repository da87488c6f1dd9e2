package work

import (
	"context"
	"net/http"
	"time"

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

func (h *handlers) jobRoutes() {
	codes := []string{"job_not_found"}
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/jobs/{id}", "get-job", "Show the progress of a background job", pipeline.Route{Codes: codes,
		Description: "Files of lists, counts of segments, imports, bulk changes. Staff who are limited to shops see the jobs of these, and their own."}),
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{ Body Job }, error) {
			j, err := h.Jobs.Job(ctx, pipeline.ActorOf(ctx), id)
			return &struct{ Body Job }{workJSON(j)}, err
		}))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/jobs/{id}/errors.csv", "export-job-errors", "Export the rows that failed",
		pipeline.Route{Traits: pipeline.Traits{Stream: true}, Codes: codes, File: "text/csv", FileText: "The rows.",
			Description: "A heading, then line,row,error,kind for each, as far as the job has come. The kind is failed, or note for a row that is " +
				"processed all the same, such as an id that is in the file twice. It needs the permission to start such a job."}), pipeline.ByID(h.jobErrors))
}

func (h *handlers) jobErrors(ctx context.Context, id int64) (*pipeline.Stream, error) {
	by := pipeline.ActorOf(ctx)
	j, err := h.Jobs.Job(ctx, by, id) // asked before anything is sent
	if err == nil {
		err = by.May(j.Needs, j.ShopNumber)
	}
	if err != nil {
		return nil, err
	}
	return h.SendRows("errors-"+pipeline.Decimal(j.ID)+".csv", []string{"line", "row", "error", "kind"}, func(ctx context.Context, row func(...any) error) error {
		return h.Jobs.RowErrors(ctx, by, j.ID, func(e job.RowError) error { return row(e.Line, e.Row, e.Error, user.RowKind(e)) })
	}), nil
}
