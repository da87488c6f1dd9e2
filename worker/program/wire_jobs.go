package program

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"dropbell/adapters/asynq"
	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/task"
	"dropbell/domain/template"
)

const (
	jobLease = 8 * time.Second  // a silent worker's job is taken over after this
	jobTurn  = 30 * time.Second // then another job has its turn
	jobsHere = 4                // jobs one worker has in hand
)

// jobRunners says who works off which kind of job.
func (p *program) jobRunners() map[string]job.Runner {
	return map[string]job.Runner{
		redeemcode.JobKind:  p.codeGenerator(),
		template.BulkKind:   &template.Bulks{Templates: p.template},
		coupon.GrantKind:    p.couponGranter(),
		coupon.TakeBackKind: &coupon.TakeBacker{Store: couponsdb.NewGrants(p.DB), Desk: &coupon.Admin{Store: couponsdb.NewCouponSteps(p.DB)}},
	}
}

func (p *program) newJobs() *job.Worker {
	return &job.Worker{Store: workdb.NewJobs(p.DB), Queue: p.queue, Runners: p.peopleRunners(p.jobRunners()), LeaseFor: jobLease, Turn: jobTurn,
		Now: app.Clock, Random: rand.Float64, Failed: p.jobSetBack}
}

// jobSetBack logs a step that failed; only what is not a fault is a bug.
func (p *program) jobSetBack(ctx context.Context, j job.Job, s job.Setback, err error) {
	level := p.Log.WarnContext
	if fault.KindOf(err) == 0 {
		level = p.Log.ErrorContext
	}
	level(ctx, "step of a job failed", "job", j.ID, "kind", j.Kind, "attempts", s.Attempts, "over", s.Over, "error", err)
}

// wireJobs lets the queue's tasks and the event of a new job wake the worker.
func (p *program) wireJobs() {
	p.servers.Handle(task.WorkJob, p.jobTask)
	p.bus.Handle("jobs", event.JobCreated, app.Decoded(func(ctx context.Context, _ string, e event.Job) error {
		return p.queue.Enqueue(ctx, task.RunJob(e.JobID))
	}))
}

func jobQueue() asynq.QueueSpec { return asynq.QueueSpec{Name: task.JobQueue, Concurrency: jobsHere} }

func (p *program) jobTask(ctx context.Context, payload []byte) error {
	var j task.JobPayload
	if err := json.Unmarshal(payload, &j); err != nil {
		return fault.ErrInvalid.Because("payload: %v", err)
	}
	// Shutdown ends the turn after the step in hand, which is left to finish.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	return p.jobs.Run(ctx, j.JobID)
}

// gaugeJobs shows how many jobs there are.
func (p *program) gaugeJobs(ctx context.Context) error {
	waiting, running, err := workdb.NewJobs(p.DB).JobsByState(ctx)
	if err != nil {
		return err
	}
	p.metrics.jobs.WithLabelValues(string(job.Waiting)).Set(float64(waiting))
	p.metrics.jobs.WithLabelValues(string(job.Running)).Set(float64(running))
	return nil
}
