package shop_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
	"dropbell/lab/tools/dev/catcher"
	"dropbell/lab/tools/dev/shop"
	"dropbell/musttest"
	dropbell "dropbell/sdk/go"
	"dropbell/web/console/consoletest"
)

func TestMain(m *testing.M) { consoletest.Main(m) }

const key = "dbk_demoshopdemoshopdemoshop"

// visit is a visit of the demo shop in a browser.
type visit struct {
	*consoletest.Tab
	shop              *shop.Shop
	address, database string
	moved             time.Time
}

// TestDemoShop follows an end user in a real browser through all steps, with `dropbell all`: a
// reminder is reserved and arrives in the inbox, a claim is made as the drop opens, the coupon
// is locked and used at payment, and webhooks tell the shop. Only the opening is moved, to save
// minutes of waiting. After each reload the components show only the loading state and the true
// state.
func TestDemoShop(t *testing.T) {
	messages, push := catch(t)
	v := begin(t, consoletest.NewTab(t), messages, push...)
	v.open("/", "dropbell-reserve", "ready")
	v.looks("the product page")
	v.press("dropbell-reserve", "ready")
	v.state("dropbell-reserve", "reserved")
	v.open("/", "dropbell-reserve", "reserved")
	v.state("dropbell-claim", "scheduled")
	v.Press("main", "Put the app on your phone")
	v.press("dropbell-reserve.push.phone", "ready") // the page before has no such element
	v.state("dropbell-reserve.push.phone", "reserved")
	v.looks("the product page with a phone")

	v.wrongClock()

	v.opensIn(5 * time.Minute)
	consoletest.Within(t, "the reminder in the inbox", func() bool {
		if time.Since(v.moved) > 15*time.Second { // a slow machine has missed the instant that matters
			v.opensIn(5 * time.Minute)
		}
		return strings.Contains(v.text("dropbell-inbox"), "Opens in 5 minutes")
	})
	consoletest.Within(t, "the push on the phone", func() bool {
		answer, err := http.Get(messages + "/?kind=push")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(page), "demo-shop-ph")
	})
	v.opensIn(0)
	v.open("/", "dropbell-claim", "arm", "open")
	v.press("dropbell-claim", "arm", "open")
	v.state("dropbell-claim", "owned")
	v.open("/", "dropbell-claim", "owned")
	v.state("dropbell-countdown", "open")
	v.looks("the product page with a coupon and a message")

	v.Open(v.address + "/checkout")
	v.looks("the checkout")
	v.Press("main", "Pay")
	v.looks("the receipt")
	v.Sees("#receipt", "Paid. Thank you!", "−¥20.00", "¥48.00", "The coupon is used.", "Return")
	v.Open(v.address + "/")
	consoletest.Within(t, "the used coupon", func() bool { return strings.Contains(v.text("dropbell-claim"), "You have used the coupon") })
	consoletest.Within(t, "the webhook of the used coupon", func() bool {
		v.Open(v.address + "/events")
		return strings.Contains(v.Text("main"), "coupon.used")
	})
}

// begin starts `dropbell all` with the additional variables more, and a shop with a drop that opens
// in 40 minutes.
func begin(t *testing.T, tab *consoletest.Tab, messages string, more ...string) *visit {
	t.Helper()
	const secret = "a-secret-of-32-bytes-for-tests-only"
	var handler atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	database := localstack.Database(t)
	address := serve(t, database, append(more, "AUTH_JWT_SECRET="+secret, "LINK_SECRET="+secret, "SHOP_ORIGINS="+server.URL, "EVENTS_INSECURE=on")...)
	s, err := shop.New(shop.Config{Server: address, Messages: messages, Key: key, Tokens: dropbell.UserTokens{Secret: secret}, Log: slog.New(slog.DiscardHandler)}, server.URL)
	musttest.OK(t, err)
	pages := s.Handler()
	handler.Store(&pages)
	musttest.OK(t, s.Register(t.Context()))
	musttest.OK(t, s.AddDrop(t.Context(), 40*time.Minute))
	return &visit{Tab: tab, shop: s, address: server.URL, database: database}
}

// catch starts a catcher of pushes. It returns the address of its page, and the variables by
// which pushes come there.
func catch(t *testing.T) (page string, variables []string) {
	t.Helper()
	port, err := localstack.FreePort(0)
	musttest.OK(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := catcher.Start(catcher.Config{Dir: t.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: address})
	musttest.OK(t, err)
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	values, err := catcher.PushVariables("http://" + address)
	musttest.OK(t, err)
	for name, value := range values {
		variables = append(variables, name+"="+value)
	}
	return "http://" + address, variables
}

// serve runs `dropbell all` with the additional variables more until the test ends, and returns
// the address of web.
func serve(t *testing.T, database string, more ...string) string {
	t.Helper()
	bin, err := stack.Build(t.Context(), t.TempDir(), "dropbell")
	musttest.OK(t, err)
	var ports [2]int
	for i := range ports {
		if ports[i], err = localstack.FreePort(0); err != nil {
			t.Fatal(err)
		}
	}
	web, operations := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	servers := &stack.Stack{PostgresURL: database, RedisURL: localstack.RedisServer(t).URL()}
	p, err := servers.Launch(bin, stack.Launch{Addr: web, Args: []string{"all"},
		Env: append([]string{"WORKER_HTTP_ADDR=" + operations, "PUBLIC_URL=http://" + web, "ADMIN_API_KEY=" + key}, more...)})
	musttest.OK(t, err)
	t.Cleanup(func() {
		p.Stop()
		if err := p.Err(); err != nil {
			t.Errorf("dropbell all: %v", err)
		}
	})
	worker := *p
	worker.Addr = operations
	for _, program := range []*stack.Process{p, &worker} {
		if err := program.Ready(t.Context(), time.Minute); err != nil {
			t.Fatalf("%s: %v", program.Addr, err)
		}
	}
	return "http://" + web
}

// looks checks the page in both themes, on a desktop and on a narrow phone.
func (v *visit) looks(what string) {
	v.Helper()
	for _, theme := range []string{"light", "dark"} {
		v.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
			return chromedp.Void{}, err
		})
		v.Accessible(what + ", " + theme)
		v.Resize(320, 640)
		v.Narrow(what)
		v.Tappable(what)
		v.Resize(1280, 800)
	}
}

// wrongClock visits the shop with a browser whose clock is three hours fast. The countdown
// follows the server's clock: it ends in 40 minutes or a little less.
func (v *visit) wrongClock() {
	v.Helper()
	fast := &visit{Tab: consoletest.NewTab(v.T), address: v.address}
	fast.Do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, devtools.AddScriptToEvaluateOnNewDocument, devtools.AddScriptToEvaluateOnNewDocumentParams{
			Source: `{ const now = Date.now; Date.now = () => now() + 3 * 3600e3; }`})
		return chromedp.Void{}, err
	})
	fast.open("/", "dropbell-countdown", "scheduled")
	if shown := fast.text("dropbell-countdown"); !strings.Contains(shown, "00:3") {
		v.Errorf("with a fast clock: %s", shown)
	}
	fast.state("dropbell-claim", "scheduled")
}

// opensIn moves the opening of the drop to a few seconds more than after from now.
func (v *visit) opensIn(after time.Duration) {
	v.Helper()
	for seconds := 3 * time.Second; ; seconds *= 2 {
		err := v.shop.Move(v.Context(), after+seconds)
		if err == nil {
			break
		}
		if seconds > 100*time.Second || dropbell.Code(err) == "" {
			v.Fatal(err)
		}
	}
	v.moved = time.Now()
}

// open opens a page. The element may show the loading state and then one of the given states;
// any other state before fails the test.
func (v *visit) open(path, element string, states ...string) {
	v.Helper()
	v.Open(v.address + path)
	v.until(element, states, append([]string{"", "loading"}, states...))
}

// state waits for one of the states; other states may come before.
func (v *visit) state(element string, states ...string) {
	v.Helper()
	v.until(element, states, nil)
}

// until waits for one of the states. If may is not nil, the element may show only these states
// meanwhile.
func (v *visit) until(element string, states, may []string) {
	v.Helper()
	consoletest.Within(v.T, fmt.Sprintf("%s in the state %v", element, states), func() bool {
		state := consoletest.Evaluate[string](v.Tab, fmt.Sprintf(`document.querySelector(%q)?.getAttribute("state") ?? ""`, element))
		if may != nil && !slices.Contains(may, state) {
			v.Errorf("%s shows %s", element, state)
		}
		return slices.Contains(states, state)
	})
}

// press presses the button of the element, once, when it is in one of the states.
func (v *visit) press(element string, states ...string) {
	v.Helper()
	v.state(element, states...)
	consoletest.Evaluate[chromedp.Void](v.Tab, fmt.Sprintf(`document.querySelector(%q).shadowRoot.querySelector("button").click()`, element))
}

// text returns the text that the element shows.
func (v *visit) text(element string) string {
	v.Helper()
	return consoletest.Evaluate[string](v.Tab, fmt.Sprintf(`document.querySelector(%q)?.shadowRoot?.firstElementChild.innerText ?? ""`, element))
}
