package program

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/push"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/seal"
	"dropbell/domain/user"
)

// routesEvery is how often a worker looks whether staff have changed a provider.
const routesEvery = time.Second

// routes keep the routers of the channels as staff have configured them.
type routes struct {
	*program
	store   deliverydb.Configured
	box     *seal.Box
	stores  senderStores
	routers map[delivery.Channel]*provider.Router
	push    *push.Sender // delivers by all configured services side by side
	// environment are the channels that the environment has a provider for.
	environment delivery.ChannelSet
	named       atomic.Pointer[delivery.ChannelSet] // the channels of which a provider fills in texts that greet by name

	mu    sync.Mutex
	state int64 // of the store when it was last read; -1 = never
	built map[int64]*built
}

// built is the sender of one version of a provider.
type built struct {
	version int64
	sender  delivery.Sender        // nil = it could not be made
	service push.ConfiguredService // of push; of one that could not be made, what lets its messages wait
	close   func() error
	named   bool
}

// newRoutes puts a router in front of each channel's sender that staff can configure
// providers for. Nothing is read yet.
// pushes is the sender of push as the environment has it; nil = it configures none.
func (p *program) newRoutes(senders map[delivery.Channel]delivery.Sender, pushes *push.Sender, stores senderStores, of *breakers) (*routes, error) {
	box, err := seal.New(provider.SealPurpose, p.Config.ProvidersKeys...)
	if err != nil {
		return nil, err
	}
	r := &routes{program: p, store: p.Stores.Providers, box: box, stores: stores, routers: map[delivery.Channel]*provider.Router{},
		state: -1, built: map[int64]*built{}}
	for _, c := range provider.Channels() {
		if senders[c] != nil {
			r.environment |= delivery.ChannelSetOf(c)
		}
		if c == delivery.WebPush {
			continue
		}
		r.routers[c] = provider.NewRouter(c, senders[c], of, countryOf(c), app.Clock)
		r.routers[c].Look = r.look
		senders[c] = r.routers[c]
	}
	if r.push = pushes; pushes == nil {
		r.push = push.New(push.Options{Answered: p.metrics.pushAnswered})
	}
	r.push.Configurable(of, r.look)
	senders[delivery.WebPush] = pushRoute{p.observed(r.push, 0), r.push}
	p.OnClose(r.close)
	return r, nil
}

// countryOf returns the country of a recipient, which only a phone number tells.
func countryOf(c delivery.Channel) func(*user.User) string {
	return func(u *user.User) string {
		if c != delivery.SMS {
			return ""
		}
		return sms.CountryOf(u.Phone)
	}
}

// refresh takes over what staff have changed since the last time.
func (r *routes) refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, err := r.store.State(ctx)
	if err != nil || state == r.state {
		return err
	}
	list, err := r.store.All(ctx)
	if err != nil {
		return err
	}
	var old []*built
	entries := map[delivery.Channel][]provider.Entry{}
	var services []push.Configured
	kept := map[int64]*built{}
	var named delivery.ChannelSet
	for _, p := range list {
		b := r.built[p.ID]
		if b == nil || b.version != p.Version {
			b = r.build(p)
		}
		kept[p.ID] = b
		if p.Enabled && b.named {
			named |= delivery.ChannelSetOf(p.Channel)
		}
		entries[p.Channel] = append(entries[p.Channel], provider.Entry{Provider: p, Sender: b.sender})
		if b.service != nil && p.Enabled {
			services = append(services, push.Configured{Provider: p.ID, Shop: p.Shop, Order: p.Order, Service: b.service})
		}
	}
	for id, b := range r.built {
		if kept[id] != b {
			old = append(old, b)
		}
	}
	r.named.Store(&named)
	r.built, r.state = kept, state
	waits := []func(){r.push.Set(services)}
	for c, router := range r.routers {
		waits = append(waits, router.Set(entries[c]))
	}
	go func() { // a call in flight may take minutes
		for _, wait := range waits {
			wait()
		}
		for _, b := range old {
			_ = b.close()
		}
	}()
	return nil
}

// look is [routes.refresh] for a router that knows no provider.
func (r *routes) look() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.refresh(ctx); err != nil {
		r.Log.Warn("the providers cannot be read; going on with those that are known", "error", err)
	}
}

// build makes the sender of a provider. That it cannot be made is told once: the
// provider's messages go to others, or wait.
func (r *routes) build(p provider.Provider) *built {
	b := &built{version: p.Version, close: func() error { return nil }}
	if p.Channel == delivery.WebPush {
		return r.buildPush(b, p)
	}
	secrets, err := p.Open(r.box)
	var sender app.ClosingSender
	var texts sms.Templates
	if err == nil {
		sender, texts, err = app.ProviderSender(r.Config, p, secrets, r.stores.serials, r.stores.mails)
	}
	if err != nil {
		r.unusable(p, err)
		return b
	}
	b.close, b.named, b.sender = sender.Close, texts.Named(), sender
	if p.Channel == delivery.SMS {
		b.sender = r.stores.guard(r.Config, sender)
	}
	b.sender = r.observed(b.sender, p.ID)
	return b
}

func (r *routes) unusable(p provider.Provider, err error) {
	r.Log.Error("a provider cannot be used; its messages go to others, or wait", "provider", p.ID, "name", p.Name, "channel", p.Channel.String(), "error", err)
}

// await reads the providers for the first time: until then nothing may be sent.
func (r *routes) await(ctx context.Context) bool {
	for {
		err := r.refresh(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.Log.Warn("the providers cannot be read; trying again", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return false
		}
	}
}

// names reports whether any provider of the channel fills in texts that greet by name.
func (r *routes) names(c delivery.Channel) bool {
	configured := r.named.Load()
	return configured != nil && configured.Has(c) || c == delivery.SMS && greetsByName(r.Config)
}

// through returns the sender of one provider, for a test of it; nil = there is none.
func (r *routes) through(c delivery.Channel, id int64) delivery.Sender {
	if c == delivery.WebPush {
		return r.throughPush(id)
	}
	if r.routers[c] == nil {
		return nil
	}
	return r.routers[c].Through(id)
}

// close ends the connections of all providers.
func (r *routes) close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.built {
		err = errors.Join(err, b.close())
	}
	r.built = map[int64]*built{}
	return err
}
