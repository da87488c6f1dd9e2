package aliyun_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/musttest"
)

const texts = `{"reminder":{"zh-CN":{"id":"SMS_154950909","params":["drop","in","url=link"]},"en":{"id":"SMS_2","params":["text"]}},"cancelled":{"*":{"id":"SMS_3","params":[]}}}`

func start(t testing.TB) *smstest.Aliyun {
	t.Helper()
	p := smstest.NewAliyun()
	t.Cleanup(p.Close)
	return p
}

func templates(t testing.TB) sms.Templates {
	t.Helper()
	list, err := sms.ParseTemplates(texts)
	musttest.OK(t, err)
	return list
}

func sender(t testing.TB, p *smstest.Aliyun) *sms.Sender {
	t.Helper()
	s, err := aliyun.New(aliyun.Config{URL: p.URL, KeyID: smstest.KeyID, KeySecret: smstest.KeySecret, Signature: "阿里云", Templates: templates(t)})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return sender(t, start(t)) },
		Stalled: func(t *testing.T) delivery.Sender {
			p := start(t)
			p.Stall()
			return sender(t, p)
		},
		Unreachable: func(u *user.User) { u.Phone = "+1" },
		AtOnce:      20,
	})
}

// The example of Alibaba Cloud's page on version 3 of its signature.
func TestSignature(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://ecs.cn-shanghai.aliyuncs.com/?ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai", nil)
	musttest.OK(t, err)
	for name, value := range map[string]string{"x-acs-action": "RunInstances", "x-acs-version": "2014-05-26", "x-acs-date": "2023-10-26T10:22:32Z", "x-acs-signature-nonce": "3156853299f313e23d1673dc12e1703d"} {
		r.Header.Set(name, value)
	}
	aliyun.Sign(r, "YourAccessKeyId", "YourAccessKeySecret")
	const want = "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("got %s", got)
	}
	if !smstest.AliyunSigned(r, "YourAccessKeyId", "YourAccessKeySecret") || smstest.AliyunSigned(r, "YourAccessKeyId", "Another") {
		t.Error("the imitation checks signatures in another way")
	}
}

func TestATemplateIsFilled(t *testing.T) {
	p, refs := start(t), feedback.NewRefs("a secret of this test")
	s := sender(t, p)
	messages := sendertest.Messages(delivery.SMS, 3)
	for i := range messages {
		messages[i].Values = func() map[string]string {
			return map[string]string{"drop": "春季 ~ & +", "in": "10 分钟后", "link": "https://shop.example/claim/7"}
		}
		messages[i].Subject.Reference = func(id user.ID) string { return refs.Text(feedback.Ref{Batch: 7, User: id}) }
	}
	messages[0].To.Locale, messages[1].To.Phone, messages[2].To.Locale = "zh-CN", "+85291234567", "de"
	results := s.Send(t.Context(), messages)
	if results[0].Status != delivery.Delivered || results[1].Status != delivery.Delivered {
		t.Fatalf("got %+v", results)
	}
	if r := results[2]; r.Status != delivery.Permanent || r.Reason != delivery.ReasonNoTemplate || !strings.Contains(r.Detail, "SMS_TEMPLATES") {
		t.Errorf("without a template: got %+v", r)
	}
	for _, sent := range p.Sent() {
		switch sent.To {
		case "13800000001":
			if sent.Text != "SMS_154950909" || len(sent.Params) != 3 || sent.Params["drop"] != "春季 ~ & +" || sent.Params["url"] != "https://shop.example/claim/7" || sent.Reference != refs.Text(feedback.Ref{Batch: 7, User: 1}) {
				t.Errorf("sent %+v", sent)
			}
		case "85291234567":
			if sent.Text != "SMS_2" || sent.Params["text"] != messages[1].Content.Text {
				t.Errorf("sent %+v", sent)
			}
		default:
			t.Errorf("sent to %s", sent.To)
		}
	}
}

func TestCodes(t *testing.T) {
	p := start(t)
	s := sender(t, p)
	for code, want := range map[string]delivery.Status{"isv.MOBILE_NUMBER_ILLEGAL": delivery.Permanent, "isv.BLACK_KEY_CONTROL_LIMIT": delivery.Permanent,
		"isv.BUSINESS_LIMIT_CONTROL": delivery.Throttled, "Throttling.User": delivery.Throttled, "isv.DAY_LIMIT_CONTROL": delivery.Throttled,
		"isv.AMOUNT_NOT_ENOUGH": delivery.Transient, "isv.SMS_SIGNATURE_ILLEGAL": delivery.Transient, "isp.SYSTEM_ERROR": delivery.Transient, "new": delivery.Transient} {
		p.Refuse("13800000001", code)
		r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2))
		if r[0].Status != want || !strings.Contains(r[0].Detail, code) || strings.Contains(r[0].Detail, "138") || r[0].Apart != (code == "isv.BUSINESS_LIMIT_CONTROL") || r[0].Unsent == (code == "isp.SYSTEM_ERROR") {
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
}

func TestWrongKey(t *testing.T) {
	p := start(t)
	s, err := aliyun.New(aliyun.Config{URL: p.URL, KeyID: smstest.KeyID, KeySecret: "another-secret", Signature: "阿里云", Templates: templates(t)})
	musttest.OK(t, err)
	if r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != delivery.Transient || !strings.Contains(r.Detail, "SignatureDoesNotMatch") {
		t.Errorf("got %+v", r)
	}
	for _, cfg := range []aliyun.Config{{}, {KeyID: "a", KeySecret: "another-secret"}, {KeyID: "a", KeySecret: "another-secret", Signature: "s"}, {KeyID: "a,b", KeySecret: "another-secret", Signature: "s", Templates: templates(t)}} {
		if _, err := aliyun.New(cfg); err == nil || strings.Contains(err.Error(), "another-secret") {
			t.Errorf("got %v", err)
		}
	}
}

const key = "a-key-of-callbacks"

func read(t testing.TB, s aliyun.Source, r *http.Request) (feedback.Call, error) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	musttest.OK(t, err)
	return s.Read(r.Header, r.URL, body)
}

func TestCallbacks(t *testing.T) {
	p, refs := start(t), feedback.NewRefs("a secret of this test")
	source := aliyun.Source{Key: key, Refs: refs}
	const address = "https://drops.example.com/callbacks/aliyun?key=" + key
	sent := smstest.Sent{To: "13800000001", ID: "1^0", Reference: refs.Text(feedback.Ref{Batch: 7, User: 1})}
	call, err := read(t, source, smstest.Posted(address, []any{p.Receipt(sent, true, "DELIVERED"), p.Receipt(sent, false, "MK:0012"), p.Receipt(sent, false, "UNDELIV"),
		p.Inbound("13800000001", "TD", "77"), p.Inbound("85291234567", "T", "78")}))
	if err != nil || len(call.Reports) != 3 || len(call.Replies) != 2 {
		t.Fatalf("got %+v, %v", call, err)
	}
	for i, want := range []feedback.Status{feedback.Delivered, feedback.Bounced, feedback.SoftBounced} {
		if r := call.Reports[i]; r.Status != want || r.Ref != (feedback.Ref{Batch: 7, User: 1}) || r.Address != "+8613800000001" || r.At.IsZero() {
			t.Errorf("got %+v", r)
		}
	}
	if r := call.Replies[0]; r != (feedback.Reply{Provider: "aliyun", From: "+8613800000001", Text: "TD", ID: "77"}) {
		t.Errorf("got %+v", r)
	}
	if call.Replies[1].From != "+85291234567" {
		t.Errorf("got %+v", call.Replies[1])
	}
	if kind, body := source.Answer(nil); kind != "application/json" || string(body) != `{"code":0,"msg":"OK"}` {
		t.Errorf("answers %s, %s", kind, body)
	}
}

func TestHostileCallbacks(t *testing.T) {
	p, refs := start(t), feedback.NewRefs("a secret of this test")
	source := aliyun.Source{Key: key, Refs: refs}
	good := []any{p.Inbound("13800000001", "TD", "77")}
	for _, address := range []string{"https://x.example/callbacks/aliyun", "https://x.example/callbacks/aliyun?key=", "https://x.example/callbacks/aliyun?key=" + key + "x"} {
		if _, err := read(t, source, smstest.Posted(address, good)); !errors.Is(err, feedback.ErrUnverified) {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if _, err := read(t, aliyun.Source{}, smstest.Posted("https://x.example/callbacks/aliyun?key=", good)); !errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("without a key: got %v", err)
	}
	for _, body := range []any{"x", map[string]any{}, []any{map[string]any{}}, []any{1}} {
		if call, err := read(t, source, smstest.Posted("https://x.example/callbacks/aliyun?key="+key, body)); !errors.Is(err, feedback.ErrUnreadable) || len(call.Reports)+len(call.Replies) > 0 {
			t.Errorf("%v: got %+v, %v", body, call, err)
		}
	}
}

// A foreign or malformed entry does not discard a STOP in the same call.
func TestForeignEntries(t *testing.T) {
	source := aliyun.Source{Key: key, Refs: feedback.NewRefs("a secret of this test")}
	call, err := read(t, source, smstest.Posted("https://x.example/callbacks/aliyun?key="+key, []any{map[string]any{"content": "TD", "phone_number": "x"},
		map[string]any{"success": true, "out_id": "0123456789", "phone_number": "13800000001"}, map[string]any{}, start(t).Inbound("13800000001", "TD", "77")}))
	if err != nil || len(call.Reports) != 1 || call.Reports[0].Ref != (feedback.Ref{}) || len(call.Replies) != 1 || call.Replies[0].From != "+8613800000001" {
		t.Errorf("got %+v, %v", call, err)
	}
}
