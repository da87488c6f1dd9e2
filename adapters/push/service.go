package push

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/user"
)

// A Control judges every address before it is connected to, after the name was resolved.
type Control = func(ctx context.Context, network, address string, c syscall.RawConn) error

// Controlled makes the transport ask the control, which may be nil, and use no proxy then: that
// would resolve names itself.
func Controlled(t *http.Transport, control Control) {
	if control != nil {
		t.Proxy = nil
		t.DialContext = (&net.Dialer{Timeout: dialTimeout, ControlContext: control}).DialContext
	}
}

const dialTimeout = 10 * time.Second

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

// Reaches reports whether a service of the app reaches the device, see [user.Device]: one that
// names the app, or a phone of the platform that names none, of which [Sender] decides which
// service it is handed to.
func Reaches(app provider.App, d user.Device) bool {
	return d.Platform == app.Platform && (d.App == app.Name || d.App == "" && !d.Platform.OneTime())
}

// UnusableFor is how long messages wait for a service that cannot be made. Each wait is
// recorded for each message.
const UnusableFor = 30 * time.Second

// Unusable stands for a configured service that cannot be made, for example because no key
// opens its secrets: the messages that it would send wait until staff have corrected the
// provider.
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
