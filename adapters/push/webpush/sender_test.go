package webpush_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	push "github.com/SherClockHolmes/webpush-go"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/push/webpush"
	"dropbell/adapters/push/webpush/webpushtest"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func config(t testing.TB) webpush.Config {
	t.Helper()
	private, public, err := push.GenerateVAPIDKeys()
	musttest.OK(t, err)
	return webpush.Config{
		PublicKey: public, PrivateKey: private, Subject: "mailto:ops@shop.example", AllowInsecure: true,
	}
}

func newSender(t testing.TB, cfg webpush.Config) *pushing.Sender {
	t.Helper()
	s, err := webpush.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return pushing.New(pushing.Options{}, s)
}

// to returns one message to a user with the given browsers.
func to(browsers ...webpushtest.Browser) []delivery.Message {
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
	accepting := webpushtest.NewBrowser(t, start(t, nil).URL+"/201")
	silent := webpushtest.NewBrowser(t, stalled.URL+"/201")
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
		AtOnce:      20,
	})
}

func TestPushIsReadable(t *testing.T) {
	s := start(t, nil)
	b := webpushtest.NewBrowser(t, s.URL+"/201")
	now := time.Now()
	cfg := config(t)
	cfg.Now = func() time.Time { return now }
	messages := to(b)
	messages[0].Subject.OpensAt = now.Add(90*time.Second + time.Millisecond)
	want(t, newSender(t, cfg).Send(t.Context(), messages), delivery.Delivered)

	got := s.pushes[0]
	var note map[string]string
	musttest.OK(t, json.Unmarshal(b.Read(t, got.body), &note))
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
	messages := to(webpushtest.NewBrowser(t, s.URL+"/201"))
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
	b := func(path string) webpushtest.Browser { return webpushtest.NewBrowser(t, s.URL+path) }
	bad := b("/201")
	bad.P256dh = "AAAA"
	noAuth := b("/201")
	noAuth.Auth = "%%%"
	for _, c := range []struct {
		name     string
		browsers []webpushtest.Browser
		status   delivery.Status
		pause    time.Duration
	}{
		{"accepted", []webpushtest.Browser{b("/201")}, delivery.Delivered, 0},
		{"any is enough", []webpushtest.Browser{b("/410"), b("/500"), b("/201")}, delivery.Delivered, 0},
		{"first is enough", []webpushtest.Browser{b("/201"), b("/410")}, delivery.Delivered, 0},
		{"none", nil, delivery.Permanent, 0},
		{"gone", []webpushtest.Browser{b("/410")}, delivery.Permanent, 0},
		{"not found", []webpushtest.Browser{b("/404"), b("/410")}, delivery.Permanent, 0},
		{"gone and down", []webpushtest.Browser{b("/410"), b("/500")}, delivery.Transient, 0},
		{"down and gone", []webpushtest.Browser{b("/500"), b("/410")}, delivery.Transient, 0},
		{"throttled", []webpushtest.Browser{b("/429?after=5"), b("/429?after=9"), b("/500")}, delivery.Throttled, 9 * time.Second},
		{"unavailable", []webpushtest.Browser{b("/503?after=5")}, delivery.Throttled, 5 * time.Second},
		{"keys of another server", []webpushtest.Browser{b("/403")}, delivery.Transient, 0},
		{"too large", []webpushtest.Browser{b("/413")}, delivery.Permanent, 0},
		{"bad key", []webpushtest.Browser{bad}, delivery.Permanent, 0},
		{"bad secret", []webpushtest.Browser{noAuth}, delivery.Permanent, 0},
		{"bad key and good", []webpushtest.Browser{bad, b("/201")}, delivery.Delivered, 0},
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
	cfg.OnGone = func(_ context.Context, id user.ID, subscription user.PushSubscription) {
		mu.Lock()
		defer mu.Unlock()
		gone = append(gone, fmt.Sprint(id, " ", strings.TrimPrefix(subscription.Endpoint, s.URL)))
	}
	newSender(t, cfg).Send(t.Context(), to(
		webpushtest.NewBrowser(t, s.URL+"/404"), webpushtest.NewBrowser(t, s.URL+"/201"), webpushtest.NewBrowser(t, s.URL+"/410"), webpushtest.NewBrowser(t, s.URL+"/500")))
	if got := strings.Join(gone, ", "); got != "1 /404, 1 /410" {
		t.Errorf("got %q", got)
	}
}

func TestLongMessagesFit(t *testing.T) {
	s := start(t, nil)
	b := webpushtest.NewBrowser(t, s.URL+"/201")
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
			musttest.OK(t, json.Unmarshal(b.Read(t, s.pushes[len(s.pushes)-1].body), &note))
			if note["title"] == "" || note["body"] == "" || note["url"] == "" {
				t.Errorf("too much was cut: %v", note)
			}
		})
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
