package twilio_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/smstest"
	"dropbell/adapters/sms/twilio"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/musttest"
)

const callback = "https://drops.example.com/callbacks/twilio"

func start(t testing.TB) *smstest.Twilio {
	t.Helper()
	p := smstest.NewTwilio()
	t.Cleanup(p.Close)
	return p
}

func sender(t testing.TB, p *smstest.Twilio) *sms.Sender {
	t.Helper()
	s, err := twilio.New(twilio.Config{URL: p.URL, Account: smstest.TwilioAccount, AuthToken: smstest.TwilioToken, From: "MG9752274e9e519418a7406176694466fa", Callback: callback})
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

// referenced returns messages that have references.
func referenced(refs feedback.Refs, n int) []delivery.Message {
	messages := sendertest.Messages(delivery.SMS, n)
	for i := range messages {
		messages[i].Subject.Reference = func(id user.ID) string { return refs.Text(feedback.Ref{Batch: 7, User: id}) }
	}
	return messages
}

func TestAReceiptNamesItsMessage(t *testing.T) {
	p, refs := start(t), feedback.NewRefs("a secret of this test")
	if r := sender(t, p).Send(t.Context(), referenced(refs, 1))[0]; r.Status != delivery.Delivered {
		t.Fatalf("got %+v", r)
	}
	sent := p.Sent()[0]
	if sent.To != "+8613800000001" || !strings.HasPrefix(sent.Callback, callback+"?ref=") || !strings.HasSuffix(sent.Callback, "#rc=5&rp=all") {
		t.Fatalf("sent %+v", sent)
	}
	source := twilio.Source{AuthToken: smstest.TwilioToken, Refs: refs}
	for _, c := range []struct {
		status, code string
		want         feedback.Status
	}{{"delivered", "", feedback.Delivered}, {"undelivered", "30005", feedback.Bounced}, {"undelivered", "30003", feedback.SoftBounced}, {"failed", "30007", feedback.Bounced}} {
		r := p.Receipt(sent, c.status, c.code)
		call, err := read(t, source, r)
		if err != nil || len(call.Reports) != 1 {
			t.Fatalf("%s: got %+v, %v", c.status, call, err)
		}
		got := call.Reports[0]
		if got.Status != c.want || got.Ref != (feedback.Ref{Batch: 7, User: 1}) || got.Cause != c.code || got.Provider != "twilio" || got.Address != sent.To {
			t.Errorf("%s: got %+v", c.status, got)
		}
	}
	r := p.Receipt(sent, "delivered", "")
	form := url.Values{"MessageStatus": {"delivered"}, "To": {sent.To}}
	r.Header.Set("X-Twilio-Signature", twilio.Signature(smstest.TwilioToken, sent.Callback, form))
	if call, err := source.Read(r.Header, r.URL, []byte(form.Encode())); err != nil || len(call.Reports) != 1 {
		t.Errorf("signed together with the fragment: got %+v, %v", call, err)
	}
	// Twilio signs the address with its port or without.
	for called, signed := range map[string]string{sent.Callback: strings.Replace(sent.Callback, ".com/", ".com:443/", 1),
		strings.Replace(sent.Callback, ".com/", ".com:8443/", 1): sent.Callback} {
		u, err := url.Parse(called)
		musttest.OK(t, err)
		signed, _, _ = strings.Cut(signed, "#")
		header := http.Header{"X-Twilio-Signature": {twilio.Signature(smstest.TwilioToken, signed, form)}}
		if call, err := source.Read(header, u, []byte(form.Encode())); err != nil || len(call.Reports) != 1 {
			t.Errorf("%s signed as %s: got %+v, %v", called, signed, call, err)
		}
	}
	for _, status := range []string{"queued", "sending", "sent", "accepted"} {
		if call, err := read(t, source, p.Receipt(sent, status, "")); err != nil || len(call.Reports) != 0 {
			t.Errorf("%s: got %+v, %v", status, call, err)
		}
	}
}

func read(t testing.TB, s twilio.Source, r *http.Request) (feedback.Call, error) {
	t.Helper()
	body := make([]byte, r.ContentLength)
	if _, err := r.Body.Read(body); err != nil {
		t.Fatal(err)
	}
	return s.Read(r.Header, r.URL, body)
}

// The example of Twilio's page on the security of webhooks.
func TestSignature(t *testing.T) {
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"}, "From": {"+14158675309"}, "To": {"+18005551212"}}
	if got := twilio.Signature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", form); got != "RSOYDt4T1cUTdK1PDd93/VVr8B8=" {
		t.Errorf("got %s", got)
	}
}

func TestForgedCallbacks(t *testing.T) {
	p, refs := start(t), feedback.NewRefs("a secret of this test")
	sent := smstest.Sent{ID: "SM1", To: "+8613800000001", Callback: callback + "?ref=" + refs.Text(feedback.Ref{Batch: 7, User: 1})}
	source := twilio.Source{AuthToken: smstest.TwilioToken, Refs: refs}
	for name, forge := range map[string]func(r *http.Request){
		"no signature":      func(r *http.Request) { r.Header.Del("X-Twilio-Signature") },
		"another signature": func(r *http.Request) { r.Header.Set("X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8=") },
		"another address":   func(r *http.Request) { r.URL.RawQuery = "ref=abc" },
		"another host":      func(r *http.Request) { r.URL.Host = "evil.example" },
	} {
		r := p.Receipt(sent, "delivered", "")
		forge(r)
		if _, err := read(t, source, r); !errors.Is(err, feedback.ErrUnverified) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := read(t, twilio.Source{Refs: refs}, p.Receipt(sent, "delivered", "")); !errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("without a token: got %v", err)
	}
	sent.Callback = callback + "?ref=0123456789"
	if call, err := read(t, source, p.Receipt(sent, "delivered", "")); err != nil || len(call.Reports) != 1 || call.Reports[0].Ref != (feedback.Ref{}) {
		t.Errorf("a reference that was not written here: got %+v, %v", call, err)
	}
	if call, err := read(t, source, p.Inbound(callback, "12345", "STOP", "SM7")); err != nil || len(call.Replies) > 0 {
		t.Errorf("a message of a short code: got %+v, %v", call, err)
	}
	if _, err := read(t, source, p.Signed(callback, url.Values{"Body": {"STOP"}})); !errors.Is(err, feedback.ErrUnreadable) {
		t.Errorf("a message from nobody: got %v", err)
	}
}

func TestInbound(t *testing.T) {
	p := start(t)
	source := twilio.Source{AuthToken: smstest.TwilioToken}
	call, err := read(t, source, p.Inbound(callback, "+14155552671", "Stop", "SM77"))
	if err != nil || len(call.Replies) != 1 || call.Replies[0] != (feedback.Reply{Provider: "twilio", From: "+14155552671", Text: "Stop", ID: "SM77"}) {
		t.Errorf("got %+v, %v", call, err)
	}
	// Twilio says how it understood the account's own keywords.
	for means, want := range map[string]string{"STOP": "STOP", "START": "START", "HELP": "HELP", "": "ARRET", "ELSE": "ARRET"} {
		form := url.Values{"MessageSid": {"SM78"}, "From": {"+14155552671"}, "Body": {"ARRET"}, "OptOutType": {means}}
		if call, err := read(t, source, p.Signed(callback, form)); err != nil || len(call.Replies) != 1 || call.Replies[0].Text != want {
			t.Errorf("OptOutType %s: got %+v, %v", means, call, err)
		}
	}
	kind, body := source.Answer([]string{"", "You <are> out"})
	if kind != "text/xml; charset=utf-8" || !strings.Contains(string(body), "<Response><Message>You &lt;are&gt; out</Message></Response>") {
		t.Errorf("got %s, %s", kind, body)
	}
}

func TestCodes(t *testing.T) {
	p := start(t)
	s := sender(t, p)
	for code, want := range map[string]delivery.Status{"21211": delivery.Permanent, "21610": delivery.Permanent, "21614": delivery.Permanent, "21408": delivery.Permanent,
		"20429": delivery.Throttled, "21611": delivery.Throttled, "63038": delivery.Throttled, "21606": delivery.Transient, "99999": delivery.Transient} {
		p.Refuse("+8613800000001", code)
		r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2))
		if r[0].Status != want || !strings.Contains(r[0].Detail, code) || strings.Contains(r[0].Detail, "138") {
			t.Errorf("%s: got %+v", code, r[0])
		}
		if r[1].Status != delivery.Delivered {
			t.Errorf("%s: the other message got %+v", code, r[1])
		}
	}
}

func TestTheServiceIsIll(t *testing.T) {
	p := start(t)
	s := sender(t, p)
	for _, c := range []struct {
		status int
		after  string
		want   delivery.Status
		pause  time.Duration
	}{{429, "3", delivery.Throttled, 3 * time.Second}, {500, "", delivery.Transient, 0}, {503, "2", delivery.Throttled, 2 * time.Second}, {302, "", delivery.Transient, 0}, {200, "", delivery.Transient, 0}} {
		p.Answer(c.status, c.after)
		if r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != c.want || r.After != c.pause || r.Detail == "" || r.Unsent != (c.status == 429) {
			t.Errorf("%d: got %+v", c.status, r)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	p := start(t)
	s, err := twilio.New(twilio.Config{URL: p.URL, Account: smstest.TwilioAccount, AuthToken: "another-secret", From: "+15005550006"})
	musttest.OK(t, err)
	if r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != delivery.Transient || !r.Unsent || strings.Contains(r.Detail, "another-secret") {
		t.Errorf("got %+v", r)
	}
	for _, cfg := range []twilio.Config{{}, {Account: "AC1"}, {Account: "AC1", AuthToken: "another-secret"}, {Account: "XX", AuthToken: "another-secret", From: "a"}, {URL: "ftp://x", Account: "AC1", AuthToken: "another-secret", From: "a"}} {
		if _, err := twilio.New(cfg); err == nil || strings.Contains(err.Error(), "another-secret") {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}
