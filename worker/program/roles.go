package program

import (
	"slices"

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
	// deliveryRole delivers the batches of the channels in WORKER_CHANNELS, and with SMS the
	// codes for phone numbers.
	deliveryRole role = "delivery"
	// eventsRole relays the outbox, handles events, and sends those that shops'
	// servers want.
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

// sends reports whether this process hands messages to providers: those of batches, test
// messages, or alerts.
func (p *program) sends() bool { return p.has(deliveryRole) || p.has(timersRole) || p.has(houseRole) }

// serves reports whether this process delivers the channel.
func (p *program) serves(c delivery.Channel) bool {
	return p.has(deliveryRole) && (len(p.Config.WorkerChannels) == 0 || slices.Contains(p.Config.WorkerChannels, c.String()))
}

// channels returns the channels that this process delivers.
func (p *program) channels() (set delivery.ChannelSet) {
	for _, c := range delivery.AllChannels() {
		if p.serves(c) {
			set |= delivery.ChannelSetOf(c)
		}
	}
	return set
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
	if p.has(eventsRole) {
		list = append(list, asynq.QueueSpec{Name: task.HookQueue, Concurrency: hookEndpoints, Servers: 2})
	}
	if p.serves(delivery.SMS) {
		list = append(list, asynq.QueueSpec{Name: task.CodeQueue, Concurrency: codesHere})
	}
	for _, c := range delivery.AllChannels() {
		if p.serves(c) {
			list = append(list, asynq.QueueSpec{Name: task.ChannelQueue(c.String()), Concurrency: p.Config.WorkerBatches[c.String()]})
		}
	}
	return list
}
