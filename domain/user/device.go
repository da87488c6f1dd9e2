package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// A Platform is the operating system of a phone, or the app in which a mini program
// runs. It decides which service delivers messages there.
type Platform string

// The platforms.
const (
	IOS     Platform = "ios"     // Apple Push Notification service
	Android Platform = "android" // Firebase Cloud Messaging
	WeChat  Platform = "wechat"  // one-time subscription messages of mini programs
)

// OneTime reports whether the platform delivers a message only if the user has
// consented to this one message.
func (p Platform) OneTime() bool { return p == WeChat }

// Limits of what is stored about a phone.
const (
	MaxDevices    = 20
	MaxToken      = 4096 // bytes
	MaxAppVersion = 40
	MaxApp        = 155 // of a bundle id
)

// SeenAgain is the time within which a phone that registers again with the same
// values is not written again: apps register whenever they start.
const SeenAgain = 24 * time.Hour

// A Device is a phone on which the user has the shop's app, or the user's account in a
// mini program of the shop.
type Device struct {
	Platform Platform `json:"platform"`
	// Token is the address that the platform's push service gave the app: in WeChat
	// the user's openid. Only one phone has a given token.
	Token string `json:"token"`
	// App is the app that the token belongs to: the bundle id of an iPhone app, the id of
	// the Firebase project of an Android app, the AppID of a mini program. Empty = the
	// phone does not name its app.
	App        string    `json:"app,omitempty"`
	AppVersion string    `json:"app_version"`
	Locale     string    `json:"locale"`  // BCP 47; empty = unknown
	SeenAt     time.Time `json:"seen_at"` // when it last registered
}

// DeviceID returns the name by which a user removes a phone: 32 hexadecimal
// digits of the token's hash.
func (d Device) DeviceID() string {
	sum := sha256.Sum256([]byte(string(d.Platform) + ":" + d.Token))
	return hex.EncodeToString(sum[:16])
}

// DeviceStore stores the phones of users.
type DeviceStore interface {
	// PutDevice adds the phone to the user, and creates a user who is not known. It
	// takes its token and the token replaced, unless empty, from every other phone
	// and user. If there are more than [MaxDevices] phones, the phones seen longest
	// ago are removed. It returns [ErrErased] for an erased user.
	PutDevice(ctx context.Context, id ID, d Device, replaced string) (Device, error)
	// RemoveDevice removes the user's phone of that [Device.DeviceID], if there is
	// one.
	RemoveDevice(ctx context.Context, id ID, device string) error
}

var (
	appleToken   = regexp.MustCompile(`^([0-9a-fA-F]{2}){32,100}$`)
	androidToken = regexp.MustCompile(`^[A-Za-z0-9_:.-]{20,}$`)
	// The form of an openid is not published: the openids issued so far have 28
	// characters.
	openID    = regexp.MustCompile(`^[A-Za-z0-9_-]{20,64}$`)
	weChatApp = regexp.MustCompile(`^wx[0-9a-f]{16}$`)
	bundleID  = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
	// Old projects have the domain of their owner before a colon.
	firebaseProject = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]*[a-z0-9]$`)
)

// ValidWeChatApp reports whether id has the form of the AppID of a mini program.
func ValidWeChatApp(id string) bool { return weChatApp.MatchString(id) }

// ValidBundleID reports whether id has the form of the bundle id of an app on iPhones.
func ValidBundleID(id string) bool { return len(id) <= MaxApp && bundleID.MatchString(id) }

// ValidFirebaseProject reports whether id has the form of the id of a Firebase project.
func ValidFirebaseProject(id string) bool {
	return len(id) <= MaxApp && firebaseProject.MatchString(id)
}

// checkDevice names every rule that d breaks.
func checkDevice(d Device, replaced string) error {
	e := &fault.Fields{}
	switch d.Platform {
	case IOS:
		if !appleToken.MatchString(d.Token) {
			e.Add("token", "rule.apple_token", "must be the device token in hexadecimal digits, as registerForRemoteNotifications gives it")
		}
		if d.App != "" && !ValidBundleID(d.App) {
			e.Add("app", "rule.apple_app", "must be the bundle id of the app, such as com.example.shop, or absent")
		}
	case Android:
		if len(d.Token) > MaxToken || !androidToken.MatchString(d.Token) {
			e.Add("token", "rule.android_token", "must be the registration token, as FirebaseMessaging.getToken gives it")
		}
		if d.App != "" && !ValidFirebaseProject(d.App) {
			e.Add("app", "rule.android_app", "must be the id of the app's Firebase project, such as shop-example, or absent")
		}
	case WeChat:
		if !openID.MatchString(d.Token) {
			e.Add("token", "rule.openid", "must be the user's openid in the mini program, as code2Session gives it")
		}
		if !ValidWeChatApp(d.App) {
			e.Add("app", "rule.wechat_app", "must be the AppID of the mini program, such as wx0123456789abcdef")
		}
	default:
		e.Add("platform", "rule.platform", "must be ios, android or wechat")
	}
	checkText(e, "app_version", d.AppVersion, MaxAppVersion)
	if d.Locale != "" && (!localeForm.MatchString(d.Locale) || len(d.Locale) > 35) {
		e.Add("locale", "rule.locale", "must be a BCP 47 language tag such as zh-CN")
	}
	if len(replaced) > MaxToken || !clean(replaced) {
		e.Add("replaces", "rule.too_long", "must have at most %d characters", MaxToken)
	}
	return e.Err()
}

// PutDevice registers the phone from which the user writes, and returns it as it is
// stored. The call may be repeated. replaced is the token that the app had before,
// or empty. A phone has one user: registering the phone takes it from its previous
// user. It returns a [fault.Fields] or [ErrErased].
func (s *Service) PutDevice(ctx context.Context, id ID, d Device, replaced string) (Device, error) {
	if err := checkDevice(d, replaced); err != nil {
		return Device{}, err
	}
	if d.Platform == IOS {
		d.Token, replaced = strings.ToLower(d.Token), strings.ToLower(replaced)
	}
	return s.Store.PutDevice(ctx, id, d, replaced)
}

// RemoveDevice removes the user's phone of that [Device.DeviceID], as after signing
// out. The call may be repeated.
func (s *Service) RemoveDevice(ctx context.Context, id ID, device string) error {
	return s.Store.RemoveDevice(ctx, id, device)
}
