package chaos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// providersKey seals the secrets of configured providers.
const providersKey = "chaos-chaos-chaos-chaos-chaos-chaos"

// A pushPlatform is the imitation of a push service, in front of which faults are dealt.
type pushPlatform struct {
	http.Handler
	name, path string // path begins the addresses of its calls
	deck       *faultDeck
	// read returns the user to whom a call pushes, and the tag by which a device replaces the
	// message with a repetition. Zero values mean that the call pushes no message.
	read func(q *http.Request, body []byte) (user int64, tag string)
	// refusal and pause are its answers for a failure of its own and for too many calls.
	refusal, pause pushAnswer
}

// A pushAnswer is the answer of a push service that does not take the message.
type pushAnswer struct {
	status int
	body   string
}

func (a pushAnswer) write(w http.ResponseWriter) {
	if a.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// pushPlatforms are the push services of all kinds of devices.
type pushPlatforms struct {
	t      *testing.T
	all    []*pushPlatform
	apple  *pushtest.APNs
	google *pushtest.FCM
	wechat *pushtest.WeChat
	over   chan struct{}

	mu       sync.Mutex
	fronts   []*httptest.Server
	arrivals []*arrival
}

// newPushPlatforms starts the imitated platforms, each with its own deck of the faults. They end
// with the test.
func newPushPlatforms(t *testing.T, random func(purpose uint64) *rand.Rand, every int, faults map[fault]int) *pushPlatforms {
	apple, err := pushtest.NewAPNs()
	musttest.OK(t, err)
	t.Cleanup(apple.Close)
	google, err := pushtest.NewFCM()
	musttest.OK(t, err)
	t.Cleanup(google.Close)
	wechat := pushtest.NewWeChat()
	t.Cleanup(wechat.Close)
	p := &pushPlatforms{t: t, apple: apple, google: google, wechat: wechat, over: make(chan struct{})}
	const fcmError = `{"error":{"code":%d,"status":%q,"details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":%q}]}}`
	p.all = []*pushPlatform{
		{name: "browsers", path: "/push/", Handler: http.HandlerFunc(browserService), read: pushedToBrowser,
			refusal: pushAnswer{http.StatusInternalServerError, ""}, pause: pushAnswer{http.StatusTooManyRequests, ""}},
		{name: "APNs", path: "/3/device/", Handler: apple, read: pushedToIPhone,
			refusal: pushAnswer{http.StatusServiceUnavailable, `{"reason":"ServiceUnavailable"}`}, pause: pushAnswer{http.StatusTooManyRequests, `{"reason":"TooManyRequests"}`}},
		{name: "FCM", path: "/v1/projects/", Handler: google, read: pushedToAndroid,
			refusal: pushAnswer{http.StatusServiceUnavailable, fmt.Sprintf(fcmError, 503, "UNAVAILABLE", "UNAVAILABLE")},
			pause:   pushAnswer{http.StatusTooManyRequests, fmt.Sprintf(fcmError, 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")}},
		{name: "WeChat", path: "/cgi-bin/", Handler: wechat, read: pushedToMiniProgram,
			refusal: pushAnswer{http.StatusOK, `{"errcode":-1,"errmsg":"system error rid: 64229bc2-48d0e8b1-2008ed9b"}`}, pause: pushAnswer{http.StatusTooManyRequests, ""}},
	}
	for i, f := range p.all {
		f.deck = newDeck(random(uint64(20+i)), every, faults)
		f.deck.open.Store(true)
	}
	t.Cleanup(func() {
		close(p.over)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.fronts {
			f.Close()
		}
	})
	return p
}

// front is the address of all push services for one program.
func (p *pushPlatforms) front(program string) string {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.call(program, w, r) }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fronts = append(p.fronts, server)
	return server.URL
}

// call is one call of a program to one of the push services.
func (p *pushPlatforms) call(program string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // cut off: not a call
	}
	f := p.at(r.URL.Path)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	user, tag := f.read(r, body)
	if user == 0 { // for an access token
		f.ServeHTTP(w, r)
		return
	}
	card := f.deck.deal()
	if card.turnAway(r, p.over, func() { f.refusal.write(w) }, func() { f.pause.write(w) }) {
		return
	}
	given := httptest.NewRecorder()
	f.ServeHTTP(given, r)
	var list []*arrival
	switch text := given.Body.String(); {
	case strings.Contains(text, `"errcode":43101`): // the consent was used before
	case given.Code/100 != 2 || strings.Contains(text, `"errcode"`) && !strings.Contains(text, `"errcode":0`):
		p.t.Errorf("%s refuses a message: %d %s", f.name, given.Code, text)
	default:
		list = []*arrival{{channel: delivery.WebPush, user: user, key: tag, call: f.name, worker: program, at: time.Now(), answer: unheard}}
		p.mu.Lock()
		p.arrivals = append(p.arrivals, list...)
		p.mu.Unlock()
	}
	card.pass(w, r, p.over, given, func(with answer) { p.settle(with, list) })
}

func (p *pushPlatforms) at(path string) *pushPlatform {
	for _, f := range p.all {
		if strings.HasPrefix(path, f.path) {
			return f
		}
	}
	return nil
}

func (p *pushPlatforms) settle(with answer, list []*arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range list {
		a.answer, a.ended = with, time.Now()
	}
}

// list returns a copy of the arrivals so far.
func (p *pushPlatforms) list() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]arrival, len(p.arrivals))
	for i, a := range p.arrivals {
		list[i] = *a
	}
	return list
}

// configure stores the mini program as a provider of all shops and returns its id.
func (p *pushPlatforms) configure(db *postgres.DB) int64 {
	box, err := seal.New(provider.SealPurpose, providersKey)
	if err != nil {
		p.t.Fatal(err)
	}
	service := &provider.Service{Store: deliverydb.NewConfigured(db), Box: box, Keyed: true, IsCountry: sms.IsCountry}
	mini, err := service.Create(p.t.Context(), staff.System(), provider.Input{Kind: provider.WeChat, Spec: provider.Spec{Name: "Chaos", Weight: 1, Enabled: true,
		Settings: map[string]string{"app_id": p.wechat.AppID, "template": p.wechat.Template, "url": p.front(""), "data": miniProgramData}},
		Secrets: map[string]string{"app_secret": p.wechat.Secret}}, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return mini.ID
}

// miniProgramData are the fields of the message of the imitation.
const miniProgramData = "thing1 = {{drop}}\ntime2 = {{opens_at}}\nthing3 = {{in}}"

// The addresses of a user's devices, which hold the user's id.
func iPhoneOf(user int64) string             { return fmt.Sprintf("%064x", user) }
func androidOf(user int64) string            { return fmt.Sprintf("registration-token-of-user-%d", user) }
func openIDOf(user int64) string             { return fmt.Sprintf("openid-%021d", user) }
func browserOf(front string, u int64) string { return front + "/push/" + strconv.FormatInt(u, 10) }

func pushedToIPhone(q *http.Request, _ []byte) (user int64, tag string) {
	user, _ = strconv.ParseInt(strings.TrimPrefix(q.URL.Path, "/3/device/"), 16, 64)
	return user, q.Header.Get("Apns-Collapse-Id")
}

func pushedToAndroid(_ *http.Request, body []byte) (user int64, tag string) {
	var in struct {
		Message struct {
			Token string
			Data  map[string]string
		}
	}
	_ = json.Unmarshal(body, &in) // of a call that the imitation refuses
	_, err := fmt.Sscanf(in.Message.Token, androidOf(0)[:len(androidOf(0))-1]+"%d", &user)
	if err != nil {
		return 0, ""
	}
	return user, in.Message.Data["tag"]
}

func pushedToMiniProgram(_ *http.Request, body []byte) (user int64, tag string) {
	var in struct {
		ToUser string `json:"touser"`
	}
	_ = json.Unmarshal(body, &in) // a call for an access token
	user, _ = strconv.ParseInt(strings.TrimPrefix(in.ToUser, "openid-"), 10, 64)
	return user, ""
}

func pushedToBrowser(q *http.Request, _ []byte) (user int64, tag string) {
	user, _ = strconv.ParseInt(strings.TrimPrefix(q.URL.Path, "/push/"), 10, 64)
	return user, q.Header.Get("Topic")
}

// browserService is a push service of browsers (RFC 8030, section 5).
func browserService(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("TTL") == "" || r.Header.Get("Content-Encoding") != "aes128gcm" || !strings.HasPrefix(r.Header.Get("Authorization"), "vapid ") {
		http.Error(w, "not a push", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
}
