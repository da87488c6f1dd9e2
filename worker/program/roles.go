package program

import (
	"context"
	"slices"
	"time"

	"dropbell/adapters/asynq"
	"dropbell/domain/delivery"
	"dropbell/domain/task"
)

// A role is one part of a worker's work. WORKER_ROLES names those that a
// process has; together the processes of an installation need all of them.
type role string

// The roles, as WORKER_ROLES names them.
const (
	// timersRole fires slots, starts campaigns and cuts announcements, at their
	// instants and by sweeping.
	timersRole role = "timers"
	// deliveryRole delivers the batches of the channels in WORKER_CHANNELS.
	deliveryRole role = "delivery"
	// eventsRole relays the outbox and handles events.
	eventsRole role = "events"
	// jobsRole runs imports, replays, code batches and other jobs.
	jobsRole role = "jobs"
	// gateRole keeps the claim gate and stores what it has decided.
	gateRole role = "gate"
	// houseRole expires coupons, sends notices, counts and cleans up.
	houseRole role = "house"
)

// has reports whether this process has the role.
func (p *program) has(r role) bool {
	return len(p.Config.WorkerRoles) == 0 || slices.Contains(p.Config.WorkerRoles, string(r))
}

// serves reports whether this process delivers the channel.
func (p *program) serves(c delivery.Channel) bool {
	return p.has(deliveryRole) && (len(p.Config.WorkerChannels) == 0 || slices.Contains(p.Config.WorkerChannels, c.String()))
}

// queues returns the queues that this process takes tasks from.
func (p *program) queues() (list []asynq.QueueSpec) {
	if p.has(timersRole) {
		list = append(list, asynq.QueueSpec{Name: task.TimerQueue, Concurrency: 32})
	}
	if p.has(houseRole) {
		list = append(list, asynq.QueueSpec{Name: task.HouseQueue, Concurrency: 1})
	}
	if p.has(jobsRole) {
		list = append(list, jobQueue())
	}
	for _, c := range delivery.AllChannels() {
		if p.serves(c) {
			list = append(list, asynq.QueueSpec{Name: task.ChannelQueue(c.String()), Concurrency: p.Config.WorkerBatches[c.String()]})
		}
	}
	return list
}

// startRoles starts the loops of this process's roles.
func (p *program) startRoles(start func(name string, loop func(context.Context) error)) {
	of := func(r role, name string, loop func(context.Context) error) {
		if p.has(r) {
			start(name, loop)
		}
	}
	of(eventsRole, "event bus", p.bus.Run)
	of(eventsRole, "outbox relay", p.relay)
	of(timersRole, "sweep", p.every(sweepEvery, "sweep", p.sweep))
	of(timersRole, "timers", p.every(sweepEvery, "timers", p.keepTimers()))
	of(houseRole, "housekeeping", p.every(houseEvery, "housekeeping", p.scheduleHouse))
	of(houseRole, "coupons", p.every(sweepEvery, "coupons", p.sweepCoupons))
	of(houseRole, "notices", p.every(sweepEvery, "notices", p.couponLife.notices.Sweep))
	of(jobsRole, "jobs", p.every(sweepEvery, "jobs", p.jobs.Sweep))
	of(jobsRole, "dead letters", p.every(sweepEvery, "dead letters", p.deadLetters.Step))
	of(houseRole, "gauges", p.every(5*time.Second, "gauges", p.gauge))
	of(houseRole, "census", p.every(5*time.Second, "census", p.takeCensus))
	of(houseRole, "campaign results", p.every(resultsEvery, "campaign results", p.countResults))
	if p.has(gateRole) {
		p.gate.start(p, start)
	}
	of(timersRole, "test messages", p.every(sweepEvery, "test messages", p.tester.Sweep))
	of(deliveryRole, "provider calls", p.every(callsEvery, "provider calls", p.recordCalls))
	if len(p.queues()) > 0 {
		start("task servers", p.serveTasks)
	}
}
