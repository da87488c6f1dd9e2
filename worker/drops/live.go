package drops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/live"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

const (
	// liveCovered bounds how many drops one step of a sweep gives a row.
	liveCovered = 500
	// coverEvery is how often drops without a row are looked for; events come before.
	coverEvery = 10 * time.Second
)

// activities keep Live Activities up to date. The zero value does nothing; it is used without
// APNS_LIVE.
type activities struct {
	store   dropsdb.Live
	keeper  *live.Keeper
	queue   shell.Queue
	covered time.Time // when drops without a row were last looked for; of the sweep alone
}

// newActivities returns the activities of the room; d.Live may be nil.
func newActivities(d Deps) *activities {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_live_answers_total",
		Help: "Answers of Apple about broadcast channels, by step and result."}, []string{"step", "result"})
	d.Registry.MustRegister(answers)
	if d.Live == nil {
		return &activities{}
	}
	d.Live.Observe = func(step live.Step, a live.Answer) {
		answers.WithLabelValues(liveSteps[step], liveResults[a.Verdict]).Inc()
		if a.Verdict == live.Failed {
			d.Log.Warn("Live Activities were not told of a drop; this is tried again", "step", liveSteps[step], "error", a.Detail)
		}
	}
	return &activities{store: d.LiveRows, keeper: d.Live, queue: d.Queue}
}

// liveSteps and liveResults are the steps and verdicts as metrics name them.
var (
	liveSteps   = map[live.Step]string{live.Create: "create", live.Tell: "broadcast", live.Delete: "delete"}
	liveResults = map[live.Verdict]string{live.Failed: "failed", live.Done: "done", live.Gone: "gone"}
)

// changed makes the channel of a changed drop due at once. Without APNS_LIVE an event is only
// acknowledged: if APNS_LIVE was set earlier, the consumer group exists, and without readers it
// would keep every event.
func (a *activities) changed(ctx context.Context, _ string, e event.Template) error {
	if a.keeper == nil {
		return nil
	}
	if err := a.store.Cover(ctx, liveCovered); err != nil {
		return err
	}
	if err := a.store.Wake(ctx, e.TemplateID); err != nil {
		return err
	}
	return a.queue.Enqueue(ctx, task.TellLive(app.Clock()))
}

// sweep adds rows for drops that have none, and queues a task if a drop is due: at a slot, at
// the opening, or because its task was lost.
func (a *activities) sweep(ctx context.Context) error {
	if a.keeper == nil {
		return nil
	}
	if time.Since(a.covered) > coverEvery {
		if err := a.store.Cover(ctx, liveCovered); err != nil {
			return err
		}
		a.covered = time.Now()
	}
	due, err := a.store.Due(ctx)
	if err != nil || !due {
		return err
	}
	return a.queue.Enqueue(ctx, task.TellLive(app.Clock()))
}

// tell makes the due changes of channels and broadcasts, for one turn.
func (a *activities) tell(ctx context.Context, _ struct{}) error {
	if a.keeper == nil {
		return nil // a program with APNS_LIVE queued it
	}
	return a.keeper.Drain(ctx)
}
