package work_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"

	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
)

func subscription(endpoint string) url.Values {
	return url.Values{"endpoint": {endpoint}, "p256dh": {base64.RawURLEncoding.EncodeToString(make([]byte, 65))}, "auth": {base64.RawURLEncoding.EncodeToString(make([]byte, 16))}}
}

// A member turns notifications on and off for each browser. They end when the member signs out in
// that browser. Without keys the page says which setting is missing.
func TestBrowsersOfAMember(t *testing.T) {
	g := consoletest.New(t)
	anna := g.Hire(staff.Viewer)
	b, other := g.Browser(), g.As(staff.Viewer)
	b.SignIn(anna.Email)
	page := b.Get("/alerts/settings").Is(200).Has("In your browsers", `data-push="`+consoletest.PushKey+`"`, "/alerts/push-worker.js")
	if p := page.Header.Get("Content-Security-Policy"); !strings.HasSuffix(p, "; worker-src 'self'") || !strings.Contains(p, "default-src 'none'; script-src 'nonce-") {
		t.Errorf("the policy is %s", p)
	}
	worker := g.Browser().Get("/alerts/push-worker.js").Is(200).Has("showNotification") // without a sign-in
	if h := worker.Header; h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("Cache-Control") != "no-cache" || h.Get("Content-Security-Policy") != "default-src 'none'" {
		t.Errorf("the worker has the headers %v", h)
	}
	b.Post("/alerts/browsers", url.Values{"endpoint": {"javascript:alert(1)"}}).To("/alerts/settings")
	b.Get("/alerts/settings").Is(200).Has("could not be registered").HasNot("/alerts/browsers/1/test")
	for range 2 {
		b.Post("/alerts/browsers", subscription("https://push.example/s3cret")).To("/alerts/settings")
	}
	b.Get("/alerts/settings").Is(200).Has("/alerts/browsers/2/test", `data-browser="`).HasNot("/alerts/browsers/1/test", "s3cret")
	other.Get("/alerts/settings").Is(200).HasNot("/alerts/browsers/2/test")
	other.Post("/alerts/browsers/2/test", nil).Is(http.StatusNotFound)
	other.Post("/alerts/browsers/2/remove", nil).To("/alerts/settings")
	b.Post("/alerts/browsers/2/test", nil).To("/alerts/settings")
	if n := g.Number(`select count(*) from alert_pushes where browser_id = 2`); n != 1 {
		t.Errorf("%d pushes", n)
	}
	// The browser belongs to its latest sign-in: ending other sign-ins leaves its notifications on,
	// signing out turns them off.
	b.SignIn(anna.Email)
	b.Post("/account/revoke", url.Values{}).To("/account")
	b.Get("/alerts/settings").Is(200).Has("/alerts/browsers/2/test")
	b.Post("/signout", nil)
	if n := g.Number(`select count(*) from staff_browsers`); n != 0 {
		t.Errorf("%d browsers after signing out", n)
	}
	b.SignIn(anna.Email)
	b.Get("/alerts/settings").Is(200).HasNot("/alerts/browsers/2/test")
	b.Post("/alerts/browsers", subscription("https://push.example/s3cret")).To("/alerts/settings")
	b.Post("/alerts/browsers/3/remove", nil).To("/alerts/settings")
	b.Get("/alerts/settings").Is(200).HasNot("/alerts/browsers/3/test")
	// An administrator ends all, also where the sign-in has ended by its age.
	b.Post("/alerts/browsers", subscription("https://push.example/s3cret")).To("/alerts/settings")
	g.Exec(`delete from sign_ins where staff_id = $1`, anna.ID)
	g.As(staff.Admin).Post(fmt.Sprintf("/staff/%d/signout", anna.ID), nil)
	if n := g.Number(`select count(*) from staff_browsers`); n != 0 {
		t.Errorf("%d browsers after an administrator ended all sign-ins", n)
	}

	off := consoletest.New(t, func(d *console.Deps) { d.Work.Browsers.PublicKey = "" })
	b = off.As(staff.Viewer)
	b.Get("/alerts/settings").Is(200).Has("set VAPID_PUBLIC_KEY").HasNot("data-push=")
	b.Post("/alerts/browsers", subscription("https://push.example/x")).Is(http.StatusNotFound)
}

// stubbed replaces the push service, which belongs to another company: the browser subscribes to
// this endpoint. All other parts are the browser's own.
const stubbed = `(() => {
	const held = () => JSON.parse(sessionStorage.getItem("held") ?? "null");
	const made = () => ({endpoint: held(), getKey: n => new Uint8Array(n === "auth" ? 16 : 65).buffer, unsubscribe: async () => sessionStorage.removeItem("held")});
	PushManager.prototype.getSubscription = async () => held() && made();
	PushManager.prototype.subscribe = async o => {
		if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new Error("no");
		sessionStorage.setItem("held", JSON.stringify("https://push.example/of-this-browser"));
		return made();
	};
})();`

// A click asks for permission, registers the service worker and stores the subscription. A push
// message is shown as a notification that leads to its page. A subscription that was turned off in
// another browser is unsubscribed.
func TestABrowserIsNotified(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	b := consoletest.NewTabWithPush(t)
	workers := b.Workers()
	b.Before(stubbed)
	b.SignIn(g, m)
	settings := g.Server.URL + "/alerts/settings"
	b.Allow("notifications", browser.PermissionSettingDenied)
	b.Open(settings)
	b.Sees("form[data-push]", "Allow them in the browser’s settings")
	b.Allow("notifications", browser.PermissionSettingGranted)
	b.Open(settings)
	b.Press("main", "Turn on in this browser")
	b.Sees("main", "Notifications are on in this browser.", "this browser", "Turn off")
	if n := g.Number(`select count(*) from staff_browsers where staff_id = $1 and endpoint = 'https://push.example/of-this-browser' and agent like '%Chrome%'`, m.ID); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
	if strings.Contains(b.Text("main"), "Turn on in this browser") {
		t.Error("the button is still there")
	}
	workers.Push(g.Server.URL, "/alerts/", `{"title":"Dropbell","body":"SMS is failing.","tag":"channel:sms","url":"/channels"}`)
	workers.Push(g.Server.URL, "/alerts/", "nonsense")
	const shown = `(async () => (await (await navigator.serviceWorker.getRegistration("/alerts/")).getNotifications())
		.map(n => [n.title, n.body, n.tag, n.data.url].join("|")).sort().join(" / "))()`
	const want = "Dropbell|SMS is failing.|channel:sms|/channels / Dropbell|||/alerts"
	consoletest.Within(t, "the notification", func() bool { return consoletest.Evaluate[string](b, shown) == want })

	g.Exec(`delete from staff_browsers`) // turned off on another device
	b.Open(settings)
	b.Sees("main", "Turn on in this browser")
	consoletest.Within(t, "the end of the subscription", func() bool { return consoletest.Evaluate[bool](b, `sessionStorage.getItem("held") === null`) })
}
