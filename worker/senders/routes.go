package senders

import (
	"context"
	"errors"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/user"
)

// built is the sender of one version of a provider.
type built struct {
	version int64
	sender  delivery.Sender        // nil = it could not be made
	service push.ConfiguredService // push only; if the sender could not be made, a service that lets its messages wait
	close   func() error
	named   bool
}

// route puts a router in front of the sender of each channel for which staff can configure
// providers. It reads no provider yet. pushes is the push sender of the environment; nil = the
// environment configures none.
func (r *Senders) route(pushes *push.Sender) (err error) {
	if r.box, err = seal.New(provider.SealPurpose, r.Config.ProvidersKeys...); err != nil {
		return err
	}
	r.store, r.Routers, r.state, r.built = r.Stores.Providers, map[delivery.Channel]*provider.Router{}, -1, map[int64]*built{}
	for _, c := range provider.Channels() {
		if r.ByChannel[c] != nil {
			r.Environment |= delivery.ChannelSetOf(c)
		}
		if c == delivery.WebPush {
			continue
		}
		r.Routers[c] = provider.NewRouter(c, r.ByChannel[c], r.Breakers, countryOf(c), app.Clock)
		r.Routers[c].Look = r.look
		r.ByChannel[c] = r.Routers[c]
	}
	if r.push = pushes; pushes == nil {
		r.push = push.New(push.Options{Answered: r.metrics.pushAnswered})
	}
	r.push.Configurable(r.Breakers, r.look)
	r.ByChannel[delivery.WebPush] = pushRoute{r.observed(r.push, 0), r.push}
	r.OnClose(r.close)
	return nil
}

// countryOf returns a function for the country of a recipient; only a phone number tells the
// country.
func countryOf(c delivery.Channel) func(*user.User) string {
	return func(u *user.User) string {
		if c != delivery.SMS {
			return ""
		}
		return sms.CountryOf(u.Phone)
	}
}

// Refresh takes over what staff have changed since the last time.
func (r *Senders) Refresh(ctx context.Context) error {
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
	for c, router := range r.Routers {
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

// look is [Senders.Refresh] for a router that knows no provider.
func (r *Senders) look() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.Refresh(ctx); err != nil {
		r.Log.Warn("the providers cannot be read; going on with those that are known", "error", err)
	}
}

// build makes the sender of a provider. If the sender cannot be made, build logs this once per
// version of the provider; the provider's messages go to other providers, or wait.
func (r *Senders) build(p provider.Provider) *built {
	b := &built{version: p.Version, close: func() error { return nil }}
	if p.Channel == delivery.WebPush {
		return r.buildPush(b, p)
	}
	secrets, err := p.Open(r.box)
	var sender app.ClosingSender
	var texts sms.Templates
	if err == nil {
		sender, texts, err = app.ProviderSender(r.Config, p, secrets, r.guards.serials, r.guards.mails)
	}
	if err != nil {
		r.unusable(p, err)
		return b
	}
	b.close, b.named, b.sender = sender.Close, texts.Named(), sender
	if p.Channel == delivery.SMS {
		b.sender = r.guards.guard(r.Config, sender)
	}
	b.sender = r.observed(b.sender, p.ID)
	return b
}

func (r *Senders) unusable(p provider.Provider, err error) {
	r.Log.Error("a provider cannot be used; its messages go to others, or wait", "provider", p.ID, "name", p.Name, "channel", p.Channel.String(), "error", err)
}

// Await reads the providers for the first time: until then nothing may be sent.
func (r *Senders) Await(ctx context.Context) bool {
	for {
		err := r.Refresh(ctx)
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

// Named reports whether any provider of the channel fills in texts that greet by name.
func (r *Senders) Named(c delivery.Channel) bool {
	configured := r.named.Load()
	return configured != nil && configured.Has(c) || c == delivery.SMS && greetsByName(r.Config)
}

// Through returns the sender of one provider, for a test of it; nil = there is none.
func (r *Senders) Through(c delivery.Channel, id int64) delivery.Sender {
	if c == delivery.WebPush {
		return r.throughPush(id)
	}
	if r.Routers[c] == nil {
		return nil
	}
	return r.Routers[c].Through(id)
}

// close ends the connections of all providers.
func (r *Senders) close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.built {
		err = errors.Join(err, b.close())
	}
	r.built = map[int64]*built{}
	return err
}
