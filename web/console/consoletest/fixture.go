// Package consoletest is the fixture of the console's tests: a console with a database of its own,
// browsers with and without scripts, and the work outside the console, such as deliveries and jobs.
// Test packages that use it run in parallel.
package consoletest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/lookup"
	"dropbell/adapters/passkey"
	pictureadapter "dropbell/adapters/picture"
	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	tables "dropbell/adapters/sheet"
	"dropbell/adapters/totp"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/draw"
	"dropbell/domain/event/hook"
	"dropbell/domain/forecast"
	"dropbell/domain/job"
	"dropbell/domain/picture"
	"dropbell/domain/reminder"
	"dropbell/domain/seal"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
	"dropbell/web/console"
	"dropbell/web/console/access"
	consoledelivery "dropbell/web/console/delivery"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
	"dropbell/web/program/wiring"
	"dropbell/web/security"
)

// Password is the password of all members.
const Password = "a good password"

// PushKey is the VAPID key with which browsers of members subscribe.
const PushKey = "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"

// QuickPasswords replaces Argon2, which is slow on purpose.
type QuickPasswords struct{}

func (QuickPasswords) Hash(_ context.Context, p string) (string, error) {
	h := sha256.Sum256([]byte(p))
	return hex.EncodeToString(h[:]), nil
}

func (q QuickPasswords) Matches(ctx context.Context, p, hash string) (bool, error) {
	h, _ := q.Hash(ctx, p)
	return h == hash, nil
}

// Services are the use cases behind the console that tests call themselves.
type Services struct {
	Staff       *staff.Service
	Templates   *template.Service
	Bulks       *template.Bulks
	Board       reminder.BoardStore
	Reminders   *reminder.Service
	Campaigns   *campaign.Service
	Segments    *segment.Service
	DeadLetters *delivery.DeadLetters
	Settings    consoledelivery.Settings
	States      *shell.ChannelStates
	Files       *upload.Files
	Jobs        *job.Service
	Security    *security.Log
}

func servicesOf(d console.Deps) Services {
	return Services{Staff: d.Staff, Templates: d.Drops.Templates, Bulks: d.Drops.Bulks, Board: d.Drops.Board, Reminders: d.Audience.Reminders,
		Campaigns: d.Campaigns.Campaigns, Segments: d.Audience.Segments, DeadLetters: d.Delivery.DeadLetters, Settings: d.Delivery.Settings,
		States: d.Delivery.States, Files: d.Audience.Files, Jobs: d.Work.Jobs, Security: d.Security}
}

// Breakers replaces the circuit breakers of the channels by read.
func Breakers(read consoledelivery.Circuits) func(*console.Deps) {
	return func(d *console.Deps) {
		states := consoledelivery.NewStates(d.Delivery.Settings.(consoledelivery.ChannelSettings), read, d.Delivery.Channels, nil)
		d.Campaigns.States, d.Delivery.States, d.Drops.States = states, states, states
	}
}

// Fixture is a console on a real, empty database.
type Fixture struct {
	*testing.T
	*console.Console
	Services
	Server  *httptest.Server
	DB      *postgres.DB
	Stores  app.Stores
	SQL     *pgxpool.Pool // looks behind the stores, by their connections
	reserve *dropsdb.Reservations
	// Given are the dependencies of the console.
	Given console.Deps

	mu       sync.Mutex
	ahead    time.Duration // how far the console's clock runs ahead
	provokes string        // errors that the test makes the console log
}

// Provoke lets the console log errors about this, until the test ends.
func (g *Fixture) Provoke(words string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.provokes = words
}

// New returns a console with a database of its own; change changes its dependencies.
func New(t *testing.T, change ...func(*console.Deps)) *Fixture {
	t.Helper()
	return NewAt(t, localstack.Database(t), change...)
}

// NewAt is [New] with the database at the address.
func NewAt(t *testing.T, database string, change ...func(*console.Deps)) *Fixture {
	t.Helper()
	db, err := postgres.Open(t.Context(), database, postgres.Options{AppName: "console-test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	g := &Fixture{T: t, DB: db, Stores: app.NewStores(db), SQL: db.Pool, reserve: dropsdb.NewReservations(db, postgres.Grouping{})}
	t.Cleanup(g.reserve.Close)
	d := g.newDeps()
	for _, c := range change {
		c(&d)
	}
	g.Console, g.Services, g.Given = console.New(d), servicesOf(d), d
	g.Server = httptest.NewServer(g.Console)
	t.Cleanup(g.Server.Close)
	t.Cleanup(g.Console.Close)
	return g
}

func (g *Fixture) newDeps() console.Deps {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		g.Fatal(err)
	}
	configured := delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS)
	often := func() staff.Throttle { return shell.NewThrottle(1000, time.Millisecond, g.Now) }
	texts, err := lookup.NewBooks(g.Stores.Messages)
	g.Must(err)
	surroundings := wiring.Surroundings{Stores: g.Stores, Now: g.Now, Templates: g.Stores.Templates, Lookup: g.Stores.Templates, Reservations: g.reserve, Inbox: g.inbox(),
		Texts: texts, Tables: tables.Tables{Open: g.Stores.Uploads.OpenUpload}, Channels: configured, Lock: freeLock{}, QuietCounts: g.Stores.Campaigns.Waiting,
		Stock: gate.Accounts{Plans: g.Stores.Gates}, CodeKeys: CodeKeys(g.T), Forecaster: g.forecaster(), LinkSecret: LinkSecret, Draws: draw.Sources{}.Check}
	return wiring.Console{UseCases: wiring.NewUseCases(surroundings), Surroundings: surroundings,
		Shell: shell.Deps{Staff: g.staffService(), PublicURL: "http://127.0.0.1", DefaultZone: shanghai,
			Log: slog.New(slog.NewTextHandler(failOnError{g}, nil))},
		Access: access.Deps{Throttle: often(), Guesses: often(), AllGuesses: often()},
		API:    described().Pipeline, Hooks: g.Hooks(), Queues: stillQueues{},
		Monitor: func(writable bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "queues writable=%v %s", writable, r.Method)
			})
		},
		Alerts:    &alert.Service{Store: g.Stores.Alerts},
		Browsers:  alert.Browsers{Store: g.Stores.Alerts, PublicKey: PushKey, AllowLocal: true},
		Tests:     &testmessage.ChannelTests{Store: g.Stores.ChannelTests, Configured: configured},
		Providers: g.providers(),
		Circuits: func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
			for i := range all {
				all[i].State = delivery.CircuitClosed
			}
			return all, nil
		},
		Pictures:     &picture.Service{Store: g.Stores.Pictures, Files: g.Stores.PictureFiles, Converter: pictureadapter.NewConverter()},
		PicturesURL:  "https://drop.example",
		VerifiedOnly: true,
		CampaignLink: "https://drop.example/l/" + strings.Repeat("A", 46),
		DropLink: func(templateID int64, to user.ID) string {
			return reminder.NewLinks("0123456789abcdef0123456789abcdef").Example("https://drop.example", reminder.Reader{TemplateID: templateID, UserID: to})
		}}.Deps()
}

// described is the API as its document has it, which answers no requests.
var described = sync.OnceValue(func() *api.API { return api.New(api.Deps{Deps: pipeline.Deps{Now: time.Now}}) })

// LinkSecret signs the links that the console makes.
const LinkSecret = "a secret of at least thirty-two bytes"

// forecaster forecasts reminders, without limits of the environment.
func (g *Fixture) forecaster() *forecast.Forecaster {
	store := g.Stores.Forecasts
	return &forecast.Forecaster{Store: store, Past: store, Now: g.Now, Contacts: store.Verified}
}

// staffService requires no second factors; tests about second factors change that.
func (g *Fixture) staffService() *staff.Service {
	codes, err := totp.New()
	g.Must(err)
	return &staff.Service{Store: g.Stores.Staff, Passwords: QuickPasswords{}, Codes: codes, Passkeys: passkey.Passkeys{},
		FixedPolicy: staff.Optional, Now: g.Now}
}

// failOnError fails the test if the console logs an error that the test does not provoke.
type failOnError struct{ *Fixture }

func (f failOnError) Write(p []byte) (int, error) {
	f.mu.Lock()
	// The log escapes quotes.
	provoked := f.provokes != "" && strings.Contains(strings.ReplaceAll(string(p), `\"`, `"`), f.provokes)
	f.mu.Unlock()
	if strings.Contains(string(p), "level=ERROR") && !provoked {
		f.Errorf("console logged: %s", p)
	}
	return len(p), nil
}

// Now is the time of the console's clock.
func (g *Fixture) Now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Add(g.ahead).UTC().Truncate(time.Microsecond)
}

// Wait sets the console's clock forward.
func (g *Fixture) Wait(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ahead += d
}

// Must ends the test if there is an error.
func (g *Fixture) Must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// Exec executes a statement.
func (g *Fixture) Exec(sql string, args ...any) {
	g.Helper()
	_, err := g.SQL.Exec(g.Context(), sql, args...)
	g.Must(err)
}

// Hire creates a member.
func (g *Fixture) Hire(role staff.Role, shops ...int64) staff.Member {
	g.Helper()
	m, token, err := g.Staff.CreateMember(g.Context(), staff.System(), staff.MemberInput{Name: "The " + string(role),
		Email: fmt.Sprintf("%s%d@example.com", role, time.Now().UnixNano()), Role: role, Shops: shops})
	g.Must(err)
	m, in, err := g.Staff.SetPasswordByLink(g.Context(), token, Password, staff.Client{})
	g.Must(err)
	g.Exec(`delete from sign_ins where id = $1`, in.ID) // the browser that set the password was somewhere else
	g.Exec(`delete from audit where action in ('staff.password_set', 'staff.sign_in') and object_id = $1::bigint::text`, m.ID)
	return m
}

// Shop makes a shop in Berlin, which puts its clocks forward and back.
func (g *Fixture) Shop(number int64) {
	g.Helper()
	g.Must(g.Stores.Templates.ChangeShop(g.Context(), template.Shop{Number: number, Name: fmt.Sprintf("Shop %d", number), Timezone: "Europe/Berlin"}, staff.Entry{Actor: staff.System(), Action: "shop.save"}))
}

// Spec is a template of the shop that opens in a while.
func (g *Fixture) Spec(shop int64, opensIn time.Duration) template.Spec {
	opens := g.Now().Add(opensIn).Truncate(time.Second)
	return template.Spec{ShopNumber: shop, Name: "Moon cake night", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY", Target: template.WholeShop,
		Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour), ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}
}

// Draft makes a template of the shop that opens in a while.
func (g *Fixture) Draft(shop int64, opensIn time.Duration) template.Template {
	g.Helper()
	g.Shop(shop)
	t, err := g.Templates.Create(g.Context(), staff.System(), g.Spec(shop, opensIn), "")
	g.Must(err)
	return t
}

// Published makes a template of the shop that opens in a while, and publishes it.
func (g *Fixture) Published(shop int64, opensIn time.Duration) template.Template {
	g.Helper()
	t, err := g.Templates.Do(g.Context(), staff.System(), g.Draft(shop, opensIn).ID, 0, template.Publishing, "")
	g.Must(err)
	return t
}

// Book reserves a reminder and counts it on the board, as the worker would.
func (g *Fixture) Book(t template.Template, by user.ID, c delivery.Channel, minutes ...int) {
	g.Helper()
	var list []reminder.Reminder
	for _, m := range minutes {
		r, err := reminder.NewReminder(c, m)
		g.Must(err)
		list = append(list, r)
		g.Exec(`insert into bookings values ($1, $2, $3, 1) on conflict (template_id, slot, channel) do update set booked = bookings.booked + 1`,
			t.ID, int(r.Slot), int(c))
	}
	_, _, err := g.Reminders.Reserve(g.Context(), reminder.Request{TemplateID: t.ID, UserID: by, ShopNumber: t.ShopNumber, Reminders: list})
	g.Must(err)
}

// Within waits until ok returns true, and ends the test if that never happens. The interval between
// calls grows, so that the calls do not delay the awaited result.
func Within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	began, patience := time.Now(), localstack.Patience(t)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 16*time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-time.After(pause)
	}
}

// MemberPage is the page of a member.
func MemberPage(id int64) string { return fmt.Sprintf("/staff/%d", id) }

// providers are the providers of the console, whose circuits are closed.
func (g *Fixture) providers() consoledelivery.Providers {
	box, err := seal.New(provider.SealPurpose, "a key of at least thirty-two bytes")
	if err != nil {
		g.Fatal(err)
	}
	service := &provider.Service{Store: g.Stores.Providers, Box: box, Keyed: true, Check: judged, IsCountry: func(c string) bool { return len(c) == 2 }}
	return consoledelivery.Providers{Service: service, Trials: &testmessage.Trials{Store: g.Stores.ChannelTests, Providers: service, Now: g.Now, Sender: trialSender},
		Circuits:   func(context.Context, []provider.Provider) (map[int64]delivery.Circuit, error) { return nil, nil },
		ReportsURL: func(p provider.Provider) string { return "" }}
}

// Hooks are the webhook endpoints of the console; addresses may be private.
func (g *Fixture) Hooks() *hook.Service {
	box, err := seal.New(hook.SealPurpose)
	if err != nil {
		g.Fatal(err)
	}
	return &hook.Service{Store: g.Stores.Hooks, Box: box, Insecure: true, Now: g.Now, Wake: func(context.Context, int64) {}}
}

// inbox returns a store of inboxes that ends with the test.
func (g *Fixture) inbox() deliverydb.Inbox {
	store := deliverydb.NewInbox(g.DB, postgres.Grouping{})
	g.Cleanup(store.Close)
	return store
}
