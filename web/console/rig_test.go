package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/passkey"
	"dropbell/adapters/postgres"
	tables "dropbell/adapters/sheet"
	"dropbell/adapters/totp"
	"dropbell/domain/campaign"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console/access"
	"dropbell/web/console/shell"
)

const password = "a good password"

// quick stands in for Argon2, which takes its time on purpose.
type quick struct{}

func (quick) Hash(_ context.Context, p string) (string, error) {
	h := sha256.Sum256([]byte(p))
	return hex.EncodeToString(h[:]), nil
}

func (q quick) Matches(ctx context.Context, p, hash string) (bool, error) {
	h, _ := q.Hash(ctx, p)
	return h == hash, nil
}

// rig is a console on a real, empty database.
type rig struct {
	*testing.T
	*Console
	server  *httptest.Server
	db      *postgres.DB
	sql     *pgxpool.Pool
	reserve *postgres.Reservations

	mu       sync.Mutex
	ahead    time.Duration // how far the console's clock runs ahead
	provokes string        // what the test makes the console complain about
}

// provoke lets the console log errors about this, until the test ends.
func (g *rig) provoke(words string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.provokes = words
}

func newRig(t *testing.T, change ...func(*Deps)) *rig {
	t.Helper()
	databaseURL := localstack.Database(t)
	db, err := postgres.Open(t.Context(), databaseURL, postgres.Options{AppName: "console-test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	sql, err := pgxpool.New(context.WithoutCancel(t.Context()), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sql.Close)
	g := &rig{T: t, db: db, sql: sql, reserve: postgres.NewReservations(db, postgres.Grouping{})}
	t.Cleanup(g.reserve.Close)
	d := g.deps()
	for _, c := range change {
		c(&d)
	}
	g.Console = New(d)
	g.server = httptest.NewServer(g.Console)
	t.Cleanup(g.server.Close)
	t.Cleanup(g.Console.Close)
	return g
}

func (g *rig) deps() Deps {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		g.Fatal(err)
	}
	store := postgres.NewTemplates(g.db)
	configured := delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS)
	reminders := &reminder.Service{Store: g.reserve, Templates: store, Channels: configured, Now: g.now}
	people := g.staffService()
	often := func() staff.Throttle { return shell.NewThrottle(1000, time.Millisecond, g.now) }
	return Deps{
		Deps: shell.Deps{Staff: people, ShopList: store, Sessions: postgres.NewSessions(g.db), PublicURL: "http://127.0.0.1",
			DefaultZone: shanghai, Now: g.now, Log: slog.New(slog.NewTextHandler(failOnError{g}, nil))},
		Access:        access.Deps{Staff: people, Audit: postgres.NewAudit(g.db), Shops: store, Throttle: often(), Guesses: often(), AllGuesses: often()},
		DeadLetters:   &delivery.DeadLetters{Store: postgres.NewDeadLetters(g.db)},
		Explainer:     &reminder.Explainer{Store: g.reserve, Coupons: postgres.NewCouponSteps(g.db), Reminders: reminders},
		Forecaster:    &reminder.Forecaster{Store: postgres.NewForecasts(g.db), Now: g.now},
		Announcements: &reminder.Announcements{Store: postgres.NewAnnouncements(g.db), Now: g.now},
		Campaigns:     campaignsOf(g, store, configured),
		Sales:         postgres.NewLedgers(g.db),
		Stock:         gate.Whereabouts{Plans: postgres.NewGates(g.db)},
		Receipts:      &reminder.Receipts{Store: postgres.NewBoards(g.db)},
		Jobs:          &job.Service{Store: postgres.NewJobs(g.db)}, Uploads: postgres.NewUploads(g.db),
		Ledger:  &delivery.Ledger{Store: postgres.NewLedger(g.db)},
		Codes:   &redeemcode.Service{Store: postgres.NewCodes(g.db), Keys: codeKeys(g.T), Now: g.now},
		Bulks:   &template.Bulks{Templates: &template.Service{Store: store, Now: g.now}, Jobs: &job.Service{Store: postgres.NewJobs(g.db)}},
		Grants:  &coupon.Grants{Store: postgres.NewGrants(g.db), Jobs: &job.Service{Store: postgres.NewJobs(g.db)}, Now: g.now},
		Coupons: &coupon.Desk{Store: postgres.NewCouponSteps(g.db)}, Notices: postgres.NewNotices(g.db), Tallies: postgres.NewCouponTallies(g.db),

		Cockpits: postgres.NewCockpits(g.db), Control: &delivery.Control{Store: postgres.NewChannels(g.db), Now: g.now},
		Tests: &delivery.ChannelTests{Store: postgres.NewChannelTests(g.db), Configured: configured},
		Circuits: func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
			for i := range all {
				all[i].State = delivery.CircuitClosed
			}
			return all, nil
		},

		People:   &user.Service{Store: postgres.NewUsers(g.db)},
		Letters:  &campaign.Letters{Store: postgres.NewCampaigns(g.db)},
		Segments: &segment.Service{Store: postgres.NewSegments(g.db), Jobs: &job.Service{Store: postgres.NewJobs(g.db)}, Tables: tables.Tables{Open: postgres.NewUploads(g.db).OpenUpload}},
		Tables:   tables.Tables{Open: postgres.NewUploads(g.db).OpenUpload},

		Templates: &template.Service{Store: store, Now: g.now},
		Reminders: reminders, Inbox: &inbox.Service{Store: postgres.NewInbox(g.db)},
		Board: postgres.NewBoards(g.db), Users: postgres.NewUsers(g.db), Audit: postgres.NewAudit(g.db), Shops: store,
		Settings: postgres.NewChannels(g.db), DeadMessages: postgres.NewDeadMessages(g.db), Channels: configured,
		Monitor: func(writable bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "queues writable=%v %s", writable, r.Method)
			})
		},
	}
}

// staffService demands no second factors; tests that are about them change that.
func (g *rig) staffService() *staff.Service {
	codes, err := totp.New()
	g.must(err)
	return &staff.Service{Store: postgres.NewStaff(g.db), Passwords: quick{}, Codes: codes, Passkeys: passkey.Passkeys{},
		FixedPolicy: staff.Optional, Now: g.now}
}

// failOnError fails the test that makes the console log an error, unless that
// is what the test provokes.
type failOnError struct{ *rig }

func (f failOnError) Write(p []byte) (int, error) {
	f.mu.Lock()
	// The log quotes what has quotes in it.
	provoked := f.provokes != "" && strings.Contains(strings.ReplaceAll(string(p), `\"`, `"`), f.provokes)
	f.mu.Unlock()
	if strings.Contains(string(p), "level=ERROR") && !provoked {
		f.Errorf("console logged: %s", p)
	}
	return len(p), nil
}

func (g *rig) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Add(g.ahead).UTC().Truncate(time.Microsecond)
}

func (g *rig) wait(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ahead += d
}

func (g *rig) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *rig) exec(sql string, args ...any) {
	g.Helper()
	_, err := g.sql.Exec(g.Context(), sql, args...)
	g.must(err)
}

// hire gives somebody access and returns their address.
func (g *rig) hire(role staff.Role, shops ...int64) staff.Member {
	g.Helper()
	m, token, err := g.Staff.CreateMember(g.Context(), staff.System(), staff.MemberInput{Name: "The " + string(role),
		Email: fmt.Sprintf("%s%d@example.com", role, time.Now().UnixNano()), Role: role, Shops: shops})
	g.must(err)
	m, in, err := g.Staff.SetPasswordByLink(g.Context(), token, password, staff.Client{})
	g.must(err)
	g.exec(`delete from sign_ins where id = $1`, in.ID) // the browser that set the password was somewhere else
	g.exec(`delete from audit where action in ('staff.password_set', 'staff.sign_in') and object_id = $1::bigint::text`, m.ID)
	return m
}

// shop makes a shop in Berlin, which puts its clocks forward and back.
func (g *rig) shop(number int64) {
	g.Helper()
	g.must(postgres.NewTemplates(g.db).ChangeShop(g.Context(), template.Shop{Number: number, Name: fmt.Sprintf("Shop %d", number), Timezone: "Europe/Berlin"}, staff.Entry{Actor: staff.System(), Action: "shop.save"}))
}

func (g *rig) spec(shop int64, opensIn time.Duration) template.Spec {
	opens := g.now().Add(opensIn).Truncate(time.Second)
	return template.Spec{ShopNumber: shop, Name: "Moon cake night", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY", Target: template.WholeShop,
		Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour), ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}
}

func (g *rig) draft(shop int64, opensIn time.Duration) template.Template {
	g.Helper()
	g.shop(shop)
	t, err := g.Templates.Create(g.Context(), staff.System(), g.spec(shop, opensIn), "")
	g.must(err)
	return t
}

func (g *rig) published(shop int64, opensIn time.Duration) template.Template {
	g.Helper()
	t, err := g.Templates.Do(g.Context(), staff.System(), g.draft(shop, opensIn).ID, 0, template.Publishing, "")
	g.must(err)
	return t
}

// book reserves and counts it on the board, as the worker would.
func (g *rig) book(t template.Template, by user.ID, c delivery.Channel, minutes ...int) {
	g.Helper()
	var list []reminder.Reminder
	for _, m := range minutes {
		r, err := reminder.NewReminder(c, m)
		g.must(err)
		list = append(list, r)
		g.exec(`insert into bookings values ($1, $2, $3, 1) on conflict (template_id, slot, channel) do update set booked = bookings.booked + 1`,
			t.ID, int(r.Slot), int(c))
	}
	_, _, err := g.Reminders.Reserve(g.Context(), reminder.Request{TemplateID: t.ID, UserID: by, ShopNumber: t.ShopNumber, Reminders: list})
	g.must(err)
}

// browser is one person's browser without scripts.
type browser struct {
	*rig
	client *http.Client
	header http.Header
	// live, if set, is listened to instead of a template's page.
	live string
}

func (g *rig) browser() *browser {
	jar, err := cookiejar.New(nil)
	g.must(err)
	return &browser{rig: g, header: http.Header{}, client: &http.Client{Jar: jar, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as returns the browser of somebody with this role who has signed in.
func (g *rig) as(role staff.Role, shops ...int64) *browser {
	g.Helper()
	b := g.browser()
	b.signIn(g.hire(role, shops...).Email)
	return b
}

func (b *browser) signIn(email string) {
	b.Helper()
	b.post("/signin", url.Values{"email": {email}, "password": {password}}).is(http.StatusSeeOther)
}

// answer is what came back.
type answer struct {
	*testing.T
	what   string
	status int
	header http.Header
	body   string
}

func (b *browser) do(method, path string, form url.Values) answer {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+path, body)
	b.must(err)
	req.Header = b.header.Clone()
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(req)
	b.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	b.must(err)
	return answer{b.T, method + " " + path, res.StatusCode, res.Header, string(text)}
}

func (b *browser) get(path string) answer { b.Helper(); return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) answer {
	b.Helper()
	if form == nil {
		form = url.Values{}
	}
	return b.do(http.MethodPost, path, form)
}

// version returns the version that somebody sees who is asked whether to
// publish the page's template or campaign.
func (b *browser) version(page string) string {
	b.Helper()
	return b.get(page + "/publish").is(http.StatusOK).field("version")
}

func (a answer) is(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: status %d, want %d\n%s", a.what, a.status, status, a.text())
	}
	return a
}

func (a answer) to(path string) answer {
	a.Helper()
	a.is(http.StatusSeeOther)
	if got := a.header.Get("Location"); got != path {
		a.Fatalf("%s: leads to %q, want %q", a.what, got, path)
	}
	return a
}

func (a answer) has(words ...string) answer {
	a.Helper()
	for _, w := range words {
		if !strings.Contains(a.body, w) && !strings.Contains(a.text(), w) {
			a.Errorf("%s: %q is missing in\n%s", a.what, w, a.text())
		}
	}
	return a
}

func (a answer) hasNot(words ...string) answer {
	a.Helper()
	for _, w := range words {
		if strings.Contains(a.body, w) {
			a.Errorf("%s: %q should not be in\n%s", a.what, w, a.text())
		}
	}
	return a
}

var (
	headOrMarkup = regexp.MustCompile(`(?s)<head>.*?</head>|<[^>]*>`)
	blank        = regexp.MustCompile(`\s+`)
)

// text is what a person reads.
func (a answer) text() string {
	return strings.TrimSpace(blank.ReplaceAllString(headOrMarkup.ReplaceAllString(a.body, " "), " "))
}

var inputPattern = regexp.MustCompile(`<(?:input|textarea|select)[^>]*\bname="([^"]+)"[^>]*>`)

// field returns the value of a field of the page's form.
func (a answer) field(name string) string {
	a.Helper()
	m := regexp.MustCompile(`<input[^>]*\bname="` + regexp.QuoteMeta(name) + `"[^>]*\bvalue="([^"]*)"`).FindStringSubmatch(a.body)
	if m == nil {
		a.Fatalf("%s: there is no field %q among %v", a.what, name, inputPattern.FindAllStringSubmatch(a.body, -1))
	}
	return m[1]
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within ten seconds", what)
		}
		<-time.After(time.Millisecond)
	}
}

func memberPage(id int64) string { return fmt.Sprintf("/staff/%d", id) }
