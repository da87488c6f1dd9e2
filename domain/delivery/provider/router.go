package provider

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// Circuits are the circuit breakers of providers, which all workers share. The id 0
// means the channel's provider in the environment. If the store does not answer, a
// circuit counts as closed.
type Circuits interface {
	// Admit returns zero if a call may be made now; the caller then reports the
	// result of the call. Otherwise it returns how long to wait.
	Admit(ctx context.Context, c delivery.Channel, id int64) (wait time.Duration)
	// Unused gives back an admission that led to no call.
	Unused(ctx context.Context, c delivery.Channel, id int64)
	// Report reports the result of a call.
	Report(ctx context.Context, c delivery.Channel, id int64, call delivery.Call)
}

// An Entry is a provider with its sender. The sender is nil if it could not be made, for
// example because the secrets cannot be opened. Such a provider is passed over, like a
// provider whose circuit is open.
type Entry struct {
	Provider
	Sender delivery.Sender
}

// brokenFor is how long messages wait whose only provider has no sender.
const brokenFor = 5 * time.Second

// A Router is the sender of a channel: it hands each message to the provider that
// [Candidates] and [Choose] name. As long as no provider is configured, all messages go
// to the environment's provider as if there were no router. A Router is safe for
// concurrent use.
type Router struct {
	channel     delivery.Channel
	environment delivery.Sender // nil = none
	circuits    Circuits
	country     func(*user.User) string
	now         func() time.Time
	// Look, if set, reads the configured providers once more. It is called before the
	// router answers that a shop has no provider, because messages are then skipped
	// for good.
	Look func()

	current Current[*table]

	mu   sync.Mutex
	shut map[int64]time.Time // until when a provider is known not to be ready
}

// NewRouter returns a router without providers. environment may be nil. country returns
// the country of a recipient, "" = unknown.
func NewRouter(c delivery.Channel, environment delivery.Sender, circuits Circuits, country func(*user.User) string, now func() time.Time) *Router {
	r := &Router{channel: c, environment: environment, circuits: circuits, country: country, now: now, shut: map[int64]time.Time{}}
	r.current.Replace(newTable(nil))
	return r
}

// table holds the providers that were configured at one time.
type table struct {
	providers []Provider
	senders   map[int64]delivery.Sender
	size      int // the smallest chunk of its senders, 0 = none
}

func newTable(entries []Entry) *table {
	t := &table{senders: map[int64]delivery.Sender{}}
	for _, e := range entries {
		t.providers = append(t.providers, e.Provider)
		if e.Sender == nil {
			continue
		}
		t.senders[e.ID] = e.Sender
		if n := e.Sender.ChunkSize(); e.Enabled && (t.size == 0 || n < t.size) {
			t.size = n
		}
	}
	return t
}

// routed reports whether any provider is configured that messages may go to.
func (t *table) routed() bool {
	return slices.ContainsFunc(t.providers, func(p Provider) bool { return p.Enabled })
}

// Set replaces the providers, and returns a function that waits until no call uses
// the previous providers. Disabled providers in entries are used by tests only.
func (r *Router) Set(entries []Entry) (unused func()) { return r.current.Replace(newTable(entries)) }

// Routed reports whether messages of the channel are divided between providers, which
// then have circuit breakers of their own.
func (r *Router) Routed() bool {
	t, done := r.current.Use()
	defer done()
	return t.routed()
}

// Channel is part of [delivery.Sender].
func (r *Router) Channel() delivery.Channel { return r.channel }

// ChunkSize is the smallest of the senders'.
func (r *Router) ChunkSize() int {
	t, done := r.current.Use()
	defer done()
	switch {
	case r.environment == nil:
		return max(1, t.size)
	case t.size == 0:
		return r.environment.ChunkSize()
	}
	return min(t.size, r.environment.ChunkSize())
}

// Serves is part of [delivery.RoutedSender].
func (r *Router) Serves(shop int64) bool {
	if !r.serves(shop) && r.Look != nil {
		r.Look()
	}
	return r.serves(shop)
}

func (r *Router) serves(shop int64) bool {
	t, done := r.current.Use()
	defer done()
	return r.environment != nil || slices.ContainsFunc(t.providers, func(p Provider) bool { return p.Enabled && (p.Shop == 0 || p.Shop == shop) })
}

// Through returns a sender that hands messages to one provider, enabled or not; nil =
// there is no provider with that id, or it has no sender.
func (r *Router) Through(id int64) delivery.Sender {
	t, done := r.current.Use()
	defer done()
	if t.senders[id] == nil {
		return nil
	}
	return through{r, id}
}

type through struct {
	*Router
	id int64
}

// Send is part of [delivery.Sender].
func (s through) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	t, done := s.current.Use()
	defer done()
	sender := t.senders[s.id]
	if sender == nil {
		return delivery.Repeat(delivery.Result{Status: delivery.Permanent, Detail: "the provider was removed"}, len(messages))
	}
	return sender.Send(ctx, messages)
}

// Admit returns zero if a provider for messages of the shop may be ready, otherwise how
// long no provider will be. It does not ask the circuit breakers; it uses the results
// of the last calls.
func (r *Router) Admit(shop int64) (wait time.Duration) {
	t, done := r.current.Use()
	defer done()
	now, found := r.now(), false
	for _, id := range t.reach(shop, r.environment != nil) {
		until := r.waitFor(t, id, now)
		if until == 0 {
			return 0
		}
		if !found || until < wait {
			wait, found = until, true
		}
	}
	return wait
}

// reach returns the providers to which messages of the shop can go: the shop's
// providers; if none of them serves all countries, the providers of all shops; and if
// none of those does either, the environment's provider.
func (t *table) reach(shop int64, environment bool) (ids []int64) {
	levels := []int64{shop, 0}
	if shop == 0 {
		levels = levels[1:]
	}
	for _, level := range levels {
		everywhere := false
		for _, p := range t.providers {
			if p.Enabled && p.Shop == level {
				ids = append(ids, p.ID)
				everywhere = everywhere || len(p.Countries) == 0
			}
		}
		if everywhere {
			return ids
		}
	}
	if environment {
		ids = append(ids, 0)
	}
	return ids
}

// waitFor is how long the provider is known not to be ready.
func (r *Router) waitFor(t *table, id int64, now time.Time) time.Duration {
	if id != 0 && t.senders[id] == nil {
		return brokenFor
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.shut[id].Sub(now))
}

// admit asks the circuit breaker, unless it is known to be open.
func (r *Router) admit(ctx context.Context, t *table, id int64) (wait time.Duration) {
	if wait = r.waitFor(t, id, r.now()); wait > 0 {
		return wait
	}
	wait = r.circuits.Admit(ctx, r.channel, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait <= 0 {
		delete(r.shut, id)
		return 0
	}
	r.shut[id] = r.now().Add(wait)
	return wait
}

// Divide is part of [delivery.RoutedSender].
func (r *Router) Divide(s *delivery.Subject, ids []user.ID, known []user.User) [][]user.ID {
	t, done := r.current.Use()
	defer done()
	if !t.routed() {
		return [][]user.ID{ids}
	}
	now, seed, candidates := r.now(), seedOf(s), t.routes(s.Place().Shop)
	groups, order, at := map[int64][]user.ID{}, []int64(nil), 0
	for _, id := range ids {
		for at < len(known) && known[at].ID < id {
			at++
		}
		country := ""
		if at < len(known) && known[at].ID == id {
			country = r.country(&known[at])
		}
		p, _ := Choose(candidates(country), mix(seed^uint64(id)), func(id int64) bool { return r.waitFor(t, id, now) == 0 })
		if groups[p.ID] == nil {
			order = append(order, p.ID)
		}
		groups[p.ID] = append(groups[p.ID], id)
	}
	list := make([][]user.ID, len(order))
	for i, id := range order {
		list[i] = groups[id]
	}
	return list
}

// routes returns the candidates by country, each of which is looked up once.
func (t *table) routes(shop int64) func(country string) []Provider {
	known := map[string][]Provider{}
	return func(country string) []Provider {
		list, ok := known[country]
		if !ok {
			list = Candidates(t.providers, Route{Shop: shop, Country: country})
			known[country] = list
		}
		return list
	}
}
