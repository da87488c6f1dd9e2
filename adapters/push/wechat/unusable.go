package wechat

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// unusableFor is how long messages wait for a service that cannot be made. Each wait is
// recorded for each message.
const unusableFor = 30 * time.Second

// Unusable stands for the service of a mini program that cannot be made, for example
// because no key opens the AppSecret: the messages that it would send wait until staff have
// corrected the provider.
type Unusable struct {
	// AppID is that of the mini program.
	AppID string
}

// Name returns "wechat".
func (Unusable) Name() string { return "wechat" }

// Close has nothing to end.
func (Unusable) Close() error { return nil }

// Calls reports false: nothing is called.
func (Unusable) Calls(delivery.Message) bool { return false }

// Turn returns zero.
func (Unusable) Turn(context.Context) time.Duration { return 0 }

// Push answers as [Service.Push] does, but for messages that would be sent, which wait.
func (u Unusable) Push(_ context.Context, m delivery.Message) []delivery.Result {
	switch {
	case !slices.ContainsFunc(m.To.Devices, inApp(u.AppID)):
		return nil
	case !permitted(m):
		return []delivery.Result{noConsent()}
	}
	return []delivery.Result{{Status: delivery.Throttled, Unsent: true, Held: true, After: unusableFor,
		Detail: "not sent to WeChat: the provider cannot be used; check its settings and PROVIDERS_KEY"}}
}
