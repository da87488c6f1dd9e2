// Package shell is shared by the rooms of worker. Roles are the loops, sweeps, handlers and
// tasks that a room gives the program; a Runner runs loops and sweeps.
package shell

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"dropbell/adapters/watermill"
	"dropbell/domain/alert"
	"dropbell/domain/fault"
	"dropbell/domain/task"
)

// A Role is one part of a worker's work. WORKER_ROLES names those that a
// process has; together the processes of an installation need all of them.
type Role string

// The roles, as WORKER_ROLES names them.
const (
	// Timers fires slots, starts campaigns and cuts announcements, at their
	// instants and by sweeping.
	Timers Role = "timers"
	// Delivery delivers the batches of the channels in WORKER_CHANNELS, and with SMS the
	// codes for phone numbers.
	Delivery Role = "delivery"
	// Events relays the outbox, handles events, and sends those that shops'
	// servers want.
	Events Role = "events"
	// Jobs runs imports, replays, code batches and other jobs.
	Jobs Role = "jobs"
	// Gate keeps the claim gate and stores what it has decided.
	Gate Role = "gate"
	// House expires coupons, sends notices, counts and cleans up.
	House Role = "house"
)

// Roles are the loops, sweeps, handlers, tasks and figures of a room. Handlers and tasks are
// run by all processes that read the bus and the queues.
type Roles struct {
	Loops    []Loop
	Sweeps   []Sweep
	Handlers []Handler
	Tasks    []Task
	// Gauges set metrics, in each process of the role [House], every few seconds.
	Gauges []func(context.Context) error
	// Counts are taken by one process for all.
	Counts []Count
	// Watches look for what staff are told of.
	Watches []alert.Watch
	// Recounts compare sums with the rows, in one process every ten minutes.
	Recounts []func(context.Context) error
}

// A Loop is run at once and then at each full period by the processes of a role; without
// a role, by all. Its failures are counted and logged by its name.
type Loop struct {
	Role  Role
	Name  string
	Every time.Duration
	Do    func(context.Context) error
	// Run, if set, is run once instead, until its context ends; an error ends the process.
	Run func(context.Context) error
}

// A Sweep is a short job of every second; it finds nothing, or what a queue or an event
// should have brought.
type Sweep struct {
	Role Role
	Name string
	Do   func(context.Context) error
}

// A Queue takes tasks.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// A Handler handles the events of one topic. Every handler is idempotent: events arrive
// at least once, and in no particular order.
type Handler struct {
	Group, Topic string
	Do           watermill.HandlerFunc
	Options      []watermill.Option
}

// On returns the handler of a group for the events of a topic.
func On(group, topic string, do watermill.HandlerFunc, options ...watermill.Option) Handler {
	return Handler{group, topic, do, options}
}

// A Task does the queue's tasks of one name.
type Task struct {
	Name string
	Do   func(ctx context.Context, payload []byte) error
	// Turn ends the context when the shutdown begins; what is left then goes on in
	// another worker, so that an error is none.
	Turn bool
}

// Decoded does a task whose payload is a P in JSON.
func Decoded[P any](do func(context.Context, P) error) func(context.Context, []byte) error {
	return func(ctx context.Context, payload []byte) error {
		var p P
		if err := json.Unmarshal(payload, &p); err != nil {
			return fault.ErrInvalid.Because("payload: %v", err)
		}
		return do(ctx, p)
	}
}

// A Count sets metrics that are the same for all workers and cost the database something.
type Count struct {
	Take func(context.Context) error
	// Forget removes what the next worker will say, so that nothing stale stays.
	Forget func()
}

// Join returns the roles of all rooms.
func Join(rooms ...Roles) (all Roles) {
	for _, r := range rooms {
		all.Loops, all.Sweeps = slices.Concat(all.Loops, r.Loops), slices.Concat(all.Sweeps, r.Sweeps)
		all.Handlers, all.Tasks = slices.Concat(all.Handlers, r.Handlers), slices.Concat(all.Tasks, r.Tasks)
		all.Gauges, all.Counts = slices.Concat(all.Gauges, r.Gauges), slices.Concat(all.Counts, r.Counts)
		all.Watches = slices.Concat(all.Watches, r.Watches)
		all.Recounts = slices.Concat(all.Recounts, r.Recounts)
	}
	return all
}
