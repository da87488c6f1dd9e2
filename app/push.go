package app

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"dropbell/adapters/config"
	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/push/wechat"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// maxPerMinute is the largest number of messages per minute that a provider's settings may have.
const maxPerMinute = 10_000_000

// PushShared holds the parts that push services share with other processes, and a callback. The
// zero value is for a process that shares nothing.
type PushShared struct {
	// Tokens keeps the access token of a mini program.
	Tokens wechat.Shared
	// Admit shares the messages per minute.
	Admit push.Admit
	// PhoneGone is called for every phone that the app was removed from.
	PhoneGone func(ctx context.Context, id user.ID, gone user.Device)
}

// PushService builds the service of a push provider. The error is a [fault.Fields] without
// secrets.
func PushService(cfg config.Config, p provider.Provider, secrets map[string]string, shared PushShared) (push.ConfiguredService, error) {
	perMinute, err := PerMinute(p)
	if err != nil {
		return nil, refused("per_minute", err)
	}
	in := p.Settings
	o := sender.Options{Control: staffControl(cfg), Now: Clock}
	var s push.ConfiguredService
	switch public := publicAddress(p); {
	case in["url"] != "" && !webAddress(in["url"]):
		return nil, refused("url", errors.New("use an address such as "+public))
	case p.Kind == provider.APNS:
		s, err = apns.New(apns.Config{Options: o, Key: []byte(secrets["key"]), KeyID: in["key_id"], TeamID: in["team_id"], Topic: in["topic"],
			URL: cmp.Or(in["url"], public), Configured: true, OnGone: shared.PhoneGone})
	case p.Kind == provider.FCM:
		s, err = fcm.New(fcm.Config{Options: o, Account: []byte(secrets["account"]), URL: in["url"], PerMinute: perMinute, Admit: shared.Admit,
			Configured: true, OnGone: shared.PhoneGone})
	default:
		s, err = wechat.New(wechat.Config{Options: o, AppID: in["app_id"], Secret: secrets["app_secret"], Template: in["template"], Data: in["data"], Page: in["page"],
			Version: in["version"], URL: in["url"], PerMinute: perMinute, Admit: shared.Admit, Shared: shared.Tokens})
	}
	if mistake, ok := errors.AsType[*push.Mistake](err); ok {
		return nil, refused(mistake.Field, mistake)
	}
	return s, err
}

// publicAddress is where the provider's service is if its settings do not say so.
func publicAddress(p provider.Provider) string {
	switch {
	case p.Kind == provider.FCM:
		return fcm.DefaultURL
	case p.Kind == provider.WeChat:
		return wechat.DefaultURL
	case p.Settings["builds"] == provider.Sandbox:
		return apns.SandboxURL
	}
	return apns.DefaultURL
}

// PerMinute returns how many messages per minute the provider takes, by its settings. If the
// setting is empty, PerMinute returns Google's default quota for FCM, and 0 = no limit for other
// providers.
func PerMinute(p provider.Provider) (int, error) {
	typed := p.Settings["per_minute"]
	if typed == "" {
		if p.Kind == provider.FCM {
			return fcm.DefaultPerMinute, nil
		}
		return 0, nil
	}
	n, err := strconv.Atoi(typed)
	if err != nil || n < 1 || n > maxPerMinute {
		return 0, errors.New("use a number from 1 to 10000000")
	}
	return n, nil
}

// UnusablePush returns the replacement for the service of a push provider that cannot be built.
// Its messages wait.
func UnusablePush(p provider.Provider) push.ConfiguredService {
	if p.Kind == provider.WeChat {
		return wechat.NewUnusable(p.Settings["app_id"])
	}
	return push.Unusable{Kind: string(p.Kind), OfApp: p.App()}
}
