package work

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/app"
	"dropbell/domain/job"
)

// gauges are the metrics of the outbox, the bus, the queues and the jobs. Names are in
// docs/operations.md.
type gauges struct {
	Deps
	queues     *prometheus.GaugeVec
	queueAge   *prometheus.GaugeVec
	lag        *prometheus.GaugeVec
	outbox     prometheus.Gauge
	outboxAge  prometheus.Gauge
	eventAhead prometheus.Gauge
	unsettled  prometheus.Gauge
	jobs       *prometheus.GaugeVec
	stepBehind *prometheus.GaugeVec
	stepLeft   *prometheus.GaugeVec
	stepEnded  *prometheus.GaugeVec
	copiesAge  *prometheus.GaugeVec
	stalled    prometheus.Gauge
}

func newGauges(d Deps) *gauges {
	g := &gauges{
		Deps:       d,
		queues:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_tasks", Help: "Tasks per queue and state."}, []string{"queue", "state"}),
		queueAge:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_queue_age_seconds", Help: "How long the oldest due task has waited for a worker."}, []string{"queue"}),
		lag:        prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_event_lag", Help: "Events a group has not handled."}, []string{"topic", "handler"}),
		outbox:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_events", Help: "Events waiting for the relay."}),
		outboxAge:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox_age_seconds", Help: "Age of the oldest waiting event."}),
		eventAhead: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_event_tables_ahead_seconds", Help: "How far ahead there are tables for the ids of handled events, in whole days."}),
		unsettled:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_events_unsettled", Help: "Events that were relayed and that no look has found handled by every handler."}),
		jobs:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_background_jobs", Help: "Jobs in the background that are not over."}, []string{"state"}),
	}
	g.copiesAge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_copies_due_age_seconds", Help: "Age of the oldest change that another cell does not have."}, []string{"to"})
	g.stalled = prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_move_stalled_seconds", Help: "How long ago the oldest move of a shop began that is not complete and not running."})
	step := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_housekeeping_" + name, Help: help}, []string{"step"})
	}
	g.stepBehind = step("behind_seconds", "For how long a step of housekeeping has not finished in its time; 0 = its last run finished.")
	g.stepLeft = step("left", "Drops, campaigns or rows that the last run of a step left to the next one, as far as they were counted.")
	g.stepEnded = step("ended_timestamp_seconds", "When a run of a step last left nothing to do.")
	d.Registry.MustRegister(g.queues, g.queueAge, g.lag, g.outbox, g.outboxAge, g.eventAhead, g.unsettled, g.jobs, g.stepBehind, g.stepLeft, g.stepEnded, g.copiesAge, g.stalled)
	return g
}

func (g *gauges) setOutbox(ctx context.Context) error {
	waiting, age, err := g.Relay.outbox.Backlog(ctx)
	if err != nil {
		return err
	}
	g.outbox.Set(float64(waiting))
	g.outboxAge.Set(age)
	unsettled, err := g.Relay.outbox.Unhandled(ctx)
	if err != nil {
		return err
	}
	g.unsettled.Set(float64(unsettled))
	days, err := g.House.EventDaysAhead(ctx)
	if err != nil {
		return err
	}
	g.eventAhead.Set(float64(days) * 24 * 60 * 60)
	return nil
}

// setCells exports how far the copies in other cells are behind, and moves that stand still.
func (g *gauges) setCells(ctx context.Context) error {
	l, err := g.Cells.Lag(ctx)
	if err != nil {
		return err
	}
	for n, age := range l.Due {
		g.copiesAge.WithLabelValues(strconv.Itoa(int(n))).Set(age.Seconds())
	}
	g.stalled.Set(l.Stalled.Seconds())
	return nil
}

// setHousekeeping exports the progress of the steps of housekeeping.
func (g *gauges) setHousekeeping(ctx context.Context) error {
	steps, err := g.House.Steps(ctx)
	if err != nil {
		return err
	}
	for _, s := range steps {
		g.stepBehind.WithLabelValues(s.Name).Set(s.BehindFor(app.Clock()).Seconds())
		if s.Left != nil {
			g.stepLeft.WithLabelValues(s.Name).Set(float64(*s.Left))
		}
		if s.EndedAt != nil {
			g.stepEnded.WithLabelValues(s.Name).Set(float64(s.EndedAt.Unix()))
		}
	}
	return nil
}

func (g *gauges) setQueues(ctx context.Context) error {
	depths, err := g.Queue.Depth(ctx)
	if err != nil {
		return err
	}
	for _, d := range depths {
		set := func(state string, n int) { g.queues.WithLabelValues(d.Queue, state).Set(float64(n)) }
		set("pending", d.Pending)
		set("active", d.Active)
		set("scheduled", d.Scheduled)
		set("retry", d.Retry)
		set("archived", d.Archived)
		g.queueAge.WithLabelValues(d.Queue).Set(d.Oldest.Seconds())
	}
	lag, err := g.Relay.bus.Lag(ctx)
	for group, n := range lag {
		g.lag.WithLabelValues(group.Topic, group.Name).Set(float64(n))
	}
	return err
}

func (g *gauges) setJobs(ctx context.Context) error {
	waiting, running, err := g.JobRows.JobsByState(ctx)
	if err != nil {
		return err
	}
	g.jobs.WithLabelValues(string(job.Waiting)).Set(float64(waiting))
	g.jobs.WithLabelValues(string(job.Running)).Set(float64(running))
	return nil
}
