package senders

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/push"
	"dropbell/adapters/push/wechat"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
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

// buildPush makes the service of a push provider. If the service cannot be made, the provider's
// messages wait and no other provider takes them.
func (r *Senders) buildPush(b *built, p provider.Provider) *built {
	secrets, err := p.Open(r.box)
	var service push.ConfiguredService
	if err == nil {
		service, err = app.PushService(r.Config, p, secrets, app.PushShared{PhoneGone: r.phoneGone, Admit: r.admitPushes(p),
			Tokens: newSealedTokens(r.Redis, tokenName(p, secrets), r.box)})
	}
	if err != nil {
		r.unusable(p, err)
		b.service = app.UnusablePush(p)
		return b
	}
	greets, ok := service.(interface{ Named() bool })
	b.named = ok && greets.Named()
	b.close, b.service = service.Close, countedService{service, r.calls, p.ID}
	b.sender = r.observed(push.New(push.Options{Answered: r.metrics.pushAnswered}, service), p.ID)
	return b
}

// admitPushes shares the provider's messages per minute among all workers and among the
// providers of the same app. A provider of the environment's Firebase project shares the quota
// of the environment's service.
func (r *Senders) admitPushes(p provider.Provider) push.Admit {
	name := string(p.Kind) + ":" + p.App().Name
	if p.Kind == provider.FCM && p.App().Name == r.Config.FCMProject() {
		name = environmentFCM
	}
	return func(ctx context.Context, n, perMinute int) (int, time.Duration) {
		return r.pacer.AdmitPushes(ctx, name, n, perMinute)
	}
}

// tokenName names the access token that the processes share. Providers of one mini program share
// a token only if they have the same server and the same AppSecret; the hash in the name proves
// both.
func tokenName(p provider.Provider, secrets map[string]string) string {
	address := strings.TrimRight(cmp.Or(p.Settings["url"], wechat.DefaultURL), "/")
	sum := sha256.Sum256([]byte(address + "\n" + secrets["app_secret"]))
	return "wechat:" + p.Settings["app_id"] + ":" + hex.EncodeToString(sum[:8])
}

// throughPush returns the sender of one configured push service, to test this service. It is nil
// if no such service exists.
func (r *Senders) throughPush(id int64) delivery.Sender {
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
	calls *calls
	id    int64
}

// Push calls Push of the embedded service and counts the call.
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
	name string
	box  *seal.Box
}

func newSealedTokens(client goredis.UniversalClient, name string, box *seal.Box) sealedTokens {
	return sealedTokens{redis.NewShared(client, name), name, box}
}

// Load returns what was stored last; nil if no key opens it.
func (s sealedTokens) Load(ctx context.Context) ([]byte, error) {
	sealed, err := s.Shared.Load(ctx)
	if err != nil || sealed == nil {
		return nil, err
	}
	value, err := s.box.Open(s.name, sealed)
	if err != nil { // of another key; a new one takes its place
		return nil, nil
	}
	return value, nil
}

// Store keeps the value for so long.
func (s sealedTokens) Store(ctx context.Context, value []byte, lasting time.Duration) error {
	return s.Shared.Store(ctx, s.box.Seal(s.name, value), lasting)
}
