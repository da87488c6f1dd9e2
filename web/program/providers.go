package program

import (
	"context"
	"strings"
	"time"

	"dropbell/adapters/linkcheck"
	"dropbell/adapters/redis"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	consoledelivery "dropbell/web/console/delivery"
)

// newProviders makes the use case for providers, and the box that encrypts addresses of chat
// groups.
func (p *program) newProviders() (*provider.Service, error) {
	box, err := seal.New(provider.SealPurpose, p.Config.ProvidersKeys...)
	if err == nil {
		p.addresses, err = seal.New(alert.SealPurpose, p.Config.ProvidersKeys...)
	}
	if err != nil {
		return nil, err
	}
	return &provider.Service{Store: p.Stores.Providers, Box: box, Keyed: len(p.Config.ProvidersKeys) > 0, IsCountry: sms.IsCountry,
		Check: func(one provider.Provider, secrets map[string]string) error {
			s, _, err := app.ProviderSender(p.Config, one, secrets, p.Stores.Serials, nil)
			if err != nil {
				return err
			}
			return s.Close()
		}}, nil
}

// consoleProviders are the provider settings that the console shows.
func (p *program) consoleProviders() consoledelivery.Providers {
	breaker := redis.NewBreaker(p.Shared, redis.BreakerConfig{})
	return consoledelivery.Providers{Service: p.providers,
		Trials: &testmessage.Trials{Store: p.Stores.ChannelTests, Providers: p.providers, Now: app.Clock, Texts: p.surroundings.Texts,
			Sender: func(one provider.Provider, secrets map[string]string) (testmessage.TrialSender, error) {
				s, _, err := app.ProviderSender(p.Config, one, secrets, p.Stores.Serials, nil)
				return s, err
			}},
		Circuits: func(ctx context.Context, list []provider.Provider) (map[int64]delivery.Circuit, error) {
			all := map[int64]delivery.Circuit{}
			for _, one := range list {
				s, err := breaker.Of(one.ID).State(ctx, one.Channel)
				if err != nil {
					return nil, err
				}
				c := delivery.Circuit{State: s.State, Failures: s.Failures, Until: s.Until, Detail: s.Detail}
				if s.HeldUntil.After(app.Clock()) {
					c.HeldUntil = s.HeldUntil
				}
				all[one.ID] = c
			}
			return all, nil
		},
		ReportsURL: func(one provider.Provider) string {
			if one.ReportsAt() == "" {
				return ""
			}
			return app.ProviderCallback(p.Config.PublicURL, one)
		}}
}

// channelsEvery is how often a process checks for changed providers, so that all processes agree
// within about a second.
const channelsEvery = time.Second

// provided returns the channels that have an enabled provider for all shops at the start of the
// program.
func (p *program) provided() delivery.ChannelSet {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	set, err := p.Provided(ctx)
	if err != nil { // such as before the first migration
		p.Log.Warn("the providers cannot be read yet; only channels that the environment configures can be reserved", "error", err)
	}
	return set
}

// linkCaller returns what calls the links of messages in flight checks.
func (p *program) linkCaller() *linkcheck.Caller {
	c := linkcheck.New(p.Config.EventsInsecure)
	p.OnClose(c.Close)
	return c
}

// watchProviders updates the channels that can be reserved: the channels configured by the
// environment, and the channels with an enabled provider for all shops. While the database does not
// answer, the channels stay unchanged.
func (p *program) watchProviders(ctx context.Context, again <-chan time.Time) {
	store, last := p.Stores.Providers, int64(-1)
	for {
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
		state, err := store.State(ctx)
		if err != nil || state == last {
			continue
		}
		set, err := p.Provided(ctx)
		if err != nil {
			continue
		}
		last = state // a change in between has a greater number
		if set |= app.Configured(p.Config); p.channels.Replace(set) {
			p.Log.Info("the channels that can be reserved have changed", "channels", strings.Join(template.ChannelNames(set), ", "))
		}
	}
}
