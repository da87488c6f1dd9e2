package alert

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// MaxBrowsers is how many browsers of one member are notified.
const MaxBrowsers = 10

// ErrNoBrowser says that the member has no such browser.
var ErrNoBrowser = fault.New(fault.NotFound, "browser_not_found", "there is no such browser; load the page again")

// A Browser is notified by push (RFC 8030) of the alerts that its member sees under the
// bell.
type Browser struct {
	ID, Member int64
	// SignIn is the browser's latest sign-in. After it was revoked, by signing out
	// or by an administrator, nothing is sent to the browser.
	SignIn       string
	Subscription user.PushSubscription
	Agent        string // the User-Agent header
	Language     string
	CreatedAt    time.Time
	// Last is the state of the latest push, "" = none yet; Detail says why it failed.
	Last   State
	Detail string
}

// Digest names the browser's endpoint without revealing it: the page's script
// compares it with its own. It is base64url of SHA-256.
func (b Browser) Digest() string {
	sum := sha256.Sum256([]byte(b.Subscription.Endpoint))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Push is one alert on its way to one browser.
type Push struct {
	ID    int64
	Alert Alert
	// Key names the alert's condition; see [Condition.Key].
	Key     string
	Browser Browser
	Lease   string
	// Attempts were made before this one.
	Attempts   int
	DeadlineAt time.Time
}

// A BrowserStore keeps browsers and the pushes to them.
type BrowserStore interface {
	// Browsers lists the member's browsers, the latest first.
	Browsers(ctx context.Context, member int64) ([]Browser, error)
	// AddBrowser stores b. An endpoint that is stored already is assigned to b. A
	// member has at most most browsers: the earliest are removed.
	AddBrowser(ctx context.Context, b Browser, most int) error
	// FollowBrowser makes signIn the sign-in of the member's browser with this digest, if
	// there is such a browser and its sign-in was not revoked.
	FollowBrowser(ctx context.Context, member int64, digest, signIn string) error
	// RemoveBrowser removes the member's browser, if it is there.
	RemoveBrowser(ctx context.Context, member, id int64) error
	// ForgetBrowser removes a browser that its push service reports as gone, unless
	// the browser has subscribed again with other keys.
	ForgetBrowser(ctx context.Context, b Browser) error
	// TryBrowser raises a test for the member's browser, or returns [ErrNoBrowser].
	TryBrowser(ctx context.Context, member, id int64, deadline time.Duration) error
	// TakePushes leases due pushes to one caller, and drops pushes whose deadline
	// has passed.
	TakePushes(ctx context.Context, limit int, lease time.Duration) ([]Push, error)
	// RecordPush stores the result of an attempt; a push that waits is due after wait.
	RecordPush(ctx context.Context, p Push, o Outcome, wait time.Duration) error
}

// A Pusher sends one push.
type Pusher interface {
	// Push returns the result, and whether the push service reports that the browser
	// has ended its subscription. path is the page of the console that the
	// notification opens.
	Push(ctx context.Context, p Push, text, path string) (o Outcome, gone bool)
}

// Browsers are the use cases around browsers that are notified.
type Browsers struct {
	Store BrowserStore
	// PublicKey is the VAPID key (RFC 8292) with which browsers subscribe; "" = push
	// is not configured.
	PublicKey string
	// AllowLocal permits push services on this machine, for tests.
	AllowLocal bool
}

// Of lists the member's browsers, the latest first.
func (s Browsers) Of(ctx context.Context, m staff.Member) ([]Browser, error) {
	return s.Store.Browsers(ctx, m.ID)
}

// Add notifies the browser from now on. It returns a [fault.Fields] if the
// subscription cannot come from a browser.
func (s Browsers) Add(ctx context.Context, m staff.Member, b Browser) error {
	if err := b.Subscription.Check(s.AllowLocal); err != nil {
		return err
	}
	b.Member, b.Agent = m.ID, string([]rune(b.Agent)[:min(300, len([]rune(b.Agent)))])
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.AddBrowser(ctx, b, MaxBrowsers)
}

// Follow assigns a new sign-in of the member to the browser with this digest, see
// [Browser.Digest]. Notifications to the browser end with that sign-in.
func (s Browsers) Follow(ctx context.Context, member int64, digest, signIn string) error {
	return s.Store.FollowBrowser(ctx, member, digest, signIn)
}

// Remove ends the notifications of the member's browser.
func (s Browsers) Remove(ctx context.Context, m staff.Member, id int64) error {
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.RemoveBrowser(ctx, m.ID, id)
}

// Try sends a test to the member's browser, or returns [ErrNoBrowser].
func (s Browsers) Try(ctx context.Context, m staff.Member, id int64) error {
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.TryBrowser(ctx, m.ID, id, testDeadline)
}

// A Notifier delivers pushes. Store and Pusher are required.
type Notifier struct {
	Store  BrowserStore
	Pusher Pusher
	// Crashed, if set, is called after a panic of the pusher.
	Crashed Crashed
}

// Deliver sends the due pushes. Each is sent once, unless a process dies between the
// answer and its record; the browser then shows the second notification in place of
// the first.
func (n Notifier) Deliver(ctx context.Context) error {
	for {
		due, err := n.Store.TakePushes(ctx, deliveriesAtOnce, deliveryLease)
		if err != nil || len(due) == 0 {
			return err
		}
		errs := make([]error, len(due))
		var all sync.WaitGroup
		for i, p := range due {
			all.Go(func() { errs[i] = n.deliver(ctx, p) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil || len(due) < deliveriesAtOnce {
			return err
		}
	}
}

func (n Notifier) deliver(ctx context.Context, p Push) error {
	call, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	path := p.Alert.Path
	if path == "" {
		path = "/alerts"
	}
	gone := false
	o := n.Crashed.contained(func() (o Outcome) {
		o, gone = n.Pusher.Push(call, p, p.Alert.Text(p.Browser.Language), path)
		return o
	})
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer done()
	if gone {
		return n.Store.ForgetBrowser(ctx, p.Browser) // with its pushes
	}
	return n.Store.RecordPush(ctx, p, o, Backoff(p.Attempts+1, o.After))
}
