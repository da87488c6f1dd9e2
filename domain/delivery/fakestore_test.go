package delivery

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

var errAway = fault.New(fault.Unavailable, "overloaded", "the database is away")

// fakeStore is a store with one batch that keeps the contract of [Lease]. Its clock is the
// synctest bubble's; the clock of the service may differ.
type fakeStore struct {
	mu         sync.Mutex
	channel    Channel
	due        []user.ID
	worthless  time.Time
	subject    Subject
	holdOut    int
	optedOut   map[user.ID]bool
	sent       map[user.ID]int
	exceptions map[user.ID]Exception
	rest       Outcome
	restReason string
	done       bool
	stop       string
	readyAt    time.Time
	holder     *holding // nil = no holder
	until      time.Time

	accepted    []user.ID // recorded message by message
	known       map[user.ID]user.User
	contactsErr error
	refusals    Refusals
	refusalsErr error
	consents    map[user.ID]bool
	consentsErr error
	checkpoints []Progress
	extensions  int
	attempts    int                     // checkpoints tried
	refuse      func(attempt int) error // decides about each checkpoint
}

func newFakeStore(c Channel, users int, window time.Duration) *fakeStore {
	now := time.Now()
	d := &fakeStore{channel: c, worthless: now.Add(window), sent: map[user.ID]int{}, exceptions: map[user.ID]Exception{}, optedOut: map[user.ID]bool{},
		known: map[user.ID]user.User{}, subject: Subject{Kind: KindReminder, TemplateID: 1, TemplateName: "Half price", Slot: 1, DueAt: now, OpensAt: now.Add(window)}}
	for i := range users {
		id := user.ID(i + 1)
		d.due = append(d.due, id)
		d.known[id] = user.User{ID: id, Email: "u@example.com", Phone: "+8613800138000"}
	}
	return d
}

func (d *fakeStore) LeaseNext(_ context.Context, c Channel, lasting time.Duration) (Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	held := d.holder != nil && now.Before(d.until)
	if c != d.channel || d.done || held || now.Before(d.readyAt) {
		return nil, ErrNoWork
	}
	d.until = now.Add(lasting)
	d.holder = &holding{depot: d, lasting: lasting, batch: Batch{ID: 7, Subject: d.subject, PlannedAt: d.subject.DueAt, Channel: c, WorthlessAfter: d.worthless, HoldOut: d.holdOut,
		StopReason: d.stop, Exceptions: maps.Clone(d.exceptions), OptedOut: maps.Clone(d.optedOut), Now: now}}
	for id, reason := range d.refusals {
		d.holder.batch.OptedOut[id] = d.holder.batch.OptedOut[id] || reason == ReasonOptedOut
	}
	for _, id := range d.due {
		if d.sent[id] == 0 {
			d.holder.batch.Left = append(d.holder.batch.Left, id)
		}
		if e, has := d.exceptions[id]; d.sent[id] == 0 && slices.Contains(d.accepted, id) && !(has && e.Outcome.Final()) {
			d.holder.batch.Accepted = append(d.holder.batch.Accepted, id)
		}
	}
	return d.holder, nil
}

// LeaseSome leases the one batch.
func (d *fakeStore) LeaseSome(ctx context.Context, c Channel, lasting time.Duration, _ int) ([]Lease, error) {
	return oneOf(d.LeaseNext(ctx, c, lasting))
}

func oneOf(l Lease, err error) ([]Lease, error) {
	if err != nil {
		return nil, err
	}
	return []Lease{l}, nil
}

// Recipients returns a stranger between any two of the users, as it may.
func (d *fakeStore) Recipients(_ context.Context, _ Channel, ids []user.ID, _ bool) ([]user.User, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []user.User
	for id := ids[0]; id <= ids[len(ids)-1]; id++ {
		if u, ok := d.known[id]; ok {
			u.Suppressed = u.Suppressed || d.refusals[id] == ReasonSuppressed
			found = append(found, u)
		}
	}
	return found, d.contactsErr
}

// Consents returns the users who are in consents.
func (d *fakeStore) Consents(_ context.Context, _ *Batch, ids []user.ID) (map[user.ID]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := map[user.ID]bool{}
	for _, id := range ids {
		held[id] = d.consents[id]
	}
	return held, d.consentsErr
}

// Refusals returns the users who are in refusals.
func (d *fakeStore) Refusals(_ context.Context, _ Channel, ids []user.ID) (Refusals, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := Refusals{}
	for _, id := range ids {
		if reason := d.refusals[id]; reason != "" {
			found[id] = reason
		}
	}
	return found, d.refusalsErr
}

// refuseNow opts the user out during the test.
func (d *fakeStore) refuseNow(id user.ID, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusals == nil {
		d.refusals = Refusals{}
	}
	d.refusals[id] = reason
}

// steal takes the batch away from its holder.
func (d *fakeStore) steal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder = &holding{depot: d}
	d.until = time.Now().Add(time.Hour)
}

// release ends the batch's lease.
func (d *fakeStore) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder, d.until = nil, time.Time{}
}

func (d *fakeStore) setStop(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop = reason
}

// outcomes counts the outcomes of all recipients, including the outcome that ended the batch.
func (d *fakeStore) outcomes() map[Outcome]int {
	counts := map[Outcome]int{}
	for _, id := range d.due {
		e, has := d.exceptions[id]
		switch {
		case d.sent[id] > 0:
			counts[Sent]++
		case has:
			counts[e.Outcome]++
		case d.rest != "":
			counts[d.rest]++
		default:
			counts[InFlight]++
		}
	}
	return counts
}

// holding is one lease of the fakeStore's batch.
type holding struct {
	depot   *fakeStore
	lasting time.Duration
	batch   Batch
}

func (h *holding) Batch() *Batch { return &h.batch }

func (h *holding) mine() bool { return h.depot.holder == h && time.Now().Before(h.depot.until) }

func (h *holding) Extend(ctx context.Context) (string, error) {
	d := h.depot
	d.mu.Lock()
	defer d.mu.Unlock()
	d.extensions++
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !h.mine() {
		return "", ErrLeaseLost
	}
	d.until = time.Now().Add(h.lasting)
	return d.stop, nil
}

func (h *holding) Accepted(ctx context.Context, id user.ID, _ int64) error {
	d := h.depot
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts++
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.refuse != nil {
		if err := d.refuse(d.attempts); err != nil {
			return err
		}
	}
	if !h.mine() {
		return ErrLeaseLost
	}
	d.accepted = append(d.accepted, id)
	return nil
}

func (h *holding) Checkpoint(ctx context.Context, p Progress) (string, error) {
	d := h.depot
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts++
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if d.refuse != nil {
		if err := d.refuse(d.attempts); err != nil {
			return "", err
		}
	}
	if !h.mine() {
		return "", ErrLeaseLost
	}
	d.until = time.Now().Add(h.lasting)
	d.apply(p)
	return d.stop, nil
}

func (d *fakeStore) apply(p Progress) {
	d.checkpoints = append(d.checkpoints, p)
	for _, id := range p.Sent {
		d.sent[id]++
	}
	for _, e := range p.Exceptions {
		d.exceptions[e.UserID] = e
	}
	d.rest, d.restReason = p.Rest, p.RestReason
	if p.Done || !p.ReleaseUntil.IsZero() {
		d.holder, d.done, d.readyAt = nil, p.Done, p.ReleaseUntil
	}
}
