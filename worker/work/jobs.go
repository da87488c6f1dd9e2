package work

import (
	"context"

	"dropbell/adapters/asynq"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/task"
)

// jobsHere is how many jobs one worker runs at a time.
const jobsHere = 4

// jobSetBack logs a failed step. Only an error that is no fault is a bug.
func (d Deps) jobSetBack(ctx context.Context, j job.Job, s job.Setback, err error) {
	level := d.Log.WarnContext
	if fault.KindOf(err) == 0 {
		level = d.Log.ErrorContext
	}
	level(ctx, "step of a job failed", "job", j.ID, "kind", j.Kind, "attempts", s.Attempts, "over", s.Over, "error", err)
}

// JobQueue is the queue of jobs.
func JobQueue() asynq.QueueSpec { return asynq.QueueSpec{Name: task.JobQueue, Concurrency: jobsHere} }
