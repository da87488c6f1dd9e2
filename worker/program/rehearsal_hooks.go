package program

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/watermill"
	"dropbell/adapters/webhook"
	"dropbell/app"
	"dropbell/domain/event/hook"
	"dropbell/domain/pause"
	"dropbell/domain/seal"
	"dropbell/worker/work"
)

// telling tells those endpoints of the shop that asked for it of the events of the copy. It works on the tables of the copy, where
// the endpoints were copied, so the endpoints themselves are neither held nor disabled by what happens here.
type telling struct {
	*stage
	w      *app.World
	id     int64
	events *workdb.HookEvents
	hooks  *work.Hooks
	poster *webhook.Poster
	topics []string
	told   map[string]bool // events of the copy by their ids
}

// tellAgain is how often new events are looked for, and tellsAfter for how long after the last customer.
const (
	tellAgain  = 500 * time.Millisecond
	tellsAfter = 5 * time.Second
)

// telling returns nil if no endpoint asked to be told. Its tasks go to q.
func (s *stage) telling(ctx context.Context, w *app.World, id int64, q *stageQueue) (*telling, error) {
	endpoints, err := w.Stores.Hooks.Endpoints(ctx, nil)
	if err != nil || len(endpoints) == 0 {
		return nil, err
	}
	box, err := seal.New(hook.SealPurpose, s.Config.EventsKeys...)
	if err != nil {
		return nil, err
	}
	t := &telling{stage: s, w: w, id: id, events: workdb.NewHookEvents(w.DB), poster: webhook.NewPoster(0, s.Config.EventsInsecure), told: map[string]bool{}}
	t.hooks = work.NewHooks(t.events, w.Stores.Hooks, &hook.Deliverer{Store: w.Stores.Hooks, Poster: t.poster.Rehearsing(id), Box: box, Now: app.Clock}, q, prometheus.NewRegistry(), s.Log)
	t.topics, q.hooks = t.hooks.Topics(), t.hooks
	return t, nil
}

// run tells of events until ctx ends.
func (t *telling) run(ctx context.Context) {
	defer t.events.Close()
	defer t.poster.Close()
	for pause.For(ctx, tellAgain) {
		if err := errors.Join(t.step(ctx), t.hooks.Sweep(ctx)); err != nil && ctx.Err() == nil {
			t.Log.Warn("the shop is not told of a rehearsal", "rehearsal", t.id, "error", err)
		}
	}
}

// step handles the events of the copy that were published since the step before.
func (t *telling) step(ctx context.Context) error {
	return t.w.Stores.Rehearsals.Published(ctx, t.topics, func(id, topic string, payload []byte) error {
		if t.told[id] {
			return nil
		}
		err := t.hooks.Handle(ctx, watermill.Event{ID: id, Topic: topic, Payload: payload})
		t.told[id] = err == nil
		return err
	})
}
