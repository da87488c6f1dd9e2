package push

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

const (
	// CallTimeout bounds one call unless a configuration says otherwise.
	CallTimeout = 10 * time.Second
	// MaxAnswer is how many bytes of an answer are read.
	MaxAnswer = 64 << 10
	// unhurried is how long a service may keep a push that has no opening.
	unhurried = 12 * time.Hour
)

// An Account is the identity of one app at its push service. A [ConfiguredService] embeds an
// Account.
type Account struct {
	service string
	app     provider.App
	quota   *Quota // nil = no limit
	HTTP    *http.Client
	// Configured says that staff have configured the service.
	Configured bool
	// OnGone is told of every device that the app was removed from; may be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.Device)
}

// NewAccount returns the account of the app. service is the service's name in metrics. quota
// limits the pushes per minute; nil = no limit.
func NewAccount(service string, app provider.App, client *http.Client, quota *Quota) *Account {
	return &Account{service: service, app: app, quota: quota, HTTP: client}
}

// Name returns the service's name.
func (a *Account) Name() string { return a.service }

// App returns the app.
func (a *Account) App() provider.App { return a.app }

// Close ends idle connections.
func (a *Account) Close() error {
	a.HTTP.CloseIdleConnections()
	return nil
}

// Calls reports whether the user has a device with the app; see [ConfiguredService].
func (a *Account) Calls(m delivery.Message) bool {
	return slices.ContainsFunc(m.To.Devices, a.Reaches)
}

// Turn waits for the messages per minute; see [ConfiguredService].
func (a *Account) Turn(ctx context.Context) time.Duration {
	if a.quota == nil {
		return 0
	}
	return a.quota.Turn(ctx)
}

// Reaches reports whether the service reaches the device; see [Reaches].
func (a *Account) Reaches(d user.Device) bool { return Reaches(a.app, d) }

// ToEach pushes to each of the user's devices with the app.
func (a *Account) ToEach(m delivery.Message, push func(user.Device) delivery.Result) (results []delivery.Result) {
	for _, d := range m.To.Devices {
		if a.Reaches(d) {
			results = append(results, push(d))
		}
	}
	return results
}

// Post posts a body of JSON and reads the answer. Without one it returns the result.
func (a *Account) Post(ctx context.Context, address string, header http.Header, body []byte) (sender.Answer, *delivery.Result) {
	answer, err := sender.Post(ctx, a.HTTP, address, header, body, MaxAnswer)
	if err != nil {
		return answer, &delivery.Result{Detail: delivery.CauseOf(err)}
	}
	return answer, nil
}

// Gone tells of a device that the app was removed from, and returns the result.
func (a *Account) Gone(ctx context.Context, m delivery.Message, d user.Device) delivery.Result {
	if a.OnGone != nil {
		a.OnGone(ctx, m.To.ID, d)
	}
	return delivery.Result{Status: delivery.Permanent, Detail: "the app was removed from the phone"}
}

// Check returns the hint about the settings to correct after a refusal that concerns the
// settings: provider if staff have configured the service, otherwise environment.
func (a *Account) Check(environment, provider string) string {
	if a.Configured {
		return provider
	}
	return environment
}

// Until returns the instant until which a service may keep the push: the end of a campaign that
// has an end, otherwise the opening. A push without an opening is kept for twelve hours.
func Until(s *delivery.Subject, now time.Time) time.Time {
	switch {
	case s.Kind == delivery.KindCampaign && !s.EndsAt.IsZero():
		return s.EndsAt
	case s.OpensAt.IsZero():
		return now.Add(unhurried)
	}
	return s.OpensAt
}

// TTL is [Until] in whole seconds from now; 0 = the push is shown at once or never.
func TTL(s *delivery.Subject, now time.Time) int64 {
	return int64(max(Until(s, now).Sub(now), 0) / time.Second)
}

// Endpoint returns the service's address without a slash at the end: given, or usual if given is
// empty. The error is a [Mistake]. Its text is notURL for an invalid address, or inClear for an
// unencrypted address, followed by usual.
func Endpoint(given, usual, notURL, inClear string) (string, error) {
	if given == "" {
		given = usual
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", &Mistake{Field: "url", Text: notURL + usual}
	}
	if Clear(given) {
		return "", &Mistake{Field: "url", Text: inClear + usual}
	}
	return strings.TrimRight(given, "/"), nil
}

// A Mistake is a setting of a service that is not usable.
type Mistake struct {
	// Field is its name in a provider's form.
	Field, Text string
}

func (m *Mistake) Error() string { return m.Text }

// Clear reports whether calls of the http or https address cross a network without
// encryption.
func Clear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.Unmap().IsLoopback())
}

// Reaches reports whether a service of the app reaches the device, see [user.Device]. The device
// must name the app, or be a phone of the app's platform that names no app. Several services may
// reach a phone without an app; [Sender] chooses among them.
func Reaches(app provider.App, d user.Device) bool {
	return d.Platform == app.Platform && (d.App == app.Name || d.App == "" && !d.Platform.OneTime())
}

// UnusableFor is how long a message waits before its next attempt at an [Unusable] service. Each
// wait is recorded for each message.
const UnusableFor = 30 * time.Second

// Unusable replaces a configured service that cannot be built, for example because no key
// decrypts its secrets. Its messages wait until staff have corrected the provider.
type Unusable struct {
	// Kind is the service's name in metrics.
	Kind string
	// OfApp is the app whose devices it would reach.
	OfApp provider.App
}

// Name returns the kind.
func (u Unusable) Name() string { return u.Kind }

// App is part of [AppService].
func (u Unusable) App() provider.App { return u.OfApp }

// Close has nothing to end.
func (Unusable) Close() error { return nil }

// Calls reports false: nothing is called.
func (Unusable) Calls(delivery.Message) bool { return false }

// Turn returns zero.
func (Unusable) Turn(context.Context) time.Duration { return 0 }

// Push answers that the message waits, for each of the user's devices in the app.
func (u Unusable) Push(_ context.Context, m delivery.Message) (results []delivery.Result) {
	for _, d := range m.To.Devices {
		if Reaches(u.OfApp, d) {
			results = append(results, delivery.Result{Status: delivery.Throttled, Unsent: true, Held: true, After: UnusableFor,
				Detail: "not sent: the provider cannot be used; check its settings and PROVIDERS_KEY"})
		}
	}
	return results
}
