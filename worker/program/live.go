package program

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/live"
	"dropbell/domain/task"
)

const (
	// liveCovered bounds how many drops one step of a sweep gives a row.
	liveCovered = 500
	// coverEvery is how often drops without a row are looked for; events come before.
	coverEvery = 10 * time.Second
)

// activities keep Live Activities up to date. The zero value, without APNS_LIVE, does
// nothing.
type activities struct {
	store   dropsdb.Live
	keeper  *live.Keeper
	queue   *asynq.Queue
	covered time.Time // when drops without a row were last looked for; of the sweep alone
}

func (p *program) newActivities() (*activities, error) {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_live_answers_total",
		Help: "Answers of Apple about broadcast channels, by step and result."}, []string{"step", "result"})
	p.Registry.MustRegister(answers)
	cfg := p.Config
	if !cfg.APNSLive {
		return &activities{}, nil
	}
	apple, err := apns.NewBroadcasts(apns.Config{Key: []byte(cfg.APNSKey), KeyID: cfg.APNSKeyID, TeamID: cfg.APNSTeamID, Topic: cfg.APNSTopic, URL: cfg.APNSURL})
	if err != nil {
		return nil, config.Mistake{Err: err}
	}
	p.OnClose(apple.Close)
	store := p.Stores.Live
	return &activities{store: store, queue: p.queue, keeper: &live.Keeper{Store: store, Apple: apple, Now: app.Clock, Observe: func(step live.Step, a live.Answer) {
		answers.WithLabelValues(liveSteps[step], liveResults[a.Verdict]).Inc()
		if a.Verdict == live.Failed {
			p.Log.Warn("Live Activities were not told of a drop; this is tried again", "step", liveSteps[step], "error", a.Detail)
		}
	}}}, nil
}

// liveSteps and liveResults are the steps and verdicts as metrics name them.
var (
	liveSteps   = map[live.Step]string{live.Create: "create", live.Tell: "broadcast", live.Delete: "delete"}
	liveResults = map[live.Verdict]string{live.Failed: "failed", live.Done: "done", live.Gone: "gone"}
)

// listen makes each change of a drop due at once. Without APNS_LIVE an event is only
// acknowledged; see [wallets.listen].
func (a *activities) listen(bus *watermill.Bus) {
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged, event.TemplateClosed, event.TemplateCancelled} {
		bus.Handle("live-activities", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
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
		}))
	}
}

// sweep finds drops that have no row, and those that are due: at a slot, at the opening,
// and those whose task was lost.
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

// liveTask does what is due about channels, for a turn.
func (p *program) liveTask(ctx context.Context, _ struct{}) error {
	if p.activities.keeper == nil {
		return nil // a program with APNS_LIVE queued it
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	if err := p.activities.keeper.Drain(ctx); err != nil && p.life.Err() == nil {
		return err
	}
	return nil
}
