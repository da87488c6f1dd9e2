package shop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	push "github.com/SherClockHolmes/webpush-go"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/push/webpush/webpushtest"
	_ "dropbell/dropbell/assistant" // so that this module can build the program, which uses it
	"dropbell/web/console/consoletest"
)

// pushService takes the messages for one browser, in the place of the browser's own push service. It
// holds Dropbell to RFC 8030, 8291 and 8292: a lifetime, the server's identity, and a message that
// only the browser's keys open.
type pushService struct {
	webpushtest.Browser
	mu    sync.Mutex
	notes []string // decrypted
}

func startPushService(t *testing.T) *pushService {
	t.Helper()
	s := &pushService{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 5000))
		if err != nil || r.Method != http.MethodPost || r.Header.Get("TTL") == "" || r.Header.Get("Content-Encoding") != "aes128gcm" || !strings.HasPrefix(r.Header.Get("Authorization"), "vapid ") {
			t.Errorf("a push as %s with %v, %v", r.Method, r.Header, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.notes = append(s.notes, string(s.Read(t, body)))
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	s.Browser = webpushtest.NewBrowser(t, server.URL+"/of-this-browser")
	return s
}

// note returns the newest message, "" = none.
func (s *pushService) note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) == 0 {
		return ""
	}
	return s.notes[len(s.notes)-1]
}

// stub lets the pages of the browser subscribe at the service. All other parts are the browser's own.
func (s *pushService) stub() string {
	return fmt.Sprintf(`(() => {
	const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)).buffer;
	const keys = { p256dh: bytes(%q), auth: bytes(%q) };
	const made = () => ({ endpoint: %q, getKey: (name) => keys[name], unsubscribe: async () => localStorage.removeItem("held") });
	PushManager.prototype.getSubscription = async () => localStorage.getItem("held") ? made() : null;
	PushManager.prototype.subscribe = async (o) => {
		if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new Error("no");
		localStorage.setItem("held", "yes");
		return made();
	};
})();`, s.P256dh, s.Auth, s.Endpoint)
}

// TestDemoShopByPush sells a coupon from the reminder to the payment by a push message, with
// `dropbell all` and a whole browser: notifications are turned on by a press, the reminder arrives
// encrypted, the service worker shows it, and asks for its link once it is clicked. The link counts as opened and leads to the shop, the
// coupon is claimed and used at payment, and notifications are turned off.
func TestDemoShopByPush(t *testing.T) {
	private, public, err := push.GenerateVAPIDKeys()
	if err != nil {
		t.Fatal(err)
	}
	service := startPushService(t)
	tab := consoletest.NewTabWithPush(t)
	workers := tab.Workers()
	tab.Before(service.stub())
	tab.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) { // programs that call themselves headless are not counted
		_, err := chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"})
		return chromedp.Void{}, err
	})
	v := begin(t, tab, "", "VAPID_PRIVATE_KEY="+private, "VAPID_PUBLIC_KEY="+public, "VAPID_SUBJECT=mailto:a@example.com", "PUSH_PRIVATE=yes")

	v.Allow("notifications", browser.PermissionSettingDenied)
	v.open("/", "dropbell-push", "denied")
	v.looks("the product page with notifications blocked")
	v.Allow("notifications", browser.PermissionSettingGranted)
	v.open("/", "dropbell-push", "off")
	if consoletest.Evaluate[bool](v.Tab, `document.querySelector("dropbell-reserve.push").checkVisibility()`) {
		t.Error("a push can be reserved before notifications are on")
	}
	v.press("dropbell-push", "off")
	v.state("dropbell-push", "on")
	v.looks("the product page with notifications on")
	v.open("/", "dropbell-push", "on")
	v.press("dropbell-reserve.push", "ready")
	v.state("dropbell-reserve.push", "reserved")

	v.opensIn(5 * time.Minute)
	consoletest.Within(t, "the push of the reminder", func() bool {
		if time.Since(v.moved) > 15*time.Second { // a slow machine has missed the instant that matters
			v.opensIn(5 * time.Minute)
		}
		return service.note() != ""
	})
	var note struct{ Title, Body, URL string }
	if err := json.Unmarshal([]byte(service.note()), &note); err != nil || !strings.Contains(note.URL, "/d/") {
		t.Fatalf("the push is %s, %v", service.note(), err)
	}
	workers.Push(v.address, "/dropbell-push/", service.note())
	shown := consoletest.Evaluate[string](v.Tab, `(async () => (await (await navigator.serviceWorker.getRegistration("/dropbell-push/")).getNotifications())
		.map((n) => [n.title, n.body, n.data.dropbell, new URL(n.icon).pathname].join("|")).join())()`)
	if want := strings.Join([]string{note.Title, note.Body, note.URL, "/files/leaf.svg"}, "|"); shown != want {
		t.Errorf("the browser shows %q, want %q", shown, want)
	}
	if wanted := workers.Click(v.address, "/dropbell-push/"); wanted != "open "+note.URL {
		t.Errorf("a click on the notification makes the worker want: %s", wanted)
	}
	v.Open(note.URL)
	consoletest.Within(t, "the shop behind the link", func() bool { return consoletest.Evaluate[string](v.Tab, `location.href`) == v.address+"/" })
	consoletest.Within(t, "the opening of the push", func() bool { return v.number(`select count(*) from drop_openings`) == 1 })

	v.opensIn(0)
	v.open("/", "dropbell-claim", "arm", "open")
	v.press("dropbell-claim", "arm", "open")
	v.state("dropbell-claim", "owned")
	v.Open(v.address + "/checkout")
	v.Press("main", "Pay")
	v.Sees("#receipt", "Paid. Thank you!", "−¥20.00", "The coupon is used.")
	if n := v.number(`select count(*) from orders where shop_number = 20 and amount = 6800`); n != 1 {
		t.Errorf("%d orders are reported", n)
	}

	v.open("/", "dropbell-push", "on")
	v.press("dropbell-push", "on")
	v.state("dropbell-push", "off")
	if n := v.number(`select count(*) from users where push <> '[]'`); n != 0 {
		t.Errorf("%d users have a browser after notifications were turned off", n)
	}
}

// number returns the number that the statement finds.
func (v *visit) number(statement string) (n int) {
	v.Helper()
	conn, err := pgx.Connect(v.Context(), v.database)
	if err == nil {
		err = conn.QueryRow(v.Context(), statement).Scan(&n)
		_ = conn.Close(v.Context())
	}
	if err != nil {
		v.Fatal(err)
	}
	return n
}
