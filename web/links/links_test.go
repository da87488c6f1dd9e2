package links_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/web/links"
)

const secret = "0123456789abcdef0123456789abcdef"

type fixture struct {
	*testing.T
	url   string
	users *user.Service
	// series has no series unless a test makes one.
	series dropsdb.Series
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, err := postgres.Open(t.Context(), localstack.Database(t), postgres.Options{AppName: "links-test"})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	g := &fixture{T: t, users: &user.Service{Store: audiencedb.NewUsers(db)}}
	g.series = dropsdb.NewSeries(db)
	g.url = serve(t, links.Deps{Users: g.users, Standing: &series.Reservations{Store: g.series, Channels: delivery.ChannelSetOf(delivery.App)}})
	return g
}

// still returns a stopped clock, so that a limit per minute gives the same answers on a slow
// machine.
func still() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

func serve(t *testing.T, d links.Deps) string {
	d.Links, d.Channels = user.NewLinks(secret), delivery.ChannelSetOf(delivery.App, delivery.Email)
	d.Now, d.Log = still(), slog.New(slog.DiscardHandler)
	r := chi.NewRouter()
	r.Mount(links.Prefix, links.New(d))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL + links.Prefix + "/"
}

func token(id user.ID, c delivery.Channel) string { return user.NewLinks(secret).Token(id, uint8(c)) }

// ask returns status and body; it follows no redirect.
func ask(t *testing.T, method, url, kind string, body io.Reader) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	musttest.OK(t, err)
	req.Header.Set("User-Agent", browser)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	musttest.OK(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	musttest.OK(t, err)
	return res, string(text)
}

const form = "application/x-www-form-urlencoded"

func (g *fixture) off(id user.ID) uint8 {
	g.Helper()
	u, err := g.users.Preferences(g.Context(), id)
	if err != nil {
		g.Fatal(err)
	}
	return u.OptOuts
}

// A mail program's button works without cookies, with both content types of forms, and any number
// of times.
func TestOneClick(t *testing.T) {
	g := newFixture(t)
	for i, body := range []string{"List-Unsubscribe=One-Click", "List-Unsubscribe=One-Click"} {
		res, text := ask(t, http.MethodPost, g.url+token(7, delivery.Email), form, strings.NewReader(body))
		if res.StatusCode != 200 || !strings.Contains(text, "unsubscribed") || g.off(7) != delivery.Email.Bit() {
			t.Fatalf("%d: %d %q, off %05b", i, res.StatusCode, text, g.off(7))
		}
	}
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	musttest.OK(t, errors.Join(m.WriteField("List-Unsubscribe", "One-Click"), m.Close()))
	if res, _ := ask(t, http.MethodPost, g.url+token(8, delivery.SMS), m.FormDataContentType(), &b); res.StatusCode != 200 || g.off(8) != delivery.SMS.Bit() {
		t.Fatalf("multipart: %d, off %05b", res.StatusCode, g.off(8))
	}
}

// Showing the page changes nothing. The page has the user's language and shows no contact.
func TestPage(t *testing.T) {
	g := newFixture(t)
	if _, _, err := g.users.Upsert(t.Context(), staff.System(), []user.Change{{ID: 7, Email: new("ann@example.com"), Name: new("Ann"), Locale: new("zh-CN")}}); err != nil {
		t.Fatal(err)
	}
	address := g.url + token(7, delivery.Email)
	res, text := ask(t, http.MethodGet, address, "", nil)
	if res.StatusCode != 200 || !strings.Contains(text, "关闭邮件？") || strings.Contains(text, "ann@example.com") || strings.Contains(text, "Ann") || g.off(7) != 0 {
		t.Fatalf("%d, off %05b\n%s", res.StatusCode, g.off(7), text)
	}
	if res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", res.Header)
	}
	if res, text = ask(t, http.MethodHead, address, "", nil); res.StatusCode != 200 || text != "" || g.off(7) != 0 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("HEAD: %d %q, off %05b", res.StatusCode, text, g.off(7))
	}
	if res, _ = ask(t, http.MethodHead, g.url+"nonsense", "", nil); res.StatusCode != 404 {
		t.Fatalf("HEAD of no link: %d", res.StatusCode)
	}
	res, _ = ask(t, http.MethodPost, address, form, strings.NewReader("List-Unsubscribe=One-Click&action=off"))
	if res.StatusCode != http.StatusSeeOther || !strings.HasSuffix(res.Header.Get("Location"), "?saved=1") || g.off(7) != delivery.Email.Bit() {
		t.Fatalf("the button: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	if _, text = ask(t, http.MethodGet, address+"?saved=1", "", nil); !strings.Contains(text, "已关闭：邮件") || !strings.Contains(text, "您的选择已保存") {
		t.Fatalf("afterwards: %s", text)
	}
	if _, text = ask(t, http.MethodGet, g.url+token(99, delivery.Email), "", nil); !strings.Contains(text, "Turn off e-mail?") {
		t.Fatalf("somebody unknown: %s", text)
	}
}

// The page sets the channels that it offers and does not change other channels.
func TestChoice(t *testing.T) {
	g := newFixture(t)
	if _, _, err := g.users.Upsert(t.Context(), staff.System(), []user.Change{{ID: 7, OptOuts: new(delivery.SMS.Bit() | delivery.Email.Bit())}}); err != nil {
		t.Fatal(err)
	}
	address := g.url + token(7, delivery.Email)
	for body, want := range map[string]uint8{
		"action=save&channel=email":             delivery.SMS.Bit() | delivery.App.Bit(),
		"action=save&channel=email&channel=app": delivery.SMS.Bit(),
		"action=save&channel=sms&channel=x":     delivery.SMS.Bit() | delivery.App.Bit() | delivery.Email.Bit(),
	} {
		if res, _ := ask(t, http.MethodPost, address, form, strings.NewReader(body)); res.StatusCode != http.StatusSeeOther || g.off(7) != want {
			t.Errorf("%s: %d, off %05b, want %05b", body, res.StatusCode, g.off(7), want)
		}
	}
}

func TestRefusals(t *testing.T) {
	g := newFixture(t)
	good := g.url + token(7, delivery.Email)
	for _, c := range []struct {
		method, url, body string
		want              int
	}{
		{"GET", g.url + "nonsense", "", 404}, {"POST", g.url + "nonsense", "List-Unsubscribe=One-Click", 404}, {"GET", g.url, "", 404},
		{"GET", g.url + "a/b", "", 404}, {"GET", g.url + "%00%ff", "", 404}, {"DELETE", good, "", 404},
		{"GET", g.url + user.NewLinks(secret).Token(7, 9), "", 404}, // no such channel
		{"POST", good, "", 422}, {"POST", good, "%zz", 422}, {"POST", good, strings.Repeat("x=y&", 10_000), 422},
		{"POST", good, "List-Unsubscribe=Two-Clicks", 422},
	} {
		if res, text := ask(t, c.method, c.url, form, strings.NewReader(c.body)); res.StatusCode != c.want || len(text) == 0 {
			t.Errorf("%s %s %.30s: %d, want %d", c.method, c.url, c.body, res.StatusCode, c.want)
		}
	}
	if g.off(7) != 0 {
		t.Errorf("off %05b", g.off(7))
	}
}

// A client that guesses links is throttled; users with valid links are not.
func TestRates(t *testing.T) {
	g := newFixture(t)
	var last *http.Response
	for range 125 {
		last, _ = ask(t, http.MethodGet, g.url+"guess", "", nil)
	}
	if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" {
		t.Fatalf("guessing: %d", last.StatusCode)
	}
	if res, _ := ask(t, http.MethodGet, g.url+token(7, delivery.Email), "", nil); res.StatusCode != 200 {
		t.Fatalf("a valid link: %d", res.StatusCode)
	}
	for range 65 {
		last, _ = ask(t, http.MethodGet, g.url+token(8, delivery.Email), "", nil)
	}
	if last.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("one link again and again: %d", last.StatusCode)
	}
}

// failingStore returns err.
type failingStore struct{ err error }

func (a failingStore) Preferences(context.Context, user.ID) (user.User, error) {
	return user.User{}, a.err
}
func (a failingStore) OptOut(context.Context, user.ID, uint8, uint8) (uint8, error) {
	return 0, a.err
}

func TestTrouble(t *testing.T) {
	for _, err := range []error{postgres.ErrUnavailable, errors.New("a defect")} {
		base := serve(t, links.Deps{Users: failingStore{err}})
		for method, body := range map[string]url.Values{"GET": nil, "POST": {"List-Unsubscribe": {"One-Click"}}} {
			res, text := ask(t, method, base+token(7, delivery.Email), form, strings.NewReader(body.Encode()))
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !strings.Contains(text, "Not possible right now") {
				t.Errorf("%s %v: %d", method, err, res.StatusCode)
			}
		}
	}
}

// TestEndOfAStandingReservation: the page of an unsubscribe link ends a standing reservation with one press.
func TestEndOfAStandingReservation(t *testing.T) {
	g := newFixture(t)
	for _, sql := range []string{`insert into shops (number, name, timezone) values (10, 'Tea', 'UTC')`,
		`insert into series (shop_number, name, rule, starts_on, clock, content) values (10, 'Evenings', 'FREQ=DAILY', '2027-01-01', 0, '{}')`} {
		if _, err := g.series.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ten, err := reminder.NewReminder(delivery.App, 10)
	musttest.OK(t, err)
	if _, err := g.series.Stand(t.Context(), 1, 7, reminder.BitmapOf(ten)); err != nil {
		t.Fatal(err)
	}
	address := g.url + token(7, delivery.Email)
	if res, body := ask(t, http.MethodGet, address, "", nil); res.StatusCode != 200 || !strings.Contains(body, "End reminders of “Evenings”") {
		t.Errorf("the page: %d %s", res.StatusCode, body)
	}
	if _, body := ask(t, http.MethodGet, g.url+token(8, delivery.Email), "", nil); strings.Contains(body, "Evenings") {
		t.Error("another user sees the standing reservation")
	}
	for range 2 {
		form := url.Values{"action": {"end"}, "series": {"1"}}
		if res, body := ask(t, http.MethodPost, address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode())); res.StatusCode != http.StatusSeeOther {
			t.Errorf("the press: %d %s", res.StatusCode, body)
		}
	}
	if list, err := g.series.StandingOf(t.Context(), 7, 0); err != nil || len(list) != 0 {
		t.Errorf("%d standing reservations are left, %v", len(list), err)
	}
	for _, typed := range []string{"", "x", "99"} {
		form := url.Values{"action": {"end"}, "series": {typed}}
		if res, _ := ask(t, http.MethodPost, address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode())); res.StatusCode != 422 && res.StatusCode != 404 {
			t.Errorf("series %q: %d", typed, res.StatusCode)
		}
	}
}
