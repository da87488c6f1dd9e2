package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"dropbell/adapters/localstack"
	pictureadapter "dropbell/adapters/picture"
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	audiencedb "dropbell/adapters/postgres/audience"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	messagesdb "dropbell/adapters/postgres/messages"
	workdb "dropbell/adapters/postgres/work"
	tables "dropbell/adapters/sheet"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/budget"
	"dropbell/domain/cart"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/event/hook"
	"dropbell/domain/forecast"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/message"
	"dropbell/domain/pass"
	"dropbell/domain/picture"
	"dropbell/domain/redeemcode"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/review"
	"dropbell/domain/seal"
	"dropbell/domain/segment"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/user/verification"
	"dropbell/domain/waitlist"
	"dropbell/web/api"
	"dropbell/web/api/audience"
	"dropbell/web/api/coupons"
	apidelivery "dropbell/web/api/delivery"
	"dropbell/web/api/drops"
	"dropbell/web/api/pipeline"
	"dropbell/web/api/work"
	"dropbell/web/middleware"
)

const secret = "a-secret-of-32-bytes-for-tests-only"

// fixture is the whole API, as the server mounts it, over a database of its own.
type fixture struct {
	testing.TB
	http.Handler
	api  *api.API
	hub  *apidelivery.Hub
	db   *postgres.DB
	sql  *pgxpool.Pool
	logs *bytes.Buffer
	// keys are secrets of service keys by scope.
	keys map[staff.Scope]string
	// late moves the clock of the API, not the database's.
	late atomic.Int64
	// about names the case being tried, for messages.
	about string
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (r *fixture) now() time.Time { return now().Add(time.Duration(r.late.Load())) }

// newFixture returns a fixture; change, if not nil, may replace its dependencies.
func newFixture(t testing.TB, change func(*api.Deps)) *fixture {
	t.Helper()
	url := localstack.Database(t)
	r := &fixture{TB: t, hub: &apidelivery.Hub{}, logs: &bytes.Buffer{}, keys: map[staff.Scope]string{}}
	log := slog.New(slog.NewJSONHandler(r.logs, nil))
	way, options := url, postgres.Options{AppName: "test", Log: log, TransactionIdle: time.Hour}
	if strings.HasPrefix(t.Name(), "TestThroughATransactionPooler/") {
		way, options.TransactionPool = localstack.TransactionPooler(t, url, 2), true
	}
	db, err := postgres.Open(context.Background(), way, options)
	r.must(err)
	t.Cleanup(db.Close)
	r.db, r.sql = db, db.Pool // which saves the server a session
	if options.TransactionPool {
		r.sql, err = pgxpool.New(context.Background(), url)
		r.must(err)
		t.Cleanup(r.sql.Close)
	}
	r.build(log, change)
	r.makeKeys()
	return r
}

// second returns another process over the same database.
func (r *fixture) second() *fixture {
	other := &fixture{TB: r.TB, hub: &apidelivery.Hub{}, db: r.db, sql: r.sql, logs: &bytes.Buffer{}, keys: r.keys}
	other.build(slog.New(slog.NewJSONHandler(other.logs, nil)), nil)
	return other
}

// pushKey is the key with which browsers subscribe.
const pushKey = "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM"

func (r *fixture) build(log *slog.Logger, change func(*api.Deps)) {
	templates, reservations := dropsdb.NewTemplates(r.db), dropsdb.NewReservations(r.db, postgres.Grouping{})
	r.Cleanup(reservations.Close)
	channels := delivery.ChannelSetOf(delivery.App, delivery.Email)
	tokens, err := pipeline.NewTokens(context.Background(), pipeline.TokenOptions{Secret: secret, Now: r.now, Log: log})
	r.must(err)
	entries := dropsdb.NewEntries(r.db, postgres.Grouping{})
	r.Cleanup(entries.Close)
	drawKeys, err := draw.NewKeys(secret)
	r.must(err)
	service, jobs, uploads := &template.Service{Store: templates, Now: r.now, Draws: draw.Sources{}.Check}, &job.Service{Store: workdb.NewJobs(r.db)}, workdb.NewUploads(r.db)
	users, steps, forecasts := &user.Service{Store: audiencedb.NewUsers(r.db)}, couponsdb.NewCouponSteps(r.db), dropsdb.NewForecasts(r.db)
	reminders := &reminder.Service{Store: reservations, Templates: templates, Channels: channels, Now: r.now}
	claims := couponsdb.NewClaims(r.db, postgres.Grouping{})
	r.Cleanup(claims.Close)
	waits := &waitlist.Service{Store: couponsdb.NewWaitlists(r.db, postgres.Grouping{}), Templates: currentTemplates{templates}, Channels: channels, Erased: func(user.ID) bool { return false }, Now: r.now}
	r.Cleanup(waits.Store.(*couponsdb.Waitlists).Close)
	payments := couponsdb.NewPayments(r.db, postgres.Grouping{})
	r.Cleanup(payments.Close)
	carts := couponsdb.NewCarts(r.db, postgres.Grouping{})
	r.Cleanup(carts.Close)
	box := deliverydb.NewInbox(r.db, postgres.Grouping{})
	r.Cleanup(box.Close)
	sealed, err := seal.New(hook.SealPurpose)
	r.must(err)
	own := newCampaigns(r, templates, users)
	members := &door.Members{Store: audiencedb.NewDoors(r.db), Now: r.now}
	waits.Members = members
	doors := &door.Service{Store: templates, Templates: service, Members: members.Store, Segments: audiencedb.NewSegments(r.db), Now: r.now}
	service.Ready = doors.Ready
	d := api.Deps{
		Deps: pipeline.Deps{Keys: accessdb.NewStaff(r.db), Tokens: tokens, Idempotency: workdb.NewIdempotency(r.db), Now: r.now, Log: log},
		Audience: audience.Deps{Users: users, Uploads: uploads, PushKey: pushKey,
			Segments: &segment.Service{Store: audiencedb.NewSegments(r.db), Jobs: jobs, Tables: tables.Tables{Open: uploads.OpenUpload}},
			Phones: &verification.Service{Store: audiencedb.NewVerifications(r.db), Users: audiencedb.NewUsers(r.db), Keys: verification.NewKeys(secret), Sends: func() bool { return true },
				Numbers: verification.Numbers{Usual: sms.Number, Forms: sms.Forms, Country: sms.CountryOf}}},
		Campaigns: own,
		Coupons: coupons.Deps{Orders: &coupon.Orders{Store: couponsdb.NewOrders(r.db), Now: r.now}, Templates: service, Uploads: uploads, Coupons: &coupon.Service{Store: payments, LockFor: coupon.DefaultLock}, CouponAdmin: &coupon.Admin{Store: steps}, Carts: &cart.Service{Store: carts, Templates: uncached{templates}}, CartOrders: &cart.Orders{Store: payments, LockFor: coupon.DefaultLock},
			Claims: &claim.Service{Gate: claim.Doors{Gate: claims, Templates: uncached{templates}, Members: members, Now: r.now}, Finders: []claim.Finder{claims}, Owned: claims, Random: rand.Uint64, Waits: func(ctx context.Context, id int64) bool {
				t, err := templates.Template(ctx, id)
				return err == nil && waitlist.Open(t, r.now())
			}},
			Waitlist: waits,
			Codes:    &redeemcode.Service{Store: couponsdb.NewCodes(r.db), Keys: codeKeys(r), Now: r.now},
			Redeemer: &redeemcode.Redeemer{Keys: codeKeys(r), Batches: couponsdb.NewCodes(r.db), Marks: &memoryMarks{used: map[redeemcode.Serial]bool{}}, Gate: claims, Uses: couponsdb.NewCodes(r.db),
				NewID: func(templateID int64) claim.ID { return claim.NewID(rand.Uint64(), templateID) }},
			Grants: &coupon.Grants{Store: couponsdb.NewGrants(r.db), Jobs: jobs, Now: r.now}},
		Delivery: apidelivery.Deps{Inbox: &inbox.Service{Store: box}, Hub: r.hub, DeadLetters: &delivery.DeadLetters{Store: deliverydb.NewDeadLetters(r.db)},
			Suppressions: &feedback.Suppressions{Store: deliverydb.NewSuppressions(r.db)}},
		Drops: drops.Deps{Templates: service, Doors: doors, DoorMembers: members, Flight: r.flights(doors, forecasts, channels), Rehearsals: &rehearsal.Service{Store: app.NewStores(r.db).Rehearsals, Templates: service, Quiet: time.Hour, Now: r.now}, Shops: templates, Messages: &message.Service{Store: messagesdb.NewMessages(r.db)},
			Pictures: &picture.Service{Store: messagesdb.NewPictures(r.db), Files: messagesdb.NewPictureFiles(r.db), Converter: pictureadapter.NewConverter()},
			Board:    dropsdb.NewBoards(r.db), Cockpits: dropsdb.NewCockpits(r.db), Reminders: reminders, Series: &series.Service{Store: dropsdb.NewSeries(r.db), Models: template.Models{Store: dropsdb.NewModels(r.db), Templates: service}, Templates: service, Now: r.now}, Standing: &series.Reservations{Store: dropsdb.NewSeries(r.db), Channels: channels}, Channels: channels,
			Draws: &draw.Service{Store: entries, Templates: templates, Keys: drawKeys, Members: members, Channels: channels, Gate: claims, Random: rand.Uint64,
				Admit: func(t *template.Template, by user.ID, text string) error { return passKeys.Admit(t, by, text, r.now()) }}, DrawDesk: &draw.Desk{Store: entries.Draws, Templates: service},
			Stock:     drops.Stock{Accounts: gate.Accounts{Plans: couponsdb.NewGates(r.db)}, Ledgers: couponsdb.NewLedgers(r.db), Tallies: couponsdb.NewCouponTallies(r.db), Figures: app.NewStores(r.db).Figures()},
			Budgets:   &budget.Service{Store: dropsdb.NewBudgets(r.db), Templates: service, Campaigns: own.Campaigns},
			Earnings:  &report.Service{Templates: service, Reminders: dropsdb.NewCockpits(r.db), Money: dropsdb.NewReports(r.db), Now: r.now},
			Explainer: &reminder.Explainer{Store: reservations, Coupons: steps, Reminders: reminders},
			Forecaster: &forecast.Forecaster{Store: forecasts, Past: forecasts, Now: r.now, Contacts: func(ctx context.Context, ids []int64) (map[int64]forecast.Contacts, error) {
				return forecasts.Contacts(ctx, ids, false)
			}}},
		Work: work.Deps{Jobs: jobs, Hooks: &hook.Service{Store: workdb.NewHooks(r.db), Box: sealed, Now: r.now, Wake: func(context.Context, int64) {}}, Closing: r.hub.Closed},
	}
	d.Coupons.Access = &redeemcode.Access{Codes: d.Coupons.Redeemer, Store: couponsdb.NewCodes(r.db), Templates: templates, Bound: members.Forget}
	reminders.Doors = members
	d.Coupons.ClaimPasses = &pass.Passes{Keys: passKeys, Templates: templates, Phones: d.Audience.Phones, Texts: func() bool { return true }, Now: r.now}
	d.Coupons.Reviews = &review.Service{Store: couponsdb.NewReviews(r.db), Templates: templates, Now: r.now}
	d.Drops.Capacities = &forecast.Capacities{Store: forecasts, Campaigns: app.NewStores(r.db).Campaigns.Ahead, Forecaster: d.Drops.Forecaster, Now: r.now}
	if change != nil {
		change(&d)
	}
	r.api = api.New(d)
	root := chi.NewMux()
	root.Use(middleware.Requests(middleware.Options{Log: slog.New(slog.DiscardHandler)}))
	root.MethodNotAllowed(r.api.MethodNotAllowed)
	root.Mount("/api/v1", r.api)
	root.Get("/openapi.json", r.api.ServeOpenAPI)
	r.Handler = root
}

func (r *fixture) makeKeys() {
	for _, scopes := range [][]staff.Scope{{staff.ScopeAdmin}, {staff.ScopeActAsUser}, {staff.ScopePayment}, {staff.ScopeRead}} {
		r.keys[scopes[0]] = r.key(staff.Key{Scopes: scopes})
	}
}

// key stores a service key and returns its secret.
func (r *fixture) key(k staff.Key) string {
	r.Helper()
	s := staff.NewSecret()
	k.Name, k.Prefix, k.CreatedBy = "test", s[:8], "test"
	_, err := accessdb.NewStaff(r.db).InsertKey(context.Background(), k, staff.HashSecret(s), "", staff.Entry{Actor: staff.System(), Action: "key.create"})
	r.must(err)
	return s
}

func (r *fixture) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *fixture) exec(sql string, args ...any) {
	r.Helper()
	_, err := r.sql.Exec(context.Background(), sql, args...)
	r.must(err)
}

func (r *fixture) number(sql string, args ...any) (n int64) {
	r.Helper()
	r.must(r.sql.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// token returns a good token of the user.
func token(id any) string {
	return sign(jwa.HS256(), []byte(secret), map[string]any{"sub": fmt.Sprint(id), "exp": time.Now().Add(time.Hour).Unix()})
}

func sign(alg jwa.SignatureAlgorithm, key any, claims map[string]any) string {
	t := jwt.New()
	for k, v := range claims {
		if err := t.Set(k, v); err != nil {
			panic(err)
		}
	}
	b, err := jwt.Sign(t, jwt.WithKey(alg, key))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// answer is a response with its body in JSON, if it is.
type answer struct {
	*httptest.ResponseRecorder
	json map[string]any
}

func (a answer) code() string { s, _ := a.json["code"].(string); return s }

// at returns a value inside the body: "reminders.0.channel".
func (a answer) at(path string) any {
	var v any = a.json
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// as names the caller: a credential and further headers, in pairs.
func as(credential string, headers ...string) http.Header {
	h := http.Header{}
	if credential != "" {
		h.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return h
}

// call sends a request; body is a string, or anything to be sent as JSON.
func (r *fixture) call(who http.Header, method, path string, body any) answer {
	r.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	case io.Reader:
		content = b
	default:
		j, err := json.Marshal(b)
		r.must(err)
		content = bytes.NewReader(j)
	}
	q := httptest.NewRequest(method, "/api/v1"+path, content)
	for k, v := range who {
		q.Header[k] = v
	}
	if body != nil && q.Header.Get("Content-Type") == "" {
		q.Header.Set("Content-Type", "application/json")
		if path == "/admin/users" {
			q.Header.Set("Content-Type", "application/x-ndjson")
		}
	}
	w := httptest.NewRecorder()
	if p := r.through(); p != nil {
		w = p.send(r, q)
	} else {
		r.ServeHTTP(w, q)
	}
	a := answer{ResponseRecorder: w}
	if strings.Contains(w.Header().Get("Content-Type"), "json") {
		if err := json.Unmarshal(w.Body.Bytes(), &a.json); err != nil {
			r.Fatalf("%s %s answered what is not JSON: %v: %q", method, path, err, w.Body)
		}
	}
	r.conforms(method, path, a)
	return a
}

// want fails unless the answer has the status and, for an error, the code.
func (r *fixture) want(a answer, status int, code string) answer {
	r.Helper()
	if a.Code != status || a.code() != code {
		r.Fatalf("%s: got %d %q, want %d %q: %s\nlog: %s", r.about, a.Code, a.code(), status, code, a.Body, r.logs)
	}
	if code != "" && a.Header().Get("Content-Type") != "application/problem+json" {
		r.Fatalf("an error is sent as %q", a.Header().Get("Content-Type"))
	}
	return a
}

func (r *fixture) admin(headers ...string) http.Header {
	return as(r.keys[staff.ScopeAdmin], headers...)
}

// wish is a valid template that opens after the given time.
func wish(opensIn time.Duration) map[string]any {
	opens := now().Add(opensIn).Truncate(time.Second)
	return map[string]any{"shop_number": "10", "name": "20 off", "kind": "amount_off", "amount_off": 2000, "currency": "CNY",
		"stock": 100, "opens_at": opens, "closes_at": opens.Add(time.Hour), "valid_hours": 48}
}

// draft creates a template and returns its id.
func (r *fixture) draft(opensIn time.Duration) string {
	r.Helper()
	return r.want(r.call(r.admin(), "POST", "/admin/templates", wish(opensIn)), 201, "").json["id"].(string)
}

// drop creates and publishes a template and returns its id.
func (r *fixture) drop(opensIn time.Duration) string {
	r.Helper()
	id := r.draft(opensIn)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	return id
}

// reserve is a valid reservation: "app", 10, "email", 5.
func reserve(id string, pairs ...any) map[string]any {
	var list []map[string]any
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]any{"channel": pairs[i], "minutes": pairs[i+1]})
	}
	return map[string]any{"template_id": id, "shop_number": "10", "reminders": list}
}

// conforms fails unless the document says that the operation can answer so.
func (r *fixture) conforms(method, path string, a answer) {
	r.Helper()
	path, _, _ = strings.Cut(path, "?")
	if method == "HEAD" || a.Header().Get("Content-Type") == "application/octet-stream" { // no body, or bytes without a schema
		return
	}
	if err := r.api.Conforms(method, path, a.Code, a.Body.Bytes()); err != nil {
		r.Fatalf("%s: %s %s: %v: %s", r.about, method, path, err, a.Body)
	}
}
