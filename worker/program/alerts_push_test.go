package program

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"

	push "github.com/SherClockHolmes/webpush-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/push/webpush"
	"dropbell/domain/staff/alert"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/worker/work"
)

// pushService imitates a push service. The last part of the path is the status to answer, the
// part before it names the browser.
type pushService struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string
	topics map[string]bool // header Topic of RFC 8030: a push replaces an earlier one with the same
}

func newPushService(t *testing.T) *pushService {
	s := &pushService{topics: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, status, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		s.mu.Lock()
		s.got = append(s.got, name)
		s.topics[r.Header.Get("Topic")] = true
		s.mu.Unlock()
		w.WriteHeader(map[string]int{"201": 201, "410": 410, "503": 503, "413": 413}[status])
	}))
	t.Cleanup(s.Close)
	return s
}

// taken returns which browsers were called since the last time.
func (s *pushService) taken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sort.Strings(s.got)
	list := strings.Join(s.got, " ")
	s.got = nil
	return list
}

// browser is a subscription of a browser with this endpoint.
func (s *pushService) browser(t *testing.T, path string) user.PushSubscription {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	musttest.OK(t, err)
	auth := make([]byte, 16)
	_, _ = rand.Read(auth)
	return user.PushSubscription{Endpoint: s.URL + "/" + path, P256dh: base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), Auth: base64.RawURLEncoding.EncodeToString(auth)}
}

// An alert is pushed once to each browser of the members that see it. A browser that is gone is
// removed; a push to a browser whose service fails is retried. A browser gets nothing if its
// member signed out there, was disabled or has muted the kind. In a shared browser the member
// that signed in last is notified.
func TestAlertsByPush(t *testing.T) {
	url := localstack.Database(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "push"})
	must := func(err error) {
		t.Helper()
		musttest.OK(t, err)
	}
	must(err)
	t.Cleanup(db.Close)
	conn, err := pgx.Connect(t.Context(), url)
	must(err)
	defer conn.Close(t.Context())
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		must(err)
	}
	exec(`insert into staff (email, role, shops) values ('all@x.example', 'viewer', '{}'), ('ten@x.example', 'viewer', '{10}'), ('eleven@x.example', 'viewer', '{11}'),
		('muted@x.example', 'viewer', '{}'), ('off@x.example', 'viewer', '{}')`)
	exec(`insert into alert_readers (staff_id, muted) values (4, '{sold_out}')`)
	exec(`update staff set disabled_at = now() where id = 5`)
	private, public, err := push.GenerateVAPIDKeys()
	must(err)
	sender, err := webpush.New(webpush.Config{PublicKey: public, PrivateKey: private, Subject: "mailto:ops@shop.example", AllowInsecure: true})
	must(err)
	defer sender.Close()
	service, store := newPushService(t), workdb.NewAlerts(db, nil)
	signIn := uuid.NewString()
	exec(`insert into sign_ins (id, staff_id, ip, user_agent) values ($1, 1, '', '')`, signIn)
	add := func(member int64, in, path string) {
		t.Helper()
		must(store.AddBrowser(t.Context(), alert.Browser{Member: member, SignIn: in, Language: "en", Agent: path, Subscription: service.browser(t, path)}, alert.MaxBrowsers))
	}
	add(1, signIn, "signed-out/201")
	add(1, uuid.NewString(), "all/201")
	add(2, uuid.NewString(), "ten/503")
	add(2, uuid.NewString(), "gone/410")
	add(3, uuid.NewString(), "shared/413")
	add(2, uuid.NewString(), "shared/413")
	add(3, uuid.NewString(), "eleven/201")
	add(4, uuid.NewString(), "muted/201")
	add(5, uuid.NewString(), "off/201")
	n := alert.Notifier{Store: store, Pusher: work.AlertPusher{Browsers: sender}}
	soldOut := alert.Condition{Kind: alert.SoldOut, Object: "1", Shop: 10, Name: "Moon", Count: 5, Path: "/templates/1"}
	must(store.Reconcile(t.Context(), alert.Kinds(), []alert.Condition{soldOut}, alert.Quiet, alert.Deadline))
	exec(`update sign_ins set revoked_at = now()`) // between the alert and its push
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			if err := n.Deliver(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if got := service.taken(); got != "all gone shared ten" {
		t.Errorf("pushed to %q", got)
	}
	states := func() (list string) {
		must(conn.QueryRow(t.Context(), `select string_agg(agent || ' ' || coalesce(v.state, '-') || ' ' || coalesce(attempts, 0), ', ' order by agent)
			from staff_browsers b left join alert_pushes v on v.browser_id = b.id`).Scan(&list))
		return list
	}
	if got := states(); got != "all/201 sent 1, eleven/201 - 0, muted/201 - 0, off/201 - 0, shared/413 failed 1, signed-out/201 dropped 0, ten/503 waiting 1" {
		t.Error(got)
	}
	// A condition that gets worse again is told again only after a while. A push that waits is
	// retried until its deadline; after the deadline it is no news.
	must(store.Reconcile(t.Context(), alert.Kinds(), []alert.Condition{soldOut}, alert.Quiet, alert.Deadline))
	exec(`update alert_pushes set next_at = now() where state = 'waiting'`)
	must(n.Deliver(t.Context()))
	if got := service.taken(); got != "ten" {
		t.Errorf("pushed again to %q", got)
	}
	exec(`update alert_pushes set next_at = now(), deadline_at = now() where state = 'waiting'`)
	must(n.Deliver(t.Context()))
	if got := service.taken() + states(); !strings.HasSuffix(got, "ten/503 dropped 2") {
		t.Error(got)
	}
	// A test goes to its browser alone, and only its member can ask for it.
	id := int64(0)
	must(conn.QueryRow(t.Context(), `select id from staff_browsers where agent = 'muted/201'`).Scan(&id))
	if err := store.TryBrowser(t.Context(), 1, id, alert.Deadline); err == nil {
		t.Error("another member's browser was tried")
	}
	must(store.TryBrowser(t.Context(), 4, id, alert.Deadline))
	must(n.Deliver(t.Context()))
	if got := service.taken(); got != "muted" {
		t.Errorf("tested %q", got)
	}
	// Two drops that are late are two notifications, neither of which replaces the other.
	clear(service.topics)
	late := []alert.Condition{{Kind: alert.Late, Object: "1", Member: 4, Name: "Moon"}, {Kind: alert.Late, Object: "2", Member: 4, Name: "Sun"}}
	must(store.Reconcile(t.Context(), alert.Kinds(), late, alert.Quiet, alert.Deadline))
	must(n.Deliver(t.Context()))
	if got := service.taken(); got != "muted muted" || len(service.topics) != 2 {
		t.Errorf("pushed to %q with the topics %v", got, service.topics)
	}
	// A browser that is being removed holds no alert up.
	other, err := pgx.Connect(t.Context(), url)
	must(err)
	defer other.Close(t.Context())
	removal, err := other.Begin(t.Context())
	must(err)
	_, err = removal.Exec(t.Context(), `delete from staff_browsers where agent = 'ten/503'`)
	must(err)
	must(store.Reconcile(t.Context(), alert.Kinds(), []alert.Condition{{Kind: alert.Late, Object: "3", Shop: 10, Name: "Star"}}, alert.Quiet, alert.Deadline))
	must(removal.Commit(t.Context()))
	must(n.Deliver(t.Context()))
	if got := service.taken(); got != "all muted shared" {
		t.Errorf("pushed to %q while another browser was removed", got)
	}
	// A push service reports the old keys as gone; the new keys stay.
	list, err := store.Browsers(t.Context(), 1)
	must(err)
	must(store.ForgetBrowser(t.Context(), alert.Browser{ID: list[0].ID, Subscription: service.browser(t, "all/201")}))
	for range alert.MaxBrowsers {
		add(1, uuid.NewString(), uuid.NewString()+"/201")
	}
	if list, err = store.Browsers(t.Context(), 1); len(list) != alert.MaxBrowsers || err != nil {
		t.Errorf("%d browsers of one member, %v", len(list), err)
	}
}
