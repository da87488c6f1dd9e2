// Package shell is shared by the rooms of worker. Roles are the loops, sweeps, handlers and
// tasks that a room gives to the program. A Runner runs loops and sweeps.
package shell

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"dropbell/adapters/watermill"
	"dropbell/domain/fault"
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
)

// A Role is one part of a worker's work. WORKER_ROLES names the roles of a process. Together the
// processes of an installation need all roles.
type Role string

// The roles, as WORKER_ROLES names them.
const (
	// Timers fires slots, starts campaigns and cuts announcements: at their instants, and
	// through sweeps if a timer was lost.
	Timers Role = "timers"
	// Delivery delivers the batches of the channels in WORKER_CHANNELS. If SMS is one of the
	// channels, it also sends the codes for phone numbers.
	Delivery Role = "delivery"
	// Events relays the outbox, handles events, and sends webhook events to the servers of
	// shops.
	Events Role = "events"
	// Jobs runs imports, replays, code batches and other jobs.
	Jobs Role = "jobs"
	// Gate keeps the claim gate and stores what it has decided.
	Gate Role = "gate"
	// House expires coupons, sends notices, counts and cleans up.
	House Role = "house"
)

// Roles are the loops, sweeps, handlers, tasks and figures of a room. All processes that read
// the bus and the queues run the handlers and tasks.
type Roles struct {
	Loops    []Loop
	Sweeps   []Sweep
	Handlers []Handler
	Tasks    []Task
	// Gauges set metrics, in each process of the role [House], every few seconds.
	Gauges []func(context.Context) error
	// Counts are taken by one process for all processes.
	Counts []Count
	// Watches look for conditions that staff are told about.
	Watches []alert.Watch
	// Recounts compare sums with the rows, in one process every ten minutes.
	Recounts []func(context.Context) error
}

// A Loop runs at once and then at each full period, in the processes of its role; without a
// role, in all processes. Its failures are counted and logged by its name.
type Loop struct {
	Role  Role
	Name  string
	Every time.Duration
	Do    func(context.Context) error
	// Run, if set, is run once instead, until its context ends; an error ends the process.
	Run func(context.Context) error
}

// A Sweep is a short job that runs every second. It looks for work that a queue or an event
// should have brought, and usually finds none.
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
	// Turn ends the context of Do when the shutdown begins. Another worker continues the
	// remaining work, so an error is then not counted as a failure.
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
	// Forget removes the metrics that the next counting worker sets, so that no stale value
	// remains.
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
