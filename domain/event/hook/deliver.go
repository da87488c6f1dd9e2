package hook

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"dropbell/domain/seal"
)

// A Due delivery is leased: until its lease ends no other worker sends it.
type Due struct {
	ID, EventID int64
	Attempts    int // that were recorded before
	Type        Type
	Payload     []byte
}

// A Result is the outcome of one attempt.
type Result struct {
	DeliveryID int64
	Attempt    int
	At         time.Time
	Answer     Answer
	// Again is the time until the next attempt. Without Again the delivery is done:
	// Failed, unless it was accepted.
	Again *time.Duration
}

// Lease holds the deliveries that a worker may send to one endpoint now.
type Lease struct {
	Endpoint Endpoint
	Token    string
	Due      []Due
}

// Outbound is the store as workers use it.
type Outbound interface {
	// Lease leases up to limit due deliveries of the endpoint. It leases none while
	// the endpoint is disabled or held, or while other workers hold limit deliveries.
	// While the circuit is open, it leases one delivery as a probe.
	Lease(ctx context.Context, endpointID int64, limit int, lasting time.Duration) (Lease, error)
	// Record stores the results whose lease is still held, and the state of the
	// endpoint. A success resets the endpoint's failures. After a failure the
	// endpoint is held for the time that hold returns for its number of failures.
	// It is disabled if it is gone, or has failed for [DisableAfter]. Record
	// reports whether deliveries to the endpoint go on.
	Record(ctx context.Context, l Lease, results []Result, hold func(failures int, last Answer) time.Duration) (goesOn bool, err error)
	// Release gives deliveries back that were not sent.
	Release(ctx context.Context, l Lease, deliveries []int64) error
}

// Poster sends one request.
type Poster interface {
	// Post posts the body, signed with each of the keys. It does not fail: an error is
	// in the answer.
	Post(ctx context.Context, url, id string, at time.Time, body []byte, keys [][]byte) Answer
}

const (
	// inFlight is how many requests one endpoint gets at a time.
	inFlight = 16
	// leased is how many deliveries one worker leases at a time.
	leased = 64
	// LeaseFor is longer than sending a whole lease takes at an endpoint that
	// answers right before each time-out.
	LeaseFor = 90 * time.Second
	// turn is how long a worker stays with one endpoint.
	turn = 20 * time.Second
)

// A Deliverer sends what is due.
type Deliverer struct {
	Store  Outbound
	Poster Poster
	Box    *seal.Box
	Now    func() time.Time
	// Observe, if set, is called for every attempt.
	Observe func(t Type, a Answer)
}

// Drain sends the due deliveries of the endpoint until none is left, for about one
// turn. It reports whether due deliveries may be left.
func (d *Deliverer) Drain(ctx context.Context, endpointID int64) (more bool, err error) {
	until := d.Now().Add(turn)
	for ctx.Err() == nil {
		l, err := d.Store.Lease(ctx, endpointID, leased, LeaseFor)
		if err != nil || len(l.Due) == 0 {
			return false, err
		}
		goesOn, err := d.send(ctx, l)
		if err != nil || !goesOn {
			return false, err
		}
		if !d.Now().Before(until) {
			return true, nil
		}
	}
	return true, nil
}

// send sends the leased deliveries and records results as they arrive, so that a
// worker that is killed leaves few requests unrecorded.
func (d *Deliverer) send(ctx context.Context, l Lease) (goesOn bool, err error) {
	keys, err := d.keys(l.Endpoint)
	if err != nil {
		return false, err // the lease runs out before this endpoint is tried again
	}
	todo, results := make(chan Due), make(chan Result, len(l.Due))
	stop := make(chan struct{}) // closed when nothing more is to be sent
	var senders sync.WaitGroup
	for range min(inFlight, len(l.Due)) {
		senders.Go(func() {
			for due := range todo {
				results <- d.attempt(ctx, l.Endpoint, due, keys)
			}
		})
	}
	var left []Due // that were not sent
	var feeding sync.WaitGroup
	feeding.Go(func() {
		defer close(todo)
		for i, due := range l.Due {
			select {
			case todo <- due:
			case <-stop:
				left = l.Due[i:]
				return
			case <-ctx.Done():
				left = l.Due[i:]
				return
			}
		}
	})
	go func() { feeding.Wait(); senders.Wait(); close(results) }()
	goesOn, stopped := true, false
	for first := range results {
		group := append([]Result{first}, waiting(results)...)
		if on, failed := d.Store.Record(context.WithoutCancel(ctx), l, group, Hold); failed != nil || !on {
			goesOn, err = false, errors.Join(err, failed)
			if !stopped {
				stopped = true
				close(stop)
			}
		}
	}
	return goesOn && len(left) == 0, errors.Join(err, d.release(ctx, l, left))
}

func (d *Deliverer) release(ctx context.Context, l Lease, left []Due) error {
	if len(left) == 0 {
		return nil
	}
	ids := make([]int64, len(left))
	for i, due := range left {
		ids[i] = due.ID
	}
	return d.Store.Release(context.WithoutCancel(ctx), l, ids)
}

// waiting returns the results that are there already.
func waiting(results <-chan Result) (list []Result) {
	for {
		select {
		case r, open := <-results:
			if !open {
				return list
			}
			list = append(list, r)
		default:
			return list
		}
	}
}

// secretRow is the row that secrets of an endpoint are sealed for.
func secretRow(endpointID int64) string { return seal.Row("hook_endpoints", endpointID) }

// keys opens the endpoint's secrets. A secret that cannot be opened is left out if
// another secret can be opened: the key of the environment may have been changed
// meanwhile.
func (d *Deliverer) keys(e Endpoint) (keys [][]byte, err error) {
	for _, s := range e.Secrets {
		key, failed := d.Box.Open(secretRow(e.ID), s)
		if failed != nil {
			err = failed
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, err
	}
	return keys, nil
}

func (d *Deliverer) attempt(ctx context.Context, e Endpoint, due Due, keys [][]byte) Result {
	at := d.Now()
	r := Result{DeliveryID: due.ID, Attempt: due.Attempts + 1, At: at}
	// A post that has begun is completed: the poster has a time limit of its own.
	r.Answer = d.Poster.Post(context.WithoutCancel(ctx), e.URL, MessageID(due.EventID), at, due.Payload, keys)
	if d.Observe != nil {
		d.Observe(due.Type, r.Answer)
	}
	if r.Answer.OK() {
		return r
	}
	if pause, again := Next(r.Attempt, r.Answer, rand.Float64()); again {
		r.Again = &pause
	}
	return r
}
