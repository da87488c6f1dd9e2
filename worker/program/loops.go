package program

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/hook"
	"dropbell/domain/task"
	"dropbell/domain/timer"
)

// relayGroup is how many events one relay transaction takes along.
const relayGroup = 500

// relayLead is how long at most a worker that no longer looks at the outbox keeps others
// from it. It is renewed in its second half.
const relayLead = 800 * time.Millisecond

// relay moves committed events from the outbox to the bus: at once while
// there are any, else every 50 ms, and every 250 ms after some seconds without
// any. Notifications instead would take a cluster-wide lock at every commit. One of the
// workers does it: several would share the same events, and each would merge a part of
// them. After the seconds without any, a worker looks before it asks for the lead. One that
// fails leaves the lead to another one.
func (p *program) relay(ctx context.Context) error {
	leader := redis.NewLeader(p.Redis, "relay", uuid.NewString())
	defer leader.Resign(context.WithoutCancel(ctx))
	var last, failed time.Time // when there was an event, and a failure
	stuck := false             // the last time nothing could be published
	others := false            // another worker led the last time
	some := func(ctx context.Context) error {
		if !others && time.Since(last) > relayRestAfter {
			if waiting, _, err := p.outbox.Waiting(ctx, 1); err != nil || waiting == 0 {
				return err
			}
		}
		for {
			if others = !leader.Lead(ctx, relayLead); others {
				return nil
			}
			waiting, unmerged, err := p.outbox.Waiting(ctx, relayGroup)
			if err != nil || waiting == 0 {
				return err
			}
			last = time.Now()
			var merged error
			if !stuck { // else they go on gathering for one sum
				for _, topic := range unmerged {
					merged = errors.Join(merged, p.outbox.Merge(ctx, topic, relayGroup, sums[topic]))
				}
			}
			n, err := p.outbox.Relay(ctx, relayGroup, p.publish)
			stuck = err != nil
			if err := errors.Join(merged, err); err != nil || waiting < relayGroup && n < relayGroup {
				return err
			}
		}
	}
	attempt := p.attempts("outbox relay", func(ctx context.Context) error {
		err := some(ctx)
		if err != nil {
			failed = time.Now()
			leader.Resign(ctx)
		}
		return err
	})
	for {
		if time.Since(failed) > 2*relayRest {
			attempt(ctx)
		}
		pause := relayIdle
		if time.Since(last) > relayRestAfter {
			pause = relayRest
		}
		if !sleep(ctx, untilNext(time.Now(), pause)) {
			return nil
		}
	}
}

// sums merge the waiting events of a topic, by topic.
var sums = map[string]func(payloads [][]byte) ([][]byte, error){
	event.ReservationsChanged: summed(event.SumReservations),
	event.ReservationsListed: summed(func(list []event.ReservationList) []event.ReservationList {
		return event.SumReservationLists(list, hook.MaxItems)
	}),
}

// summed merges events that groups of reservations have announced: many processes
// with small groups make one event for nearly every reservation, and each event
// a transaction of its handler.
func summed[E any](sum func([]E) []E) func(payloads [][]byte) ([][]byte, error) {
	return func(payloads [][]byte) (sums [][]byte, err error) {
		list := make([]E, len(payloads))
		for i, payload := range payloads {
			if err := json.Unmarshal(payload, &list[i]); err != nil {
				return nil, err
			}
		}
		for _, e := range sum(list) {
			payload, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			sums = append(sums, payload)
		}
		return sums, nil
	}
}

func (p *program) publish(ctx context.Context, list []workdb.Announcement) error {
	events := make([]watermill.Event, len(list))
	for i, a := range list {
		events[i] = watermill.Event{ID: a.ID, Topic: a.Topic, Payload: a.Payload}
		if a.Trace != "" {
			events[i].Metadata = map[string]string{"traceparent": a.Trace}
		}
	}
	return p.bus.Publish(ctx, events)
}

// sweep finds what timers and tasks should have done; every worker does it,
// so that losing Redis or a worker costs a second or two.
func (p *program) sweep(ctx context.Context) error {
	if err := p.timers.Sweep(ctx); err != nil {
		return err
	}
	if err := p.announcer.Sweep(ctx); err != nil {
		return err
	}
	if err := p.launcher.Sweep(ctx); err != nil {
		return err
	}
	_, err := p.template.CloseEnded(ctx, 100)
	return err
}

// keepTimers returns the job that queues timers again after Redis lost them.
func (p *program) keepTimers() func(context.Context) error {
	k := &timer.Keeper{Store: workdb.NewTimers(p.DB), Queue: p.queue, Armed: func(timers int) {
		p.Log.Info("timers were queued again: Redis is new, was emptied, or has started anew", "timers", timers)
	}}
	return k.Keep
}

// scheduleHouse queues the periodic chores; several workers queue them once.
func (p *program) scheduleHouse(ctx context.Context) error {
	bucket := app.Clock().Truncate(houseEvery).Format(time.RFC3339)
	return p.queue.Enqueue(ctx, task.House(task.CleanUp, bucket), task.House(task.Recount, bucket))
}

// eventLife is how long handled events stay on the wire for late readers.
const eventLife = time.Hour

// cleanUp removes expired data.
func (p *program) cleanUp(ctx context.Context) error {
	keep := workdb.Retention{Delivery: p.Config.RetainFor, Audit: p.Config.RetainAudit, Coupons: p.Config.RetainCoupons,
		Idempotency: workdb.IdempotencyKeyLife, Events: 7 * 24 * time.Hour, Jobs: 30 * 24 * time.Hour, Uploads: 7 * 24 * time.Hour, Hooks: p.Config.RetainHooks}
	// Redis first: trimming its memory does not wait for trimming a disk. No part keeps
	// another one from its work.
	trimmed, err1 := p.bus.Trim(ctx, eventLife)
	pruned, err2 := p.queue.PruneArchive(ctx, 7*24*time.Hour)
	n, err3 := workdb.NewHousekeeping(p.DB).Clean(ctx, keep, 0)
	p.Log.Info("cleaned up", "rows", n, "events", trimmed, "archived_tasks", pruned)
	return errors.Join(err1, err2, err3)
}
