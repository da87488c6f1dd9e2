package push

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// A ConfiguredService is a [Service] that staff can configure. For a phone, each Push gets a
// message with this one device.
type ConfiguredService interface {
	AppService
	// Calls reports whether Push would call the service for the message.
	Calls(m delivery.Message) bool
	// Turn waits, a second at most, until the service's own quota permits the call of one Push,
	// and then returns zero. Otherwise it returns the delay until the next attempt.
	Turn(ctx context.Context) time.Duration
}

// Configured is a service as staff have configured it.
type Configured struct {
	Provider int64 // its id
	Shop     int64 // whose messages it delivers; 0 = all shops'
	Order    int   // the lowest is asked first
	Service  ConfiguredService
}

// Configurable sets the circuit breakers of the configured services, and look, which reads the
// configuration again. look is called before the sender answers that a shop has no service. It
// is also called, at most once a second, before the sender answers that no service reaches any
// device of a user. Messages are skipped for good after these answers. Call Configurable before
// the first Send.
func (s *Sender) Configurable(circuits provider.Circuits, look func()) {
	s.circuits, s.look = circuits, look
}

// Set replaces the configured services. unused waits until no call uses the replaced services
// any more.
func (s *Sender) Set(list []Configured) (unused func()) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Configured) int {
		return cmp.Or(cmp.Compare(a.Shop, b.Shop), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Provider, b.Provider))
	})
	return s.configured.Replace(newTable(list, s.services))
}

// Serves is part of [delivery.RoutedSender].
func (s *Sender) Serves(shop int64) bool {
	if !s.serves(shop) && s.look != nil {
		s.look()
	}
	return s.serves(shop)
}

// lookEvery is the shortest time between two readings of the configuration for devices that no
// service reaches. Without the limit each such message would cause a reading.
const lookEvery = time.Second

// lookAgain reads the configuration again, unless it was read less than [lookEvery] ago.
func (s *Sender) lookAgain() {
	s.looking.Lock()
	defer s.looking.Unlock()
	if time.Since(s.looked) < lookEvery {
		return
	}
	s.look()
	s.looked = time.Now()
}

func (s *Sender) serves(shop int64) bool {
	c, done := s.configured.Use()
	defer done()
	return len(s.services) > 0 || c.serves(shop)
}

// Divide is part of [delivery.RoutedSender]: each message is a call of its own.
func (s *Sender) Divide(_ *delivery.Subject, ids []user.ID, _ []user.User) [][]user.ID {
	return [][]user.ID{ids}
}

// byConfigured pushes by the configured services: to the phones, and to the user's accounts in
// mini programs of the message's shop. all are the answers of the configured services. They are
// Judged, and failures are Apart, because a failure of one provider says nothing about other
// providers of the channel. behind are the answers of the environment's services about phones
// that no configured service has reached.
func (s *Sender) byConfigured(ctx context.Context, t table, phones []phone, m delivery.Message) (all, behind []delivery.Result) {
	for _, p := range phones {
		configured, environment := s.toPhone(ctx, p, m)
		all, behind = append(all, configured...), append(behind, environment...)
	}
	return append(all, s.byPrograms(ctx, t.programs(m.Subject.Place().Shop), m)...), behind
}

// toPhone pushes to one phone. The services of the phone all reach the same app and are asked in
// order; the last may be the environment's. Once a service has taken the message, or may have
// taken it, toPhone asks no further service.
func (s *Sender) toPhone(ctx context.Context, p phone, m delivery.Message) (configured, environment []delivery.Result) {
	m = addressedTo(m, withDevices(m.To, []user.Device{p.device}))
	for _, one := range p.ways {
		if one.environment != nil {
			return configured, s.answered(one.environment, one.environment.Push(ctx, m))
		}
		answers := s.through(ctx, one.configured, m)
		configured = append(configured, answers...)
		if !slices.ContainsFunc(answers, untaken) || slices.ContainsFunc(answers, quotaUsedUp) {
			break
		}
	}
	return configured, nil
}

// byPrograms pushes by mini programs. A consent permits one message. Once a service has taken
// the message, or may have taken it, the next services get the message without the consent.
func (s *Sender) byPrograms(ctx context.Context, services []Configured, m delivery.Message) (all []delivery.Result) {
	for _, one := range services {
		answers := s.through(ctx, one, m)
		m.Consented = m.Consented && !slices.ContainsFunc(answers, func(r delivery.Result) bool { return !untaken(r) })
		all = append(all, answers...)
	}
	return KeepConsent(all)
}

// quotaUsedUp reports whether the message waits for a quota. The quota belongs to the app, so
// the next services of the same app have used it up, too.
func quotaUsedUp(r delivery.Result) bool { return r.Held && r.Detail == usedUp }

// untaken reports whether the service that answered has certainly not taken the message.
func untaken(r delivery.Result) bool {
	return r.Status == delivery.Permanent || r.Unsent && r.Status != delivery.Delivered
}

// through pushes by one configured service.
func (s *Sender) through(ctx context.Context, one Configured, m delivery.Message) []delivery.Result {
	answers := s.byOne(ctx, one, m)
	for i := range answers {
		answers[i].Via, answers[i].Judged, answers[i].Apart = one.Provider, true, pending(answers[i])
	}
	return s.answered(one.Service, answers)
}

// KeepConsent clears ConsentUsed of the undelivered answers while another answer is pending.
// That one account has no consent says nothing about the account that is to be tried again.
func KeepConsent(answers []delivery.Result) []delivery.Result {
	if slices.ContainsFunc(answers, pending) {
		for i := range answers {
			answers[i].ConsentUsed = answers[i].ConsentUsed && answers[i].Status == delivery.Delivered
		}
	}
	return answers
}

// pending reports whether the message is to be tried again by the service that answered.
func pending(r delivery.Result) bool {
	return r.Status == delivery.Transient || r.Status == delivery.Throttled
}

// longestWait is how long a message waits for a provider whose circuit is open, at most.
const longestWait = 30 * time.Second

// unready is a provider whose circuit breaker has said to wait.
type unready struct {
	since time.Time // no call went well since
	until time.Time // the breaker is not asked before
}

// waiting returns how long a message waits for the provider without a question to its circuit
// breaker; zero = ask the circuit breaker.
func (s *Sender) waiting(id int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, now := s.unready[id], time.Now()
	if left := u.until.Sub(now); left > 0 {
		return max(left, min(now.Sub(u.since), longestWait))
	}
	return 0
}

// admit asks the provider's circuit breaker and returns how long the message waits; zero =
// admitted. A message waits at least as long as the provider has been unavailable, up to
// [longestWait], because each wait is recorded for each message.
func (s *Sender) admit(ctx context.Context, id int64) time.Duration {
	wait := s.circuits.Admit(ctx, delivery.WebPush, id)
	if wait <= 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, now := s.unready[id], time.Now()
	if now.Sub(u.until) > 2*longestWait { // no message has come since
		u.since = now
	}
	u.until = now.Add(wait)
	s.unready[id] = u
	return max(wait, min(now.Sub(u.since), longestWait))
}

// ready forgets that the provider was unavailable.
func (s *Sender) ready(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unready, id)
}

// usedUp is the detail of a message that waits for the quota of its app's project.
const usedUp = "not sent: the messages per minute of the provider are used up for the moment"

// notSent is the answer to a message that waits for the provider.
func notSent(wait time.Duration, detail string) []delivery.Result {
	return []delivery.Result{{Status: delivery.Throttled, After: wait, Unsent: true, Held: true, Detail: detail}}
}

// byOne waits for the service's quota first and asks its circuit breaker second: a probe of the
// circuit breaker must not wait for the quota.
func (s *Sender) byOne(ctx context.Context, one Configured, m delivery.Message) []delivery.Result {
	if !one.Service.Calls(m) {
		return one.Service.Push(ctx, m)
	}
	const detail = "not sent: the provider is not ready"
	if wait := s.waiting(one.Provider); wait > 0 {
		return notSent(wait, detail)
	}
	if wait := one.Service.Turn(ctx); wait > 0 {
		return notSent(wait, usedUp)
	}
	circuits := s.circuits
	if circuits == nil {
		return one.Service.Push(ctx, m)
	}
	if wait := s.admit(ctx, one.Provider); wait > 0 {
		return notSent(wait, detail)
	}
	tell, told := context.WithoutCancel(ctx), false
	defer func() {
		if !told { // it panicked
			circuits.Unused(tell, delivery.WebPush, one.Provider)
		}
	}()
	answers := one.Service.Push(ctx, m)
	told = true
	given, _ := delivery.Handed(answers)
	if ctx.Err() != nil || len(given) == 0 {
		circuits.Unused(tell, delivery.WebPush, one.Provider)
		return answers
	}
	call := delivery.CallOf(given)
	if end, ok := ctx.Deadline(); ok {
		// A pause that outlasts the messages that wait for it is of no use.
		call.After = min(call.After, max(0, time.Until(end)/2))
	}
	if call.OK && !call.Throttled {
		s.ready(one.Provider)
	}
	circuits.Report(tell, delivery.WebPush, one.Provider, call)
	return answers
}
