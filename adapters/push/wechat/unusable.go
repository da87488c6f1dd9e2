package wechat

import (
	"context"
	"slices"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// Unusable is [push.Unusable] of a mini program.
type Unusable struct{ push.Unusable }

// NewUnusable stands for the service of the mini program.
func NewUnusable(appID string) Unusable {
	return Unusable{push.Unusable{Kind: "wechat", OfApp: provider.App{Platform: user.WeChat, Name: appID}}}
}

// Push answers as [Service.Push] does, but for messages that would be sent, which wait.
func (u Unusable) Push(_ context.Context, m delivery.Message) []delivery.Result {
	switch {
	case !slices.ContainsFunc(m.To.Devices, func(d user.Device) bool { return push.Reaches(u.OfApp, d) }):
		return nil
	case !permitted(m):
		return []delivery.Result{noConsent()}
	}
	return []delivery.Result{{Status: delivery.Throttled, Unsent: true, Held: true, After: push.UnusableFor,
		Detail: "not sent to WeChat: the provider cannot be used; check its settings and PROVIDERS_KEY"}}
}
