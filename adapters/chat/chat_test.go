package chat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff/alert"
)

var at = time.Unix(1599360473, 0)

// The bodies are copied from the documentation of each bot.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name string
		to   alert.Destination
		want string
	}{
		{"feishu", alert.Destination{Form: alert.Feishu}, `{"msg_type":"text","content":{"text":"“20 <off>” & 1\nhttps://drop.example/templates/1"}}`},
		{"feishu, signed", alert.Destination{Form: alert.Feishu, Secret: "demo"},
			`{"timestamp":"1599360473","sign":"` + sign("1599360473", "demo") + `","msg_type":"text","content":{"text":"“20 <off>” & 1\nhttps://drop.example/templates/1"}}`},
		{"wecom", alert.Destination{Form: alert.WeCom}, `{"msgtype":"text","text":{"content":"“20 <off>” & 1\nhttps://drop.example/templates/1"}}`},
		{"slack", alert.Destination{Form: alert.Slack}, `{"text":"“20 &lt;off&gt;” &amp; 1\nhttps://drop.example/templates/1"}`},
	} {
		got, err := encode(c.to, "“20 <off>” & 1\nhttps://drop.example/templates/1", at)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v\nwant %s", c.name, got, err, c.want)
		}
	}
	if _, err := encode(alert.Destination{Form: "fax"}, "x", at); err == nil {
		t.Error("an unknown form is encoded")
	}
	// HMAC-SHA256 of nothing with the key "1599360473\ndemo", computed with openssl.
	if got := sign("1599360473", "demo"); got != "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=" {
		t.Errorf("signature %s", got)
	}
	if got := cut(strings.Repeat("券", 1000), maxText); len(got) > maxText || !strings.HasSuffix(got, "券…") {
		t.Errorf("cut to %d bytes", len(got))
	}
}

// Answers decide by status and code; a temporary error is tried again.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		form   alert.Form
		status int
		header string
		body   string
		want   alert.State
		after  time.Duration
	}{
		{alert.Feishu, 200, "", `{"code":0,"msg":"success","data":{}}`, alert.Sent, 0},
		{alert.Feishu, 200, "", `{"Extra":null,"StatusCode":0,"StatusMessage":"success"}`, alert.Sent, 0},
		{alert.Feishu, 200, "", `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`, alert.Failed, 0},
		{alert.Feishu, 400, "", `{"code":9499,"msg":"Bad Request","data":{}}`, alert.Failed, 0},
		{alert.Feishu, 200, "", `{"code":11232,"msg":"frequency limited psm"}`, alert.Waiting, time.Minute},
		{alert.Feishu, 200, "", `<html>`, alert.Failed, 0},
		{alert.Feishu, 200, "", `{}`, alert.Failed, 0},
		{alert.WeCom, 200, "", `{"errcode":0,"errmsg":"ok"}`, alert.Sent, 0},
		{alert.WeCom, 200, "", `{"errcode":93000,"errmsg":"invalid webhook url, hint: [1]"}`, alert.Failed, 0},
		{alert.WeCom, 200, "", `{"errcode":45009,"errmsg":"api freq out of limit"}`, alert.Waiting, time.Minute},
		{alert.Slack, 200, "", "ok", alert.Sent, 0},
		{alert.Slack, 404, "", "no_service", alert.Failed, 0},
		{alert.Slack, 403, "", "invalid_token", alert.Failed, 0},
		{alert.Slack, 429, "30", "", alert.Waiting, 30 * time.Second},
		{alert.Slack, 503, "", "", alert.Waiting, 0},
		{alert.Slack, 302, "", "", alert.Failed, 0},
	} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			raw, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || !json.Valid(raw) || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
				t.Errorf("%s was sent %s %q", c.form, r.Method, raw)
			}
			if c.header != "" {
				w.Header().Set("Retry-After", c.header)
			}
			if c.status == 302 {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		s := New(Config{AllowPrivate: true, Now: func() time.Time { return at }})
		got := s.Send(t.Context(), alert.Delivery{Destination: alert.Destination{Form: c.form, URL: server.URL + "/hook/secret-key"}}, "hello")
		if got.State != c.want || got.After != c.after || calls != 1 || strings.Contains(got.Detail, "secret-key") {
			t.Errorf("%s %d %s: %+v after %d calls", c.form, c.status, c.body, got, calls)
		}
		_ = s.Close()
		server.Close()
	}
}

// TestPrivateAddressesAreRefused: addresses that are not public are not called, whether given by
// number or by name, and neither is plain http. No error shows an address.
func TestPrivateAddressesAreRefused(t *testing.T) {
	called := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer server.Close()
	s := New(Config{Now: time.Now})
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for _, url := range []string{server.URL + "/k3y", "https://localhost:" + port + "/k3y", "https://[::1]:" + port + "/k3y", "http://example.com/k3y", "https://[::ffff:127.0.0.1]:" + port + "/k3y"} {
		got := s.Send(t.Context(), alert.Delivery{Destination: alert.Destination{Form: alert.Slack, URL: url}}, "hello")
		if got.State == alert.Sent || called || strings.Contains(got.Detail, "k3y") {
			t.Errorf("%s: %+v", url, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.Send(ended, alert.Delivery{Destination: alert.Destination{Form: alert.Slack, URL: "https://hooks.slack.example/k3y"}}, "x"); got.State != alert.Waiting || strings.Contains(got.Detail, "k3y") {
		t.Errorf("ended: %+v", got)
	}
}
