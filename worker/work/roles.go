// Package work is the room of worker for the outbox and its relay, background jobs,
// housekeeping, webhooks of shops, and alerts to staff.
package work

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/asynq"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

// Deps are the dependencies of the room. All are required except Notifier, which is nil without
// keys for push. The room sets the callbacks of Jobs, Watcher and Notifier.
type Deps struct {
	Relay    *Relay
	Hooks    *Hooks
	Jobs     *job.Worker
	JobRows  workdb.Jobs
	Cells    workdb.Cells
	Watcher  *alert.Watcher
	Notifier *alert.Notifier
	// Passwords mails links to members who forgot their password.
	Passwords *staff.PasswordMailer
	// Seal seals the addresses of chat groups that are stored as they are.
	Seal    func(context.Context) error
	Figures app.Figures
	House   House
	Queue   *asynq.Queue

	Registry *prometheus.Registry
	Log      *slog.Logger
}

// Roles returns the loops, sweeps, handlers and tasks of the room.
func Roles(d Deps) shell.Roles {
	f, g := newFigures(d), newGauges(d)
	d.Jobs.Failed, d.Watcher.Crashed = d.jobSetBack, d.alertCrashed
	r := shell.Roles{
		Loops: []shell.Loop{
			{Name: "event bus", Role: shell.Events, Run: d.Relay.bus.Run},
			{Name: "outbox relay", Role: shell.Events, Run: d.Relay.Run},
			{Role: shell.House, Name: "housekeeping", Every: houseEvery, Do: d.scheduleHouse},
			{Role: shell.House, Name: "alerts", Every: alertsEvery, Do: d.Watcher.Look},
			{Name: "addresses", Run: d.sealAddresses},
		},
		Sweeps: []shell.Sweep{
			{Role: shell.Events, Name: "webhooks", Do: d.Hooks.sweep},
			{Role: shell.House, Name: "alert deliveries", Do: d.Watcher.Deliver},
			{Role: shell.House, Name: "password mails", Do: d.Passwords.Deliver},
			{Role: shell.Jobs, Name: "jobs", Do: d.Jobs.Sweep},
		},
		Handlers: append(d.Hooks.handlers(), shell.On("jobs", event.JobCreated, app.Decoded(func(ctx context.Context, _ string, e event.Job) error {
			return d.Queue.Enqueue(ctx, task.RunJob(e.JobID))
		}))),
		Tasks: []shell.Task{
			// Shutdown ends the turn after the current step, which is left to finish.
			{Name: task.WorkJob, Turn: true, Do: shell.Decoded(func(ctx context.Context, j task.JobPayload) error { return d.Jobs.Run(ctx, j.JobID) })},
			{Name: task.SendHooks, Turn: true, Do: shell.Decoded(d.Hooks.send)},
			{Name: task.CleanUp, Do: d.cleanUp},
		},
		Gauges:   []func(context.Context) error{g.setOutbox, g.setQueues, g.setJobs, g.setHousekeeping, g.setCells, d.Hooks.gauge},
		Counts:   []shell.Count{{Take: f.correct, Forget: func() {}}},
		Recounts: []func(context.Context) error{f.recount},
	}
	if d.Notifier != nil {
		d.Notifier.Crashed = d.alertCrashed
		r.Sweeps = append(r.Sweeps, shell.Sweep{Role: shell.House, Name: "alert pushes", Do: d.Notifier.Deliver})
	}
	return r
}
