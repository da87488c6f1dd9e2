// Package push delivers messages of the push channel to a user's browsers and phones, by the
// services that are configured for them.
package push

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// chunkSize is small because every message is a call of its own, or several.
const chunkSize = 20

// A Service reaches one kind of devices. Implementations are safe for concurrent use.
type Service interface {
	// Name is the service's name in metrics.
	Name() string
	// Push sends the message to each of the user's devices of this kind, and
	// returns an answer for each device: none if the user has no such device.
	Push(ctx context.Context, m delivery.Message) []delivery.Result
	// Close ends idle connections.
	Close() error
}

// An AppService is a [Service] that reaches the devices of one app.
type AppService interface {
	Service
	App() provider.App
}

// A Sender pushes to all of a user's devices, by the services of the environment and by the
// services that staff have configured, see [Sender.Set]. It is safe for concurrent use.
type Sender struct {
	services []Service
	options  Options
	circuits provider.Circuits // of configured services; nil = none
	look     func()            // reads what is configured once more; may be nil

	configured provider.Current[table]

	looking sync.Mutex // held while look is called
	looked  time.Time  // when [Sender.lookAgain] has done so last

	mu      sync.Mutex
	unready map[int64]unready // by the provider's id
}

// Options are the limits and the observer of a [Sender].
type Options struct {
	// Parallel is how many messages of one [Sender.Send] are under way at once; 0 = all.
	Parallel int
	// Answered is called with a service's name and its answer about each device,
	// possibly concurrently. May be nil.
	Answered func(service string, answer delivery.Result)
}

// New returns a sender by way of the services of the environment.
func New(o Options, services ...Service) *Sender {
	if o.Parallel <= 0 {
		o.Parallel = chunkSize
	}
	s := &Sender{services: services, options: o, unready: map[int64]unready{}}
	s.Set(nil)
	return s
}

// Channel returns [delivery.WebPush], the name that the channel has in the API.
func (s *Sender) Channel() delivery.Channel { return delivery.WebPush }

// ChunkSize returns the most messages of one Send.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close ends idle connections.
func (s *Sender) Close() error {
	var all []error
	for _, service := range s.services {
		all = append(all, service.Close())
	}
	return errors.Join(all...)
}

// Send pushes every message to all devices of its user. Each message counts among the messages
// under way until it is recorded in its [delivery.Journal]. A message is Delivered if any
// service accepts it for any device, and Permanent if none of the devices can ever be reached;
// see [delivery.Best].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	return sender.Each(ctx, messages, s.options.Parallel, s.one)
}

func (s *Sender) one(ctx context.Context, m delivery.Message) delivery.Result {
	if !m.To.Pushable() {
		return delivery.Result{Status: delivery.Permanent, Detail: "no browser or phone is registered"}
	}
	answer, reached := s.push(ctx, m)
	if !reached && answer.Skip && s.look != nil {
		s.lookAgain()
		answer, _ = s.push(ctx, m)
	}
	return answer
}

// push pushes the message to the user's devices. reached is false if no service reaches any
// device.
func (s *Sender) push(ctx context.Context, m delivery.Message) (answer delivery.Result, reached bool) {
	t, done := s.configured.Use()
	defer done()
	rest, phones := t.divide(m.To, m.Subject.Place().Shop)
	var environment []delivery.Result
	for _, service := range s.services {
		environment = append(environment, s.answered(service, service.Push(ctx, addressedTo(m, rest)))...)
	}
	configured, behind := s.byConfigured(ctx, t, phones, m)
	environment = append(environment, behind...)
	if len(environment)+len(configured) == 0 {
		return noService(m.To), false
	}
	return ofPerson(environment, configured), true
}

// ofPerson returns the answer about the user: the best answer of all services about all devices.
// If the message is to be tried again, each device is tried again at its own time: a pause of a
// configured service does not delay a device of the environment's services, and a push that was
// put off does not hide the answer of a service that was asked.
func ofPerson(environment, configured []delivery.Result) delivery.Result {
	all := slices.Concat(environment, configured)
	best := delivery.Best(all...)
	ofEnvironment, _ := delivery.Handed(environment)
	if pending(best) {
		given, _ := delivery.Handed(all)
		for _, some := range [][]delivery.Result{ofEnvironment, given, environment} {
			if one := delivery.Best(some...); len(some) > 0 && pending(one) {
				best = one
				break
			}
		}
	}
	if (best.Judged || best.Held) && len(ofEnvironment) > 0 {
		asked := delivery.Best(ofEnvironment...)
		best.Beside = &asked
	}
	for _, a := range all {
		best.ConsentUsed = best.ConsentUsed || a.ConsentUsed
	}
	return best
}

// noService is the answer for a user without a device that any service reaches. The message is
// skipped if all devices name apps, because a provider may have had these apps before.
func noService(u *user.User) delivery.Result {
	skipped := delivery.Result{Status: delivery.Permanent, Skip: true, Unsent: true, Held: true}
	switch {
	case len(u.Push) > 0 || slices.ContainsFunc(u.Devices, func(d user.Device) bool { return d.App == "" }):
		return delivery.Result{Status: delivery.Permanent, Detail: "no push service is configured for the devices of this recipient"}
	case slices.ContainsFunc(u.Devices, named):
		skipped.Reason, skipped.Detail = delivery.ReasonNoApp, "not sent: no provider delivers to the app with which the recipient's phone has registered"
	default:
		skipped.Reason, skipped.Detail = delivery.ReasonNoConsent, "not sent: no provider of the shop sends to the mini program in which the recipient has an account"
	}
	return skipped
}

// answered passes the answers about a user's devices to [Options.Answered].
func (s *Sender) answered(service Service, devices []delivery.Result) []delivery.Result {
	if s.options.Answered != nil {
		for _, answer := range devices {
			s.options.Answered(service.Name(), answer)
		}
	}
	return devices
}
