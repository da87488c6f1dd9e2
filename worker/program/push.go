package program

import (
	"context"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/seal"
	"dropbell/domain/user"
)

// pushRoute is the sender of push, whose calls are observed.
type pushRoute struct {
	delivery.Sender
	own *push.Sender
}

// Serves is part of [delivery.RoutedSender].
func (r pushRoute) Serves(shop int64) bool { return r.own.Serves(shop) }

// Divide is part of [delivery.RoutedSender].
func (r pushRoute) Divide(s *delivery.Subject, ids []user.ID, known []user.User) [][]user.ID {
	return r.own.Divide(s, ids, known)
}

// buildPush makes the service of a provider of push. One that cannot be made delivers
// nothing: users without another device are not reached.
func (r *routes) buildPush(b *built, p provider.Provider, secrets map[string]string) *built {
	program, pacer := p.Settings["app_id"], redis.NewPacer(r.Redis)
	service, err := app.WeChatService(p, secrets, sealedTokens{redis.NewShared(r.Redis, "wechat:"+program), r.box}, func(ctx context.Context, n, perMinute int) (int, time.Duration, error) {
		return pacer.AdmitPushes(ctx, "wechat:"+program, n, perMinute)
	})
	if err != nil {
		r.unusable(p, err)
		return b
	}
	b.close, b.service = service.Close, countedService{service, r.providers, p.ID}
	b.sender = r.observed(push.New(push.Options{Answered: r.metrics.pushAnswered}, service), p.ID)
	return b
}

// throughPush returns the sender of one configured service of push, for a test of it;
// nil = there is none.
func (r *routes) throughPush(id int64) delivery.Sender {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.built[id]; b != nil && b.service != nil {
		return b.sender
	}
	return nil
}

// countedService is a service whose calls are counted for the list of providers.
type countedService struct {
	push.ConfiguredService
	calls *providerCalls
	id    int64
}

// Push is that of the service below.
func (s countedService) Push(ctx context.Context, m delivery.Message) []delivery.Result {
	if !s.Calls(m) {
		return s.ConfiguredService.Push(ctx, m)
	}
	begun := time.Now()
	answers := s.ConfiguredService.Push(ctx, m)
	s.calls.count(delivery.WebPush, s.id, time.Since(begun), answers[len(answers)-1:])
	return answers
}

// sealedTokens keeps access tokens encrypted as secrets of providers are.
type sealedTokens struct {
	*redis.Shared
	box *seal.Box
}

// Load returns what was stored last; nil if no key opens it.
func (s sealedTokens) Load(ctx context.Context) ([]byte, error) {
	sealed, err := s.Shared.Load(ctx)
	if err != nil || sealed == nil {
		return nil, err
	}
	value, err := s.box.Open(sealed)
	if err != nil { // of another key; a new one takes its place
		return nil, nil
	}
	return value, nil
}

// Store keeps the value for so long.
func (s sealedTokens) Store(ctx context.Context, value []byte, lasting time.Duration) error {
	return s.Shared.Store(ctx, s.box.Seal(value), lasting)
}
