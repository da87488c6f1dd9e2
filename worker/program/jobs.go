package program

import (
	"context"
	"time"

	"dropbell/adapters/asynq"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/task"
)

const (
	jobLease = 8 * time.Second  // a silent worker's job is taken over after this
	jobTurn  = 30 * time.Second // then another job has its turn
	jobsHere = 4                // concurrent jobs of one worker
)

// jobSetBack logs a step that failed; only what is not a fault is a bug.
func (p *program) jobSetBack(ctx context.Context, j job.Job, s job.Setback, err error) {
	level := p.Log.WarnContext
	if fault.KindOf(err) == 0 {
		level = p.Log.ErrorContext
	}
	level(ctx, "step of a job failed", "job", j.ID, "kind", j.Kind, "attempts", s.Attempts, "over", s.Over, "error", err)
}

func jobQueue() asynq.QueueSpec { return asynq.QueueSpec{Name: task.JobQueue, Concurrency: jobsHere} }

func (p *program) jobTask(ctx context.Context, j task.JobPayload) error {
	// Shutdown ends the turn after the current step, which is left to finish.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	return p.jobs.Run(ctx, j.JobID)
}

// gaugeJobs shows how many jobs there are.
func (p *program) gaugeJobs(ctx context.Context) error {
	waiting, running, err := p.Stores.Jobs.JobsByState(ctx)
	if err != nil {
		return err
	}
	p.metrics.jobs.WithLabelValues(string(job.Waiting)).Set(float64(waiting))
	p.metrics.jobs.WithLabelValues(string(job.Running)).Set(float64(running))
	return nil
}
