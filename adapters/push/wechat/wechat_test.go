package wechat_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/push"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/push/wechat"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/user"
	"dropbell/musttest"
)

const openID = "oABCD_efghIJKLmnop-QRSTuvwx1"

func newWeChat(t testing.TB) *pushtest.WeChat {
	t.Helper()
	w := pushtest.NewWeChat()
	t.Cleanup(w.Close)
	return w
}

func config(w *pushtest.WeChat) wechat.Config {
	return wechat.Config{AppID: w.AppID, Secret: w.Secret, Template: w.Template, URL: w.URL, Page: "pages/drop/index?id={id}",
		Data: "thing1 = {{drop}}\n\ntime2={{opens_at}}\nthing3 = {{minutes}} min, {{worth|see inside}}"}
}

func newSender(t testing.TB, cfg wechat.Config) *push.Sender {
	t.Helper()
	service, err := wechat.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = service.Close() })
	return push.New(push.Options{}, service)
}

func account(w *pushtest.WeChat, openID string) user.Device {
	return user.Device{Platform: user.WeChat, App: w.AppID, Token: openID}
}

// to is a message to which its recipient has consented.
func to(devices ...user.Device) []delivery.Message {
	messages := sendertest.Messages(delivery.WebPush, 1)
	messages[0].To.Devices, messages[0].Consented = devices, true
	return messages
}

// consenting gives each message the consent that the users of a contract have.
type consenting struct{ *push.Sender }

func (c consenting) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	for i := range messages {
		messages[i].Consented = true
	}
	return c.Sender.Send(ctx, messages)
}

func TestContract(t *testing.T) {
	w := newWeChat(t)
	for range 1000 {
		w.Accept(openID)
	}
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the call is only noticed after its body
		<-r.Context().Done()
	}))
	t.Cleanup(stalled.Close)
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return consenting{newSender(t, config(w))} },
		Stalled: func(t *testing.T) delivery.Sender {
			cfg := config(w)
			cfg.URL = stalled.URL
			return consenting{newSender(t, cfg)}
		},
		Prepare:     func(u *user.User) { u.Devices = []user.Device{account(w, openID)} },
		Unreachable: func(u *user.User) { u.Devices = nil },
		AtOnce:      20,
	})
}

func TestWhatWeChatGets(t *testing.T) {
	w := newWeChat(t)
	w.Accept(openID)
	other := account(w, strings.Repeat("x", 28))
	other.App = "wxffffffffffffffff"
	messages := to(user.Device{Platform: user.IOS, Token: "other"}, account(w, openID), other)
	m := &messages[0]
	m.To.Timezone, m.To.Locale = "Asia/Shanghai", "zh-CN"
	m.Subject.OpensAt = time.Date(2027, 1, 1, 4, 5, 0, 0, time.UTC)
	m.Values = func() map[string]string {
		return map[string]string{message.VarDrop: "春节\n满减券 " + strings.Repeat("大", 30), message.VarMinutes: "10", message.VarOpensAt: "1月1日 12:05 CST"}
	}
	if r := newSender(t, config(w)).Send(t.Context(), messages)[0]; r.Status != delivery.Delivered || !r.ConsentUsed {
		t.Fatalf("got %+v", r)
	}
	want := `{"touser":"` + openID + `","template_id":"` + w.Template + `","page":"pages/drop/index?id=7","miniprogram_state":"formal","lang":"zh_CN",` +
		`"data":{"thing1":{"value":"春节 满减券 大大大大大大大大大大大大…"},"thing3":{"value":"10 min, see inside"},"time2":{"value":"2027年1月1日 12:05"}}}`
	if got := string(w.Pushes()[0].Body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestOneConsentOneMessage: without a consent WeChat is not asked. WeChat refuses a second
// message for one consent, for example after a crash, and that message is skipped.
func TestOneConsentOneMessage(t *testing.T) {
	w := newWeChat(t)
	s := newSender(t, config(w))
	without := to(account(w, openID))
	without[0].Consented = false
	if r := s.Send(t.Context(), without)[0]; !r.Skip || r.Reason != delivery.ReasonNoConsent || !r.Held || r.ConsentUsed || w.Issued.Load() != 0 {
		t.Errorf("without a consent: %+v", r)
	}
	w.Accept(openID)
	if r := s.Send(t.Context(), to(account(w, openID)))[0]; r.Status != delivery.Delivered || !r.ConsentUsed {
		t.Errorf("with a consent: %+v", r)
	}
	if r := s.Send(t.Context(), to(account(w, openID)))[0]; !r.Skip || r.Reason != delivery.ReasonNoConsent || r.Held || !r.ConsentUsed {
		t.Errorf("a second time: %+v", r)
	}
	// The user has two accounts. WeChat has no consent for the account that was seen last, but
	// has one for the other account, which gets the message.
	second := strings.Repeat("y", 28)
	w.Accept(openID)
	if r := s.Send(t.Context(), to(account(w, openID), account(w, second)))[0]; r.Status != delivery.Delivered || !r.ConsentUsed || w.Count() != 2 {
		t.Errorf("two accounts: %+v", r)
	}
	w.Accept(openID)
	w.Accept(second)
	if r := s.Send(t.Context(), to(account(w, openID), account(w, second)))[0]; r.Status != delivery.Delivered || w.Count() != 3 {
		t.Errorf("two accounts with a consent each: %+v, %d messages", r, w.Count())
	}
	test := to(account(w, second))
	test[0].Consented, test[0].Subject.Kind = false, delivery.KindTest
	if r := s.Send(t.Context(), test)[0]; !r.ConsentUsed {
		t.Errorf("a test, about which WeChat alone decides: %+v", r)
	}
}

// TestAnswers goes through WeChat's codes.
func TestAnswers(t *testing.T) {
	w := newWeChat(t)
	s := newSender(t, config(w))
	for _, c := range []struct {
		fault  pushtest.Fault
		status delivery.Status
		pause  time.Duration
		unsent bool
	}{
		{pushtest.Fault{Reason: "-1"}, delivery.Transient, time.Second, false},
		{pushtest.Fault{Reason: "45009"}, delivery.Throttled, 10 * time.Minute, true},
		{pushtest.Fault{Reason: "45011"}, delivery.Throttled, time.Minute, true},
		{pushtest.Fault{Reason: "48001"}, delivery.Transient, 0, true},
		{pushtest.Fault{Status: 502}, delivery.Transient, 0, false},
		{pushtest.Fault{Status: 400}, delivery.Transient, 0, false},
	} {
		w.Fail("", c.fault)
		r := s.Send(t.Context(), to(account(w, openID)))[0]
		if r.Status != c.status || r.After != c.pause || r.Unsent != c.unsent || r.ConsentUsed || r.Whole || r.Detail == "" || strings.Contains(r.Detail, "rid") {
			t.Errorf("%+v: got %+v", c.fault, r)
		}
	}
	w.Heal()
	for name, c := range map[string]struct {
		spoil func(*wechat.Config)
		to    string
		want  delivery.Status
		says  string
	}{
		"an openid of another app": {func(*wechat.Config) {}, "short_openid_of_nobody", delivery.Permanent, "40003"},
		"another template":         {func(c *wechat.Config) { c.Template = "other" }, openID, delivery.Transient, "40037"},
		"a page that is missing":   {func(c *wechat.Config) { c.Page = "pages/missing" }, openID, delivery.Transient, "41030"},
		"a field that is missing":  {func(c *wechat.Config) { c.Data = "thing1 = x" }, openID, delivery.Permanent, "47003"},
		"a wrong secret":           {func(c *wechat.Config) { c.Secret = "WRONGSECRET" }, openID, delivery.Transient, "40125"},
		"another app":              {func(c *wechat.Config) { c.AppID = "wxeeeeeeeeeeeeeeee" }, openID, delivery.Transient, "40013"},
	} {
		cfg := config(w)
		c.spoil(&cfg)
		d := account(w, c.to)
		d.App = cfg.AppID
		r := newSender(t, cfg).Send(t.Context(), to(d))[0]
		if r.Status != c.want || !strings.Contains(r.Detail, c.says) || !r.Unsent || r.ConsentUsed || strings.Contains(r.Detail, "SECRET") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// memory is the storage that processes share.
type memory struct {
	mu    sync.Mutex
	value []byte
	turn  bool
	away  bool
}

func (m *memory) Load(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errors.New("away")
	}
	return m.value, nil
}

func (m *memory) Store(_ context.Context, value []byte, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value, m.turn = value, false
	return nil
}

func (m *memory) Turn(context.Context, time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mine := !m.turn
	m.turn = true
	return mine, nil
}

// TestOneAccessTokenForAll: processes that begin at the same time ask WeChat once. A token that
// another program has replaced, or that ends, is replaced here.
func TestOneAccessTokenForAll(t *testing.T) {
	w := newWeChat(t)
	var clock sync.Mutex
	now := time.Now()
	tell := func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return now
	}
	w.Now = tell
	cfg := config(w)
	store := &memory{}
	cfg.Shared, cfg.Now = store, tell
	var senders []*push.Sender
	for range 3 {
		senders = append(senders, newSender(t, cfg))
	}
	send := func(step string, want int64) {
		t.Helper()
		var all sync.WaitGroup
		for _, s := range senders {
			for range 5 {
				w.Accept(openID)
				all.Go(func() {
					if r := s.Send(t.Context(), to(account(w, openID)))[0]; r.Status != delivery.Delivered {
						t.Errorf("%s: %+v", step, r)
					}
				})
			}
		}
		all.Wait()
		if got := w.Issued.Swap(0); got != want {
			t.Errorf("%s: %d tokens were asked for, want %d", step, got, want)
		}
	}
	send("at first", 1)
	w.Revoke()
	send("after a forced refresh elsewhere", 1)
	clock.Lock()
	now = now.Add(2*time.Hour - 4*time.Minute)
	clock.Unlock()
	send("before its end", 1)
	store.away = true
	now = now.Add(2 * time.Hour)
	send("while nothing can be shared", int64(len(senders)))
}

func TestNewNamesTheMistake(t *testing.T) {
	w := newWeChat(t)
	for name, c := range map[string]struct {
		spoil func(*wechat.Config)
		field string
	}{
		"address":         {func(c *wechat.Config) { c.URL = "gopher://x" }, "url"},
		"in clear":        {func(c *wechat.Config) { c.URL = "http://api.weixin.qq.com" }, "url"},
		"no app":          {func(c *wechat.Config) { c.AppID = "wx1" }, "app_id"},
		"no secret":       {func(c *wechat.Config) { c.Secret = "" }, "app_secret"},
		"no template":     {func(c *wechat.Config) { c.Template = "" }, "template"},
		"no fields":       {func(c *wechat.Config) { c.Data = " \n" }, "data"},
		"a field":         {func(c *wechat.Config) { c.Data = "Thing = x" }, "data"},
		"a variable":      {func(c *wechat.Config) { c.Data = "thing1 = {{price}}" }, "data"},
		"an address":      {func(c *wechat.Config) { c.Page = "https://shop.example" }, "page"},
		"a leading slash": {func(c *wechat.Config) { c.Page = "/pages/index" }, "page"},
	} {
		cfg := config(w)
		c.spoil(&cfg)
		_, err := wechat.New(cfg)
		m, ok := errors.AsType[*push.Mistake](err)
		if !ok || m.Field != c.field || strings.Contains(m.Text, w.Secret) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestValuesFit: WeChat permits the value of every text in its type.
func TestValuesFit(t *testing.T) {
	w := newWeChat(t)
	w.Fields = []string{"thing1", "character_string2", "number3", "letter4", "phrase5", "name6", "time7", "date8"}
	var lines []string
	for _, f := range w.Fields {
		lines = append(lines, f+" = {{drop}}")
	}
	lines[6], lines[7] = "time7 = {{time}}", "date8 = {{opens_at}}"
	cfg := config(w)
	cfg.Data = strings.Join(lines, "\n")
	s := newSender(t, cfg)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("券满减a1.-…\n\x00é")), 0, 50, -1)).Draw(rt, "text")
		messages := to(account(w, openID))
		messages[0].Values = func() map[string]string { return map[string]string{message.VarDrop: text} }
		w.Accept(openID)
		if r := s.Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
			rt.Errorf("%q: %+v", text, r)
		}
	})
}

var requestID = regexp.MustCompile(` rid: [0-9a-f-]+`)

// TestTheImitationAnswersAsWeChat compares the imitation's answers with WeChat's answers, taken
// from its documentation and from questions of developers. The id of the request is not
// compared.
func TestTheImitationAnswersAsWeChat(t *testing.T) {
	w := newWeChat(t)
	post := func(path, body string) string {
		t.Helper()
		answer, err := http.Post(w.URL+path, "application/json", strings.NewReader(body))
		musttest.OK(t, err)
		defer func() { _ = answer.Body.Close() }()
		raw, err := io.ReadAll(answer.Body)
		musttest.OK(t, err)
		return string(raw)
	}
	var issued struct {
		Access  string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	token := `{"grant_type":"client_credential","appid":"` + w.AppID + `","secret":"` + w.Secret + `"}`
	if err := json.Unmarshal([]byte(post("/cgi-bin/stable_token", token)), &issued); err != nil || issued.Seconds != 7200 {
		t.Fatalf("got %+v, %v", issued, err)
	}
	send := "/cgi-bin/message/subscribe/send?access_token=" + issued.Access
	body := func(to, template string) string {
		return `{"touser":"` + to + `","template_id":"` + template + `","page":"index","miniprogram_state":"developer","lang":"zh_CN",
			"data":{"thing1":{"value":"活动名称"},"time2":{"value":"2019年10月1日 15:01"},"thing3":{"value":"提示"}}}`
	}
	for name, c := range map[string]struct{ got, want string }{
		"refused":  {post(send, body(openID, w.Template)), `{"errcode":43101,"errmsg":"user refuse to accept the msg rid: 64229bc2-48d0e8b1-2008ed9b"}`},
		"openid":   {post(send, body("OPENID", w.Template)), `{"errcode":40003,"errmsg":"invalid openid rid: 61b0437c-57de737e-47cbfd49"}`},
		"template": {post(send, body(openID, "TEMPLATE_ID")), `{"errcode":40037,"errmsg":"invalid template_id rid: 62ef6ed3-172a764e-4d2a35bf"}`},
		"token": {post("/cgi-bin/message/subscribe/send?access_token=old", body(openID, w.Template)),
			`{"errcode":40001,"errmsg":"invalid credential, access_token is invalid or not latest, could get access_token by getStableAccessToken, more details at https://mmbizurl.cn/s/JtxxFh33r rid: 655d9278-7c157f97-69055077"}`},
	} {
		if got, want := requestID.ReplaceAllString(c.got, ""), requestID.ReplaceAllString(c.want, ""); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	w.Fail("", pushtest.Fault{Reason: "45009"})
	if got := requestID.ReplaceAllString(post(send, body(openID, w.Template)), ""); got != `{"errcode":45009,"errmsg":"reach max api daily quota limit"}` {
		t.Errorf("over the quota: got %s", got)
	}
	w.Heal()
	w.Accept(openID)
	if got := post(send, body(openID, w.Template)); !strings.HasPrefix(got, `{"errcode":0,"errmsg":"ok"`) {
		t.Errorf("accepted: got %s", got)
	}
}
