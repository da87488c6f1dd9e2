package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/adapters/watermill"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/pause"
	"dropbell/worker/shell"
)

const (
	relayIdle      = 50 * time.Millisecond // between looks at the outbox
	relayRestAfter = 5 * time.Second       // without events, after which it is looked at every [shell.Rest]
	// relayGroup is how many events one relay transaction takes along.
	relayGroup = 500
	// relayLead is how long the lead of a worker lasts after its last renewal. A worker that
	// stops reading the outbox keeps other workers from it for at most this time. The lead is
	// renewed in its second half.
	relayLead = 800 * time.Millisecond
	// publishFor is how long Redis may take to accept a group of events. Meanwhile the events
	// stay locked for other workers.
	publishFor = 5 * time.Second
	// lookEvery is how often the leader checks whether relayed events were handled and whether
	// Redis forgot some. lookIdle is the interval while no event is unhandled; lookAgain is the
	// interval after the leader corrected something.
	lookEvery = 5 * time.Second
	lookIdle  = 30 * time.Second
	lookAgain = time.Second
)

// Relay moves events to the bus, and keeps track of them until every handler has acknowledged
// them.
type Relay struct {
	outbox workdb.Outbox
	bus    *watermill.Bus
	leader *redis.Leader
	hooks  *Hooks
	runner shell.Runner
	log    *slog.Logger

	republished, corrected prometheus.Counter

	looked time.Time // time of the last Look; zero = a Look is due
	soon   bool      // the last Look corrected something
	// check is the state that the next look may find handled; nil = none.
	check *relayCheck
}

// NewRelay returns the relay of an outbox. After the database has forgotten events, the relay
// sends shops the current state through hooks.
func NewRelay(outbox workdb.Outbox, bus *watermill.Bus, leader *redis.Leader, hooks *Hooks, runner shell.Runner, r *prometheus.Registry) *Relay {
	outbox.Summed = slices.Sorted(maps.Keys(Sums))
	k := &Relay{outbox: outbox, bus: bus, leader: leader, hooks: hooks, runner: runner, log: runner.Log,
		republished: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_republished_total", Help: "Events that were published again because Redis may have forgotten them."}),
		corrected:   prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_events_corrected_total", Help: "Events for shops that correct what was told before the database lost it."})}
	r.MustRegister(k.republished, k.corrected)
	return k
}

// Run moves committed events from the outbox to the bus: at once while there are any, otherwise
// every 50 ms, and every 250 ms after some seconds without an event. Notifications instead would
// take a cluster-wide lock at every commit.
//
// One worker, the leader, relays: several workers would share the same events, and each would
// merge only a part of them. After some seconds without an event, a worker reads the outbox
// before it asks for the lead. A worker that fails, or does not reach Redis, leaves the lead to
// another worker.
func (k *Relay) Run(ctx context.Context) error {
	defer k.leader.Resign(context.WithoutCancel(ctx))
	var last, failed time.Time // when there was an event, and a failure
	stuck := false             // the last time nothing could be published
	others := false            // another worker led the last time
	some := func(ctx context.Context) error {
		if !others && time.Since(last) > relayRestAfter {
			if waiting, _, unsettled, err := k.outbox.Waiting(ctx, 1); err != nil || waiting == 0 && !k.due(unsettled) {
				return err
			}
		}
		for {
			leads, err := k.leader.Lead(ctx, relayLead)
			if others = err == nil && !leads; err != nil || !leads {
				return err
			}
			waiting, unmerged, unsettled, err := k.outbox.Waiting(ctx, relayGroup)
			if err != nil {
				return err
			}
			if k.due(unsettled) {
				if err := k.Look(ctx); err != nil {
					return err
				}
			}
			if waiting == 0 {
				return nil
			}
			last = time.Now()
			var merged error
			if !stuck { // otherwise the events keep gathering for one sum
				for _, topic := range unmerged {
					merged = errors.Join(merged, k.outbox.Merge(ctx, topic, relayGroup, Sums[topic]))
				}
			}
			n, err := k.outbox.Relay(ctx, relayGroup, k.Publish)
			stuck = err != nil
			if err := errors.Join(merged, err); err != nil || waiting < relayGroup && n < relayGroup {
				return err
			}
		}
	}
	attempt := k.runner.Attempts("outbox relay", func(ctx context.Context) error {
		err := some(ctx)
		if err != nil {
			failed = time.Now()
			k.looked = time.Time{}
			k.leader.Resign(ctx)
		}
		return err
	})
	for {
		if time.Since(failed) > 2*shell.Rest {
			attempt(ctx)
		}
		period := relayIdle
		if time.Since(last) > relayRestAfter {
			period = shell.Rest
		}
		if !pause.For(ctx, shell.UntilNext(time.Now(), period)) {
			return nil
		}
	}
}

// Sums merge the waiting events of a topic, by topic.
var Sums = map[string]func(payloads [][]byte) ([][]byte, error){
	event.ReservationsChanged: summed(event.SumReservations),
	event.ReservationsListed: summed(func(list []event.ReservationList) []event.ReservationList {
		return event.SumReservationLists(list, hook.MaxItems)
	}),
}

// summed merges the events that groups of reservations have announced. Many processes with small
// groups announce nearly one event per reservation, and each event costs its handler a
// transaction.
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

// seqKey is the metadata key of an event's seq number in the outbox.
const seqKey = "relayed"

// Publish hands events to the bus.
func (k *Relay) Publish(ctx context.Context, list []workdb.Announcement) error {
	events := make([]watermill.Event, len(list))
	for i, a := range list {
		events[i] = watermill.Event{ID: a.ID, Topic: a.Topic, Payload: a.Payload, Metadata: map[string]string{seqKey: strconv.FormatInt(a.Seq, 10)}}
		if a.Trace != "" {
			events[i].Metadata["traceparent"] = a.Trace
		}
	}
	ctx, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	return k.bus.Publish(ctx, events)
}

// relayCheck records that the events up to seq were published before the ends of the streams,
// while the marks of the streams had the number mark.
type relayCheck struct {
	seq, mark int64
	ends      watermill.Ends
}

// due reports whether it is time for the next Look. unsettled tells whether some events are not
// settled yet; then the interval is shorter.
func (k *Relay) due(unsettled bool) bool {
	every := lookIdle
	switch {
	case k.soon:
		every = lookAgain
	case unsettled:
		every = lookEvery
	}
	return time.Since(k.looked) >= every
}

// Look publishes events again that Redis may have forgotten, settles handled events, and sends
// shops corrections if the database forgot something.
//
// Settling rests on an order. A look that finds the marks takes the seq of the last event, and
// then the ends of the streams. If a later look still finds the same marks, no stream had
// forgotten an event up to the seq when the end of this stream was read. Once every handler has
// acknowledged all events before the ends, all events up to the seq are handled.
func (k *Relay) Look(ctx context.Context) error {
	k.looked, k.soon = time.Now(), false
	r, err := k.outbox.Relayed(ctx)
	if err != nil {
		return err
	}
	marked, greatest, err := k.bus.Marked(ctx, r.Mark)
	if err != nil {
		return err
	}
	// A mark is set before its number is stored, so it may be ahead by one.
	if r.History != r.Now || greatest > r.Mark+1 {
		k.soon = true
		return k.correct(ctx, r, greatest)
	}
	if !marked {
		k.soon = true
		return k.again(ctx, r)
	}
	if err := k.outbox.Turn(ctx); err != nil {
		return err
	}
	if k.check == nil || k.check.mark != r.Mark {
		return k.begin(ctx, r)
	}
	handled, err := k.bus.Handled(ctx, k.check.ends)
	if err != nil {
		return err
	}
	if !handled {
		ends, err := k.bus.Ends(ctx)
		if err != nil || ends.Reach(k.check.ends) {
			return err
		}
		k.check = nil // a stream was removed without its mark
		return k.again(ctx, r)
	}
	if _, err := k.outbox.Settle(ctx, k.check.seq, r.Mark); err != nil {
		return err
	}
	if err := k.drop(ctx, k.check.ends); err != nil {
		return err
	}
	r.Settled = k.check.seq
	return k.begin(ctx, r)
}

// drop removes handled events about changed coupons from Redis, so that a paid coupon leaves
// nothing there. While a shop is told of coupons, the events stay as long as other events:
// corrections are made of them; see toldTopics.
func (k *Relay) drop(ctx context.Context, handled watermill.Ends) error {
	if k.hooks.wants.Any(ctx, hook.CouponLocked, hook.CouponUsed, hook.CouponReleased, hook.CouponRefunded, hook.CouponRevoked, hook.CouponSuspended, hook.CouponRestored) {
		return nil
	}
	return k.bus.Drop(ctx, event.CouponsChanged, handled)
}

// begin records the state that the next look may find handled.
func (k *Relay) begin(ctx context.Context, r workdb.Relayed) error {
	k.check = nil
	seq, err := k.outbox.Last(ctx)
	if err != nil || seq <= r.Settled {
		return err
	}
	ends, err := k.bus.Ends(ctx)
	if err == nil {
		k.check = &relayCheck{seq, r.Mark, ends}
	}
	return err
}

// again publishes all events that are not known to be handled. First the marks get their next
// number. Relays that began earlier are over when the last seq is read, and events that Redis
// forgets from then on are forgotten together with the new marks.
func (k *Relay) again(ctx context.Context, r workdb.Relayed) error {
	if err := k.bus.SetMarks(ctx, r.Mark+1); err != nil {
		return err
	}
	last, err := k.outbox.Last(ctx)
	if err != nil {
		return err
	}
	n := 0
	for at := r.Settled; ; {
		list, err := k.outbox.After(ctx, at, last, relayGroup)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		if err := k.Publish(ctx, list); err != nil {
			return err
		}
		n, at = n+len(list), list[len(list)-1].Seq
	}
	if err := k.outbox.Remark(ctx, r.Mark); err != nil {
		return err
	}
	k.republished.Add(float64(n))
	k.log.Info("events that no handler is known to have handled were published again: Redis is new, was emptied, or has started anew", "events", n)
	return nil
}

// toldTopics are the events that shops are told of and can be corrected about.
var toldTopics = map[string]func(l *hook.Lost, payload []byte) error{
	event.TemplatePublished:  lostEvent(hook.AddDrop(event.TemplatePublished)),
	event.TemplateMoved:      lostEvent(hook.AddDrop(event.TemplateMoved)),
	event.TemplateClosed:     lostEvent(hook.AddDrop(event.TemplateClosed)),
	event.TemplateCancelled:  lostEvent(hook.AddDrop(event.TemplateCancelled)),
	event.ReservationsListed: lostEvent((*hook.Lost).AddReservations),
	event.CouponsChanged:     lostEvent((*hook.Lost).AddChanges),
	event.CouponChanged:      lostEvent((*hook.Lost).AddCoupon),
	event.IssuedListed:       lostEvent((*hook.Lost).AddIssued),
}

func lostEvent[E any](add func(*hook.Lost, E)) func(*hook.Lost, []byte) error {
	return func(l *hook.Lost, payload []byte) error {
		var e E
		if err := json.Unmarshal(payload, &e); err != nil {
			return err
		}
		add(l, e)
		return nil
	}
}

// correct sends shops the current state after the database forgot transactions whose events were
// published: the database was restored, or a standby took over that lacked the transactions.
func (k *Relay) correct(ctx context.Context, r workdb.Relayed, greatest int64) error {
	lost, lacks := &hook.Lost{}, 0
	if r.History != "" {
		for topic, add := range toldTopics {
			n, err := k.lost(ctx, topic, func(payload []byte) error { return add(lost, payload) })
			if err != nil {
				return err
			}
			lacks += n
		}
	}
	n, endpoints, err := k.hooks.events.Correct(ctx, r, max(r.Mark, greatest)+1, lost)
	if err != nil {
		return err
	}
	k.hooks.wake(ctx, endpoints)
	if r.History != "" {
		k.corrected.Add(float64(n))
		k.log.Error("the database has another history: it was restored, or a standby took over. Shops were told what is about each event that it lacks", "events", lacks, "corrections", n)
	}
	return nil
}

// lost calls add with the payload of each event that is in the stream of topic and that the
// database lacks. It returns the number of these events.
func (k *Relay) lost(ctx context.Context, topic string, add func(payload []byte) error) (n int, err error) {
	err = k.bus.Newest(ctx, topic, relayGroup, func(events []watermill.Event) (bool, error) {
		var list []workdb.Announcement
		for _, e := range events {
			if seq, err := strconv.ParseInt(e.Metadata[seqKey], 10, 64); err == nil {
				list = append(list, workdb.Announcement{Seq: seq, ID: e.ID, Payload: e.Payload})
			}
		}
		missing, more, err := k.outbox.Missing(ctx, list)
		if err != nil {
			return false, err
		}
		for _, a := range missing {
			if err := add(a.Payload); err != nil {
				return false, fmt.Errorf("event %s of %s: %w", a.ID, topic, err)
			}
		}
		n += len(missing)
		return more, nil
	})
	return n, err
}
