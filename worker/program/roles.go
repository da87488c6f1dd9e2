package program

import (
	"slices"

	"dropbell/adapters/asynq"
	"dropbell/domain/delivery"
	"dropbell/domain/task"
	"dropbell/worker/audience"
	"dropbell/worker/shell"
	"dropbell/worker/work"
)

// has reports whether this process has the role.
func (p *program) has(r shell.Role) bool {
	return len(p.Config.WorkerRoles) == 0 || slices.Contains(p.Config.WorkerRoles, string(r))
}

// sends reports whether this process hands messages to providers: messages of batches, test
// messages, or alerts.
func (p *program) sends() bool {
	return p.has(shell.Delivery) || p.has(shell.Timers) || p.has(shell.House)
}

// serves reports whether this process delivers the channel.
func (p *program) serves(c delivery.Channel) bool {
	return p.has(shell.Delivery) && (len(p.Config.WorkerChannels) == 0 || slices.Contains(p.Config.WorkerChannels, c.String()))
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
	if p.has(shell.Timers) {
		list = append(list, asynq.QueueSpec{Name: task.TimerQueue, Concurrency: 32})
	}
	if p.has(shell.House) {
		list = append(list, asynq.QueueSpec{Name: task.HouseQueue, Concurrency: 1})
	}
	if p.has(shell.Jobs) {
		list = append(list, work.JobQueue())
	}
	if p.has(shell.Events) {
		list = append(list, asynq.QueueSpec{Name: task.HookQueue, Concurrency: work.HookEndpoints, Servers: 2})
	}
	if p.serves(delivery.SMS) {
		list = append(list, asynq.QueueSpec{Name: task.CodeQueue, Concurrency: audience.CodesAtOnce})
	}
	for _, c := range delivery.AllChannels() {
		if p.serves(c) {
			list = append(list, asynq.QueueSpec{Name: task.ChannelQueue(c.String()), Concurrency: p.Config.WorkerBatches[c.String()]})
		}
	}
	return list
}
