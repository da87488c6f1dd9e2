package tencent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/smstest"
	"dropbell/adapters/sms/tencent"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func start(t testing.TB) *smstest.Tencent {
	t.Helper()
	p := smstest.NewTencent()
	t.Cleanup(p.Close)
	return p
}

func config(t testing.TB, p *smstest.Tencent) tencent.Config {
	t.Helper()
	list, err := sms.ParseTemplates(`{"reminder":{"zh-CN":{"id":"1110","params":["drop","in"]},"en":{"id":"1111","params":["drop"]}}}`)
	musttest.OK(t, err)
	return tencent.Config{URL: p.URL, KeyID: smstest.KeyID, KeySecret: smstest.KeySecret, App: smstest.TencentApp, Signature: "腾讯云", Templates: list}
}

func sender(t testing.TB, cfg tencent.Config) *tencent.Sender {
	t.Helper()
	s, err := tencent.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return sender(t, config(t, start(t))) },
		Stalled: func(t *testing.T) delivery.Sender {
			p := start(t)
			p.Stall()
			return sender(t, config(t, p))
		},
		Unreachable: func(u *user.User) { u.Phone = "+1" },
		AtOnce:      200, // in one call, with the same text
	})
}

// The example of Tencent Cloud's page on version 3 of its signature.
func TestSignature(t *testing.T) {
	const body = `{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}`
	const secretID, secretKey = "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE", "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE"
	r, err := http.NewRequest(http.MethodPost, "https://cvm.tencentcloudapi.com/", strings.NewReader(body))
	musttest.OK(t, err)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	tencent.Sign(r, []byte(body), "cvm", secretID, secretKey, time.Unix(1551113065, 0))
	const want = "TC3-HMAC-SHA256 Credential=" + secretID + "/2019-02-25/cvm/tc3_request, SignedHeaders=content-type;host, Signature=72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("got %s", got)
	}
	if !smstest.TencentSigned(r, secretID, secretKey) || smstest.TencentSigned(r, secretID, "Another") {
		t.Error("the imitation checks signatures in another way")
	}
}

func TestOneCallForOneText(t *testing.T) {
	p := start(t)
	messages := sendertest.Messages(delivery.SMS, 200)
	for i := range messages {
		messages[i].Values = func() map[string]string { return map[string]string{"drop": "春季", "in": "10 分钟后"} }
		messages[i].To.Locale = "zh-CN"
	}
	messages[5].To.Phone, messages[6].To.Locale, messages[7].To.Locale = "+85291234567", "en", "de"
	results := sender(t, config(t, p)).Send(t.Context(), messages)
	for i, r := range results {
		want := delivery.Delivered
		if i == 7 {
			want = delivery.Permanent
		}
		if r.Status != want {
			t.Errorf("message %d: got %+v", i, r)
		}
	}
	if results[7].Reason != delivery.ReasonNoTemplate {
		t.Errorf("without a template: got %+v", results[7])
	}
	if n := p.Calls(); n != 3 {
		t.Errorf("%d calls, want one for each text and region", n)
	}
	if sent := p.Sent(); len(sent) != 199 || sent[0].Params["1"] == "" {
		t.Errorf("%d were sent, %+v", len(sent), sent[0])
	}
}

func TestOneNumberFailsACall(t *testing.T) {
	p := start(t)
	p.Refuse("+8613800000003", "InvalidParameterValue.MobileNumberFormatError")
	for i, r := range sender(t, config(t, p)).Send(t.Context(), sendertest.Messages(delivery.SMS, 8)) {
		if want := map[bool]delivery.Status{true: delivery.Permanent, false: delivery.Delivered}[i == 2]; r.Status != want {
			t.Errorf("message %d: got %+v", i, r)
		}
	}
}

func TestCodes(t *testing.T) {
	p := start(t)
	s := sender(t, config(t, p))
	for code, want := range map[string]delivery.Status{"FailedOperation.PhoneNumberInBlacklist": delivery.Permanent, "InvalidParameterValue.IncorrectPhoneNumber": delivery.Permanent,
		"LimitExceeded.PhoneNumberDailyLimit": delivery.Throttled, "LimitExceeded.AppDailyLimit": delivery.Throttled, "RequestLimitExceeded": delivery.Throttled,
		"FailedOperation.InsufficientBalanceInSmsPackage": delivery.Transient, "InternalError.Timeout": delivery.Transient, "new": delivery.Transient} {
		p.Refuse("+8613800000001", code)
		r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2))
		if r[0].Status != want || !strings.Contains(r[0].Detail, code) || strings.Contains(r[0].Detail, "138") || r[0].Apart != (code == "LimitExceeded.PhoneNumberDailyLimit") || r[0].Unsent == (code == "InternalError.Timeout") {
			t.Errorf("%s: got %+v", code, r[0])
		}
		if r[1].Status != delivery.Delivered {
			t.Errorf("%s: the other message got %+v", code, r[1])
		}
	}
	for status, want := range map[int]delivery.Status{429: delivery.Throttled, 500: delivery.Transient, 200: delivery.Transient} {
		p.Answer(status, "")
		if r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != want || r.Detail == "" {
			t.Errorf("%d: got %+v", status, r)
		}
	}
	p.Answer(0, "")
	cfg := config(t, p)
	cfg.KeySecret = "another-secret"
	if r := sender(t, cfg).Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != delivery.Transient || !strings.Contains(r.Detail, "AuthFailure.SignatureFailure") {
		t.Errorf("got %+v", r)
	}
}

// kept is a memory of serials.
type kept struct {
	mu    sync.Mutex
	of    map[string]string
	early []feedback.Early
	err   error
}

func (k *kept) Keep(_ context.Context, provider string, serials []feedback.Serial) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range serials {
		k.of[provider+s.ID] = s.Reference
	}
	return k.err
}

func (k *kept) Find(_ context.Context, provider string, ids []string) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := map[string]string{}
	for _, id := range ids {
		if ref := k.of[provider+id]; ref != "" {
			found[id] = ref
		}
	}
	return found, k.err
}

func (k *kept) Early(_ context.Context, _ string, list []feedback.Early) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.early = append(k.early, list...)
	return k.err
}

const (
	key     = "a-key-of-callbacks"
	address = "https://drops.example.com/callbacks/tencent?key=" + key
)

func read(t testing.TB, s tencent.Source, r *http.Request) (feedback.Call, error) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	musttest.OK(t, err)
	return s.Read(r.Header, r.URL, body)
}

func TestAReceiptNamesItsMessage(t *testing.T) {
	p, refs, serials := start(t), feedback.NewRefs("a secret of this test"), &kept{of: map[string]string{}}
	cfg := config(t, p)
	cfg.Serials = serials
	messages := sendertest.Messages(delivery.SMS, 2)
	messages[0].Subject.Reference = func(id user.ID) string { return refs.Text(feedback.Ref{Batch: 7, User: id}) }
	sender(t, cfg).Send(t.Context(), messages)
	source := tencent.Source{Key: key, Refs: refs, Serials: serials}
	sent := p.Sent()
	call, err := read(t, source, smstest.Posted(address, []any{p.Receipt(sent[0], true, "DELIVRD"), p.Receipt(sent[1], false, "MK:0012"),
		p.Receipt(smstest.Sent{ID: "of another program", To: "+8613800000009"}, true, "DELIVRD"), map[string]any{}}))
	if err != nil || len(call.Reports) != 2 {
		t.Fatalf("got %+v, %v", call, err)
	}
	for i, want := range []feedback.Status{feedback.Delivered, feedback.Bounced} {
		if r := call.Reports[i]; r.Status != want || r.Ref != (feedback.Ref{Batch: 7, User: user.ID(i + 1)}) || r.Address != sent[i].To || r.At.IsZero() {
			t.Errorf("got %+v", r)
		}
	}
	// A receipt that comes before the answer is kept until its message is known.
	if len(serials.early) != 1 || serials.early[0].Serial != "of another program" || serials.early[0].Report.Status != feedback.Delivered || serials.early[0].Report.Ref != (feedback.Ref{}) || serials.early[0].Report.Address != "" {
		t.Errorf("kept for later: %+v", serials.early)
	}
	serials.err = errors.New("the database is away")
	if _, err := read(t, source, smstest.Posted(address, []any{p.Receipt(sent[0], true, "DELIVRD")})); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a receipt that cannot be looked up: got %v", err)
	}
	if kind, body := source.Answer(nil); kind != "application/json" || string(body) != `{"result":0,"errmsg":"OK"}` {
		t.Errorf("answers %s, %s", kind, body)
	}
}

func TestCallbacks(t *testing.T) {
	p := start(t)
	source := tencent.Source{Key: key}
	call, err := read(t, source, smstest.Posted(address, p.Inbound("+8613800000001", "T")))
	again, _ := read(t, source, smstest.Posted(address, p.Inbound("+8613800000001", "T")))
	if err != nil || len(call.Replies) != 1 || call.Replies[0].From != "+8613800000001" || call.Replies[0].Text != "T" || call.Replies[0] != again.Replies[0] {
		t.Errorf("got %+v, %v, then %+v", call, err, again)
	}
	if _, err := read(t, source, smstest.Posted(address+"x", p.Inbound("+8613800000001", "T"))); !errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("with another key: got %v", err)
	}
	if _, err := read(t, tencent.Source{}, smstest.Posted("https://x.example/?key=", p.Inbound("+8613800000001", "T"))); !errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("without a key: got %v", err)
	}
	if call, err := read(t, source, smstest.Posted(address, map[string]any{"text": "T", "mobile": "x"})); err != nil || len(call.Replies) > 0 {
		t.Errorf("from a number that is none: got %+v, %v", call, err)
	}
	for _, body := range []any{"x", map[string]any{}, []any{map[string]any{}}, []any{1}} {
		if call, err := read(t, source, smstest.Posted(address, body)); !errors.Is(err, feedback.ErrUnreadable) || len(call.Reports)+len(call.Replies) > 0 {
			t.Errorf("%v: got %+v, %v", body, call, err)
		}
	}
}

// A journal that has gone away.
type noJournal struct{}

func (noJournal) Accepted(user.ID) func(context.Context) error {
	return func(context.Context) error { return errors.New("the database is away") }
}

// TestTheJournalStopsFurtherCalls: messages with different texts need calls of their own. When
// the first message cannot be recorded, only the calls that are already under way are completed.
func TestTheJournalStopsFurtherCalls(t *testing.T) {
	p := start(t)
	messages := sendertest.Messages(delivery.SMS, 200)
	for i := range messages {
		messages[i].Journal = noJournal{}
		messages[i].Values = func() map[string]string { return map[string]string{"drop": strconv.Itoa(i), "in": "x"} }
	}
	delivered := 0
	for i, r := range sender(t, config(t, p)).Send(t.Context(), messages) {
		if r.Status == delivery.Delivered {
			delivered++
		} else if r != delivery.Unrecorded() {
			t.Errorf("message %d: got %+v", i, r)
		}
	}
	if delivered < 1 || delivered > 20 || p.Calls() != delivered {
		t.Errorf("%d messages were handed over in %d calls, want 1 to 20", delivered, p.Calls())
	}
}
