package webpush_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	push "github.com/SherClockHolmes/webpush-go"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webpush"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// A browser is a subscription together with the keys that read its pushes.
type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
	user.PushSubscription
}

func newBrowser(t testing.TB, endpoint string) browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := browser{key: key, auth: make([]byte, 16)}
	_, _ = rand.Read(b.auth)
	b.Endpoint = endpoint
	b.P256dh = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	b.Auth = base64.RawURLEncoding.EncodeToString(b.auth)
	return b
}

// A service is a push service: the path's first element is the status to answer.
type service struct {
	*httptest.Server

	mu     sync.Mutex
	pushes []arrival
}

type arrival struct {
	header http.Header
	body   []byte
}

func start(t testing.TB, handler http.HandlerFunc) *service {
	t.Helper()
	s := new(service)
	if handler == nil {
		handler = s.answer
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	_, _ = io.ReadFull(r.Body, body)
	s.mu.Lock()
	s.pushes = append(s.pushes, arrival{r.Header.Clone(), body})
	s.mu.Unlock()
	code, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	if err != nil {
		code = http.StatusTeapot
	}
	if after := r.URL.Query().Get("after"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(code)
}

func config(t testing.TB) webpush.Config {
	t.Helper()
	private, public, err := push.GenerateVAPIDKeys()
	if err != nil {
		t.Fatal(err)
	}
	return webpush.Config{
		PublicKey: public, PrivateKey: private, Subject: "mailto:ops@shop.example", AllowInsecure: true,
	}
}

func newSender(t testing.TB, cfg webpush.Config) *webpush.Sender {
	t.Helper()
	s, err := webpush.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// to returns one message to a user with the given browsers.
func to(browsers ...browser) []delivery.Message {
	messages := sendertest.Messages(delivery.WebPush, 1)
	for _, b := range browsers {
		messages[0].To.Push = append(messages[0].To.Push, b.PushSubscription)
	}
	return messages
}

func TestContract(t *testing.T) {
	stalled := start(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the call is only noticed after its body
		<-r.Context().Done()
	})
	accepting := newBrowser(t, start(t, nil).URL+"/201")
	silent := newBrowser(t, stalled.URL+"/201")
	reader := accepting
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			reader = accepting
			return newSender(t, config(t))
		},
		Stalled: func(t *testing.T) delivery.Sender {
			reader = silent
			return newSender(t, config(t))
		},
		Prepare:     func(u *user.User) { u.Push = []user.PushSubscription{reader.PushSubscription} },
		Unreachable: func(u *user.User) { u.Push = nil },
	})
}

func TestPushIsReadable(t *testing.T) {
	s := start(t, nil)
	b := newBrowser(t, s.URL+"/201")
	now := time.Now()
	cfg := config(t)
	cfg.Now = func() time.Time { return now }
	messages := to(b)
	messages[0].Subject.OpensAt = now.Add(90*time.Second + time.Millisecond)
	want(t, newSender(t, cfg).Send(t.Context(), messages), delivery.Delivered)

	got := s.pushes[0]
	var note map[string]string
	if err := json.Unmarshal(b.read(t, got.body), &note); err != nil {
		t.Fatal(err)
	}
	m := messages[0]
	if note["title"] != m.Content.Title || note["body"] != m.Content.Text ||
		note["tag"] != m.IdempotencyKey() || note["url"] != m.Subject.ClaimURL {
		t.Errorf("got %v", note)
	}
	for name, value := range map[string]string{"TTL": "90", "Urgency": "high", "Content-Encoding": "aes128gcm"} {
		if got.header.Get(name) != value {
			t.Errorf("got %s %q, want %q", name, got.header.Get(name), value)
		}
	}
	if topic := got.header.Get("Topic"); len(topic) != 32 {
		t.Errorf("got topic %q", topic)
	}
	if !strings.HasPrefix(got.header.Get("Authorization"), "vapid t=") {
		t.Errorf("got authorization %q", got.header.Get("Authorization"))
	}
	claims := strings.Split(got.header.Get("Authorization"), ".")[1]
	decoded, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil || !strings.Contains(string(decoded), `"sub":"mailto:ops@shop.example"`) {
		t.Errorf("got claims %s, %v", decoded, err)
	}
}

func TestTopicAndTTL(t *testing.T) {
	s := start(t, nil)
	sender := newSender(t, config(t))
	messages := to(newBrowser(t, s.URL+"/201"))
	messages[0].Subject.OpensAt = time.Now().Add(-time.Hour)
	sender.Send(t.Context(), messages)
	messages[0].Subject.OpensAt = time.Time{}
	sender.Send(t.Context(), messages)
	messages[0].To.ID++
	sender.Send(t.Context(), messages)
	first, again, other := s.pushes[0].header, s.pushes[1].header, s.pushes[2].header
	if first.Get("TTL") != "0" || again.Get("TTL") != "43200" {
		t.Errorf("got TTL %s after the opening and %s without one", first.Get("TTL"), again.Get("TTL"))
	}
	if first.Get("Topic") != again.Get("Topic") || first.Get("Topic") == other.Get("Topic") {
		t.Error("the topic must name the delivery")
	}
}

func TestStatusOverSubscriptions(t *testing.T) {
	s := start(t, nil)
	b := func(path string) browser { return newBrowser(t, s.URL+path) }
	bad := b("/201")
	bad.P256dh = "AAAA"
	noAuth := b("/201")
	noAuth.Auth = "%%%"
	for _, c := range []struct {
		name     string
		browsers []browser
		status   delivery.Status
		pause    time.Duration
	}{
		{"accepted", []browser{b("/201")}, delivery.Delivered, 0},
		{"any is enough", []browser{b("/410"), b("/500"), b("/201")}, delivery.Delivered, 0},
		{"first is enough", []browser{b("/201"), b("/410")}, delivery.Delivered, 0},
		{"none", nil, delivery.Permanent, 0},
		{"gone", []browser{b("/410")}, delivery.Permanent, 0},
		{"not found", []browser{b("/404"), b("/410")}, delivery.Permanent, 0},
		{"gone and down", []browser{b("/410"), b("/500")}, delivery.Transient, 0},
		{"down and gone", []browser{b("/500"), b("/410")}, delivery.Transient, 0},
		{"throttled", []browser{b("/429?after=5"), b("/429?after=9"), b("/500")}, delivery.Throttled, 9 * time.Second},
		{"unavailable", []browser{b("/503?after=5")}, delivery.Throttled, 5 * time.Second},
		{"keys of another server", []browser{b("/403")}, delivery.Transient, 0},
		{"too large", []browser{b("/413")}, delivery.Permanent, 0},
		{"bad key", []browser{bad}, delivery.Permanent, 0},
		{"bad secret", []browser{noAuth}, delivery.Permanent, 0},
		{"bad key and good", []browser{bad, b("/201")}, delivery.Delivered, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newSender(t, config(t)).Send(t.Context(), to(c.browsers...))[0]
			if r.Status != c.status || r.After != c.pause {
				t.Errorf("got %+v", r)
			}
			if r.Status != delivery.Delivered && (r.Detail == "" || strings.Contains(r.Detail, "127.0.0.1")) {
				t.Errorf("got detail %q", r.Detail)
			}
		})
	}
}

func TestGoneSubscriptionsAreReported(t *testing.T) {
	s := start(t, nil)
	var (
		mu   sync.Mutex
		gone []string
	)
	cfg := config(t)
	cfg.OnGone = func(id user.ID, endpoint string) {
		mu.Lock()
		defer mu.Unlock()
		gone = append(gone, fmt.Sprint(id, " ", strings.TrimPrefix(endpoint, s.URL)))
	}
	newSender(t, cfg).Send(t.Context(), to(
		newBrowser(t, s.URL+"/404"), newBrowser(t, s.URL+"/201"), newBrowser(t, s.URL+"/410"), newBrowser(t, s.URL+"/500")))
	if got := strings.Join(gone, ", "); got != "1 /404, 1 /410" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyPublicHTTPSIsCalled(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a private address was called")
	}))
	defer secure.Close()
	strict := config(t)
	strict.AllowInsecure = false
	loose := config(t)
	for endpoint, cfg := range map[string]webpush.Config{
		secure.URL:                      strict,
		"https://10.0.0.1/x":            strict,
		"https://169.254.169.254/x":     strict,
		"https://[::ffff:127.0.0.1]/x":  strict,
		"https://[fd00::1]/x":           strict,
		"https://100.64.0.1/x":          strict,
		"http://127.0.0.1:9/x":          strict,
		"http://192.0.2.1/x":            loose,
		"http://localhost.evil.example": loose,
		"file:///etc/passwd":            loose,
		"https://user:pw@a.example/x":   loose,
		"":                              loose,
		"https://":                      loose,
	} {
		r := newSender(t, cfg).Send(t.Context(), to(newBrowser(t, endpoint)))[0]
		if r.Status != delivery.Permanent || !strings.HasPrefix(r.Detail, "the push endpoint") {
			t.Errorf("%q: got %+v", endpoint, r)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := start(t, nil)
	from := start(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL+"/201", http.StatusTemporaryRedirect)
	})
	want(t, newSender(t, config(t)).Send(t.Context(), to(newBrowser(t, from.URL))), delivery.Transient)
	if len(s.pushes) != 0 {
		t.Error("a redirect was followed")
	}
}

func TestLongMessagesFit(t *testing.T) {
	s := start(t, nil)
	b := newBrowser(t, s.URL+"/201")
	sender := newSender(t, config(t))
	for name, text := range map[string]string{
		"ascii":   strings.Repeat("a", 10_000),
		"chinese": strings.Repeat("券", 10_000),
		"control": strings.Repeat("\x01", 10_000),
		"quotes":  strings.Repeat(`"`, 10_000),
		"broken":  strings.Repeat("\xff券", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			messages := to(b)
			messages[0].Content = &delivery.Content{Title: text, Text: text}
			messages[0].Subject.ClaimURL = "https://shop.example/" + strings.Repeat("x", 1400)
			want(t, sender.Send(t.Context(), messages), delivery.Delivered)
			var note map[string]string
			if err := json.Unmarshal(b.read(t, s.pushes[len(s.pushes)-1].body), &note); err != nil {
				t.Fatal(err)
			}
			if note["title"] == "" || note["body"] == "" || note["url"] == "" {
				t.Errorf("too much was cut: %v", note)
			}
		})
	}
}

func TestParallelIsBounded(t *testing.T) {
	var (
		mu        sync.Mutex
		now, peak int
	)
	s := start(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		peak = max(peak, now)
		mu.Unlock()
		defer func() {
			mu.Lock()
			now--
			mu.Unlock()
		}()
		w.WriteHeader(http.StatusCreated)
	})
	cfg := config(t)
	cfg.Parallel = 3
	messages := sendertest.Messages(delivery.WebPush, 20)
	for i := range messages {
		messages[i].To.Push = []user.PushSubscription{newBrowser(t, s.URL).PushSubscription}
	}
	want(t, newSender(t, cfg).Send(t.Context(), messages), delivery.Delivered)
	if peak > 3 {
		t.Errorf("%d pushes at once, want at most 3", peak)
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	good, other := config(t), config(t)
	for name, spoil := range map[string]func(*webpush.Config){
		"public key":         func(c *webpush.Config) { c.PublicKey = other.PublicKey },
		"private key":        func(c *webpush.Config) { c.PrivateKey = c.PublicKey },
		"private key: not b": func(c *webpush.Config) { c.PrivateKey = "???" },
		"public key: not b":  func(c *webpush.Config) { c.PublicKey = "???" },
		"subject":            func(c *webpush.Config) { c.Subject = "ops@shop.example" },
	} {
		cfg := good
		spoil(&cfg)
		_, err := webpush.New(cfg)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), good.PrivateKey) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func want(t *testing.T, results []delivery.Result, status delivery.Status) {
	t.Helper()
	for i, r := range results {
		if r.Status != status {
			t.Errorf("message %d: got %+v, want status %d", i+1, r, status)
			return
		}
	}
}
