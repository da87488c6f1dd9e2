package links_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/postgres"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/web/links"
)

var dropLinks = reminder.NewLinks(secret)

const browser = "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 MicroMessenger/8.0.50"

// fakeDrops has drop 1, records openings, and fails with err if set. While silent is set it answers
// when the caller's time has ended.
type fakeDrops struct {
	mu     sync.Mutex
	target string
	state  template.State
	err    error
	silent bool
	opened []reminder.Reader
	spec   template.Spec
	claims []user.ID
	refuse error
}

func (d *fakeDrops) Template(ctx context.Context, id int64) (t template.Template, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent {
		<-ctx.Done()
		return t, ctx.Err()
	}
	if d.err != nil {
		return t, d.err
	}
	if id != 1 {
		return t, template.ErrNotFound
	}
	t.Spec, t.ShopName = d.spec, "Tea House"
	t.ID, t.ClaimURL, t.Stored = 1, d.target, d.state
	return t, nil
}

func (d *fakeDrops) Note(ctx context.Context, r reminder.Reader) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, r)
	if d.silent {
		<-ctx.Done()
	}
	return !d.silent
}

func (d *fakeDrops) claim(_ context.Context, by user.ID, _ int64, _ string) error {
	d.claims = append(d.claims, by)
	return d.refuse
}

// brands has the brand of every shop.
type brands struct{}

func (brands) Book(context.Context, message.Place, int64) (*message.Book, error) {
	shop := message.Shop{Colour: "#ffd400", Logo: "https://shop.example/l.png"}
	return message.NewBook([]message.Version{{Shop: 10, Key: message.Key{Kind: message.Settings}, Text: &message.Text{Shop: &shop}}}), nil
}

func (d *fakeDrops) serve(t *testing.T) string {
	pages := links.New(links.Deps{Links: user.NewLinks(secret), Channels: delivery.ChannelSetOf(delivery.Email), Now: still(), Log: slog.New(slog.DiscardHandler)})
	r := chi.NewRouter()
	r.Mount(links.DropPrefix, links.NewDropLinks(pages, dropLinks, d, d, brands{}, d.claim))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL + reminder.LinkPath
}

// click follows no redirect.
func click(t *testing.T, method, url string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	musttest.OK(t, err)
	req.Header.Set("User-Agent", browser)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	musttest.OK(t, err)
	_ = res.Body.Close()
	return res
}

var reader1 = reminder.Reader{TemplateID: 1, UserID: 7, Slot: 2, Channel: delivery.SMS}

func TestDropLinkLeadsToTheClaimAddress(t *testing.T) {
	d := &fakeDrops{target: "https://shop.example/claim?a=1&b=2", state: template.Published}
	url := d.serve(t) + dropLinks.Token(reader1)
	for _, query := range []string{"", "?to=https://evil.example", "?url=//evil.example"} {
		res := click(t, http.MethodGet, url+query)
		if res.StatusCode != http.StatusFound || res.Header.Get("Location") != d.target || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("%q: %d %v", query, res.StatusCode, res.Header)
		}
	}
	click(t, http.MethodGet, url, "User-Agent", "Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20) Chrome/120")
	if len(d.opened) != 4 || d.opened[0] != reader1 {
		t.Errorf("noted %+v", d.opened)
	}
}

// Programs that check a link are redirected, but not counted.
func TestLinkCheckersAreNotCounted(t *testing.T) {
	d := &fakeDrops{target: "https://shop.example/", state: template.Published}
	url := d.serve(t) + dropLinks.Token(reader1)
	for _, header := range [][]string{
		{"User-Agent", ""}, {"User-Agent", "facebookexternalhit/1.1"}, {"User-Agent", "Slackbot-LinkExpanding 1.0"}, {"User-Agent", "WhatsApp/2.23 N"},
		{"User-Agent", "Mozilla/5.0 (compatible; Googlebot/2.1)"}, {"User-Agent", "Mozilla/5.0 BingPreview/1.0b"}, {"User-Agent", "curl/8.5"},
		{"User-Agent", "Mozilla/5.0 HeadlessChrome/140"}, {"Purpose", "prefetch"}, {"Sec-Purpose", "prefetch;prerender"}, {"X-Moz", "prefetch"}, {"X-Purpose", "preview"},
	} {
		if res := click(t, http.MethodGet, url, header...); res.StatusCode != http.StatusFound {
			t.Errorf("%v: %d", header, res.StatusCode)
		}
	}
	if res := click(t, http.MethodHead, url); res.StatusCode != http.StatusFound || res.Header.Get("Location") == "" {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	example := dropLinks.Example(strings.TrimSuffix(url, reminder.LinkPath+dropLinks.Token(reader1)), reader1)
	if res := click(t, http.MethodGet, example); res.StatusCode != http.StatusFound {
		t.Errorf("a preview's link: %d", res.StatusCode)
	}
	if len(d.opened) != 0 {
		t.Errorf("noted %+v", d.opened)
	}
}

func TestDropLinkRefusals(t *testing.T) {
	d := &fakeDrops{target: "https://shop.example/", state: template.Published}
	base, good := d.serve(t), dropLinks.Token(reader1)
	for _, token := range []string{"", "nonsense", good[1:], good + "A", "a/b", "%00%ff", "https:%2F%2Fevil.example", user.NewLinks(secret).Token(7, 1),
		dropLinks.Token(reminder.Reader{TemplateID: 2, UserID: 7})} {
		if res := click(t, http.MethodGet, base+token); res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" {
			t.Errorf("%q: %d %s", token, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if res := click(t, http.MethodPost, base+good); res.StatusCode != http.StatusNotFound {
		t.Errorf("POST: %d", res.StatusCode)
	}
	for _, target := range []string{"javascript:alert(1)", "//evil.example", "/console", "data:text/html,x", ""} {
		d.target = target
		if res := click(t, http.MethodGet, base+good); res.StatusCode != http.StatusOK || res.Header.Get("Location") != "" {
			t.Errorf("%q: %d to %s", target, res.StatusCode, res.Header.Get("Location"))
		}
	}
	d.target, d.state = "https://shop.example/", template.Draft
	if res := click(t, http.MethodGet, base+good); res.StatusCode != http.StatusNotFound {
		t.Errorf("a draft: %d", res.StatusCode)
	}
	if res := click(t, http.MethodPost, base+good); res.StatusCode != http.StatusNotFound {
		t.Errorf("a draft, POST: %d", res.StatusCode)
	}
	if len(d.opened) != 5 || len(d.claims) != 0 {
		t.Errorf("noted %+v, claimed %v", d.opened, d.claims)
	}
}

// A drop without a claim address has a page in the brand of the shop, on which the reader whose
// link it is can claim.
func TestPageOfADrop(t *testing.T) {
	d := &fakeDrops{state: template.Published, spec: template.Spec{Obtain: template.ByClaim, Kind: template.PercentOff, PercentOff: 20, MaxOff: 3000, Currency: "CNY", Stock: 1,
		OpensAt: still()().Add(-time.Minute), ClosesAt: still()().Add(3 * time.Hour), ShopNumber: 10}}
	base := d.serve(t)
	own, anybody := base+dropLinks.Token(reader1), base+dropLinks.Token(reminder.Reader{TemplateID: 1})
	read := func(method, url string) (int, string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		req.Header.Set("User-Agent", browser)
		res, err := http.DefaultTransport.RoundTrip(req)
		musttest.OK(t, err)
		defer func() { _ = res.Body.Close() }()
		raw, _ := io.ReadAll(res.Body)
		if policy := res.Header.Get("Content-Security-Policy"); res.StatusCode < 300 && !strings.Contains(policy, "img-src 'self' https:") {
			t.Errorf("policy %q", policy)
		}
		return res.StatusCode, string(raw)
	}
	if status, page := read("GET", own); status != 200 || !strings.Contains(page, `method="post"`) || !strings.Contains(page, "20% off, at most") ||
		!strings.Contains(page, "--accent-fill:#ffd400;") || !strings.Contains(page, `src="https://shop.example/l.png"`) {
		t.Errorf("%d %s", status, page)
	}
	if status, page := read("GET", anybody); status != 200 || strings.Contains(page, `method="post"`) || !strings.Contains(page, "sign in at") {
		t.Errorf("a link of nobody: %d %s", status, page)
	}
	if len(d.opened) != 1 {
		t.Errorf("noted %+v", d.opened)
	}
	if status, _ := read("POST", anybody); status != 404 {
		t.Errorf("a claim of nobody: %d", status)
	}
	if status, page := read("POST", own); status != 200 || !strings.Contains(page, "The coupon is yours") || len(d.claims) != 1 || d.claims[0] != reader1.UserID {
		t.Errorf("%d %s %v", status, page, d.claims)
	}
	d.err = nil
	d.refuse = claim.ErrSoldOut
	if status, page := read("POST", own); status != 409 || !strings.Contains(page, "alert") {
		t.Errorf("sold out: %d %s", status, page)
	}
	d.spec.OpensAt = still()().Add(time.Hour)
	if status, page := read("GET", own); status != 200 || strings.Contains(page, `method="post"`) || !strings.Contains(page, "data-countdown") {
		t.Errorf("before the opening: %d %s", status, page)
	}
}

// A database that fails or does not answer does not delay readers on the way to the claim page once
// its address is known.
func TestDropLinkWithoutDatabase(t *testing.T) {
	d := &fakeDrops{err: postgres.ErrUnavailable, target: "https://shop.example/", state: template.Published}
	url := d.serve(t) + dropLinks.Token(reader1)
	if res := click(t, http.MethodGet, url); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("address unknown: %d", res.StatusCode)
	}
	for _, step := range []func(){func() { d.err = nil }, func() { d.err = postgres.ErrUnavailable }, func() { d.err, d.silent = nil, true }} {
		d.mu.Lock()
		step()
		d.mu.Unlock()
		if res := click(t, http.MethodGet, url); res.StatusCode != http.StatusFound || res.Header.Get("Location") != d.target {
			t.Errorf("%d to %q", res.StatusCode, res.Header.Get("Location"))
		}
	}
	if len(d.opened) != 3 {
		t.Errorf("noted %d", len(d.opened))
	}
	d.mu.Lock()
	d.silent = false
	d.mu.Unlock()
	last := 0
	for range 65 {
		last = click(t, http.MethodGet, url).StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("one link again and again: %d", last)
	}
	if res := click(t, http.MethodGet, strings.TrimSuffix(url, dropLinks.Token(reader1))+dropLinks.Token(reminder.Reader{TemplateID: 1, UserID: 8})); res.StatusCode != http.StatusFound {
		t.Errorf("another reader: %d", res.StatusCode)
	}
}
