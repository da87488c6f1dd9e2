// Package delivery is the room of worker for delivering messages: batches and their limits,
// test messages, dead letters, and reports of providers.
package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/bouncemail"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/event"
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
	"dropbell/domain/testmessage"
	"dropbell/worker/shell"
)

// Deps are the dependencies of the room. All are required except Mailbox, which is nil where no
// bounce mailbox is configured. The room sets the callbacks of Service and Mailbox.
type Deps struct {
	Service     *delivery.Service
	Tester      *testmessage.Tester
	DeadLetters *delivery.DeadLetters
	Letters     deliverydb.DeadLetters
	Channels    deliverydb.Channels
	Receipts    *feedback.Matcher
	Mailbox     *feedback.Collector
	Alerts      Alerts
	// Leader calls do in one process at a time.
	Leader func(ctx context.Context, name string, do func(context.Context) error) error
	Queue  shell.Queue

	Registry *prometheus.Registry
	Log      *slog.Logger
}

// bouncesEvery is how often the bounce mailbox is looked into.
const bouncesEvery = 30 * time.Second

// Roles returns what worker does to deliver messages.
func Roles(d Deps) shell.Roles {
	m := newMetrics(d)
	d.Service.Observe = m.delivered
	d.Service.Crashed = func(c delivery.Channel, crash delivery.Crash) {
		// The message is dead and its recipient named there; here is where the mistake is.
		d.Log.Error("a sender panicked; the message it panicked on is a dead letter, the others are sent",
			"channel", c.String(), "panic", crash.What, "stack", string(crash.Stack))
	}
	r := shell.Roles{
		Sweeps: []shell.Sweep{
			{Role: shell.Timers, Name: "test messages", Do: d.Tester.Sweep},
			{Role: shell.House, Name: "early receipts", Do: d.Receipts.Run},
			{Role: shell.Jobs, Name: "dead letters", Do: d.DeadLetters.Step},
		},
		Handlers: []shell.Handler{shell.On("channel-tests", event.ChannelTestCreated, app.Decoded(func(ctx context.Context, _ string, e event.ChannelTest) error {
			return d.Queue.Enqueue(ctx, task.TestChannel(e.TestID))
		}))},
		Tasks: []shell.Task{
			{Name: task.Deliver, Turn: true, Do: shell.Decoded(func(ctx context.Context, b task.BatchPayload) error {
				c, err := delivery.ParseChannel(b.Channel)
				if err != nil {
					return err
				}
				// The drain stops after the current batch, whose calls in flight are left to finish.
				return d.Service.Drain(ctx, c)
			})},
			{Name: task.Test, Do: shell.Decoded(func(ctx context.Context, t task.TestPayload) error { return d.Tester.Run(ctx, t.TestID) })},
		},
		Gauges:   []func(context.Context) error{m.gaugeBacklogs, m.gaugeChannels},
		Counts:   []shell.Count{{Take: m.countDead, Forget: m.dead.Reset}},
		Recounts: []func(context.Context) error{d.Letters.RecountDeadLetters},
		Watches:  []alert.Watch{{Kind: alert.Channel, Look: d.Alerts.failingChannels}},
	}
	if d.Mailbox != nil {
		d.Mailbox.Counted = func(f feedback.Fate) {
			m.mails.WithLabelValues(string(f)).Inc()
			if f == feedback.Unreadable {
				d.Log.Warn("a mail of the bounce mailbox could not be read and was moved aside", "folder", bouncemail.Aside)
			}
		}
		r.Loops = []shell.Loop{{Role: shell.House, Name: "bounce mailbox", Every: bouncesEvery, Do: func(ctx context.Context) error {
			return d.Leader(ctx, "bounce mailbox", d.Mailbox.Run)
		}}}
	}
	return r
}
