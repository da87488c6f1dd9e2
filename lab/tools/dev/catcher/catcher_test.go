package catcher

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

const (
	testToken  = "sms-token"
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

type caught struct {
	*Catcher
	web, smtp string
}

func start(t *testing.T, dir string) caught {
	t.Helper()
	mail, err := localstack.FreePort(0)
	musttest.OK(t, err)
	web, err := localstack.FreePort(0)
	musttest.OK(t, err)
	c := caught{web: fmt.Sprintf("http://127.0.0.1:%d", web), smtp: fmt.Sprintf("127.0.0.1:%d", mail)}
	c.Catcher, err = Start(Config{
		Dir: dir, SMTPAddr: c.smtp, HTTPAddr: strings.TrimPrefix(c.web, "http://"),
		SMSToken: testToken, WebhookSecret: testSecret,
	})
	musttest.OK(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func (c caught) get(t *testing.T, path string) (body string, h http.Header) {
	t.Helper()
	response, err := http.Get(c.web + path)
	musttest.OK(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	musttest.OK(t, err)
	return string(raw), response.Header
}

const multipartLetter = "From: =?utf-8?q?Dropbell?= <drops@dropbell.test>\r\nTo: user1001@example.test\r\n" +
	"Subject: =?utf-8?b?5byA5oqi?= <soon>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nCaf=C3=A9 in five=\r\n minutes\r\n" +
	"--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==\r\n--b--\r\n"

func (c caught) send(t *testing.T, to, letter string) {
	t.Helper()
	musttest.OK(t, smtp.SendMail(c.smtp, nil, "drops@dropbell.test", []string{to}, []byte(letter)))
}

func TestMailIsShownSafelyAndKept(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir)
	c.send(t, "user1001@example.test", multipartLetter)
	c.send(t, "other@example.test", "Subject: plain\r\n\r\nnothing special")

	list, h := c.get(t, "/?to=USER1001")
	if !strings.Contains(list, "开抢 &lt;soon&gt;") || strings.Contains(list, "other@example.test") {
		t.Errorf("the filtered list is wrong:\n%s", list)
	}
	if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("policy %q", p)
	}
	found, _ := c.store.list(Mail, "user1001", 10)
	page, _ := c.get(t, fmt.Sprintf("/messages/%d", found[0].ID))
	if !strings.Contains(page, "Café in five minutes") || !strings.Contains(page, "sandbox src=") || strings.Contains(page, "<script") {
		t.Errorf("the message's page is wrong:\n%s", page)
	}
	html, h := c.get(t, fmt.Sprintf("/messages/%d/html", found[0].ID))
	if html != "<script>alert(1)</script>" {
		t.Errorf("HTML part %q", html)
	}
	if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox; default-src 'none'") {
		t.Errorf("the frame's policy is %q", p)
	}
	again, err := openStore(dir)
	musttest.OK(t, err)
	if kept, total := again.list(Mail, "", 10); total != 2 || kept[0].Title != "plain" || kept[1].Title != "开抢 <soon>" {
		t.Errorf("after a restart: %+v", kept)
	}
}

func TestListPausesOnRequest(t *testing.T) {
	c := start(t, t.TempDir())
	if page, _ := c.get(t, "/"); !strings.Contains(page, `http-equiv="refresh"`) {
		t.Error("the list does not refresh")
	}
	if page, _ := c.get(t, "/?paused=1"); strings.Contains(page, `http-equiv="refresh"`) {
		t.Error("the paused list refreshes")
	}
}

func (c caught) post(t *testing.T, path, body string, h http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", c.web+path, strings.NewReader(body))
	musttest.OK(t, err)
	request.Header = h
	response, err := http.DefaultClient.Do(request)
	musttest.OK(t, err)
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(raw))
}

func TestSMS(t *testing.T) {
	c := start(t, t.TempDir())
	right := http.Header{"Authorization": {"Bearer " + testToken}}
	body := `{"messages":[{"to":"+12025550123","text":"soon","idempotency_key":"a"},{"to":"","text":"x"}]}`
	for range 2 { // the repetition is accepted and not shown twice
		status, answer := c.post(t, "/sms", body, right)
		want := `{"results":[{"status":"accepted","error":""},{"status":"rejected","error":"no number"}]}`
		if status != 200 || answer != want {
			t.Errorf("%d %s", status, answer)
		}
	}
	if found, total := c.store.list(SMS, "", 10); total != 1 || found[0].Title != "soon" {
		t.Errorf("caught %+v", found)
	}
	many, _ := json.Marshal(map[string]any{"messages": make([]smsMessage, 101)})
	for name, bad := range map[string]struct {
		body string
		h    http.Header
		want int
	}{
		"no token":      {body, http.Header{}, 401},
		"wrong token":   {body, http.Header{"Authorization": {"Bearer x"}}, 401},
		"not JSON":      {"{", right, 400},
		"more than 100": {string(many), right, 413},
	} {
		if status, _ := c.post(t, "/sms", bad.body, bad.h); status != bad.want {
			t.Errorf("%s: status %d, expected %d", name, status, bad.want)
		}
	}
}

func TestWebhookNeedsItsSignature(t *testing.T) {
	c := start(t, t.TempDir())
	signer, err := standardwebhooks.NewWebhook(testSecret)
	musttest.OK(t, err)
	body := `{"messages":[{"user_id":"1001","template_id":"1","title":"soon","idempotency_key":"k"}]}`
	now := time.Now()
	signature, err := signer.Sign("msg_1", now, []byte(body))
	musttest.OK(t, err)
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	h.Set("webhook-signature", signature)
	if status, answer := c.post(t, "/webhook", body, h); status != 204 {
		t.Errorf("signed: %d %s", status, answer)
	}
	if status, _ := c.post(t, "/webhook", strings.Replace(body, "1001", "1002", 1), h); status != 401 {
		t.Errorf("changed after signing: %d", status)
	}
	if found, total := c.store.list(Webhook, "1001", 10); total != 1 || found[0].Title != "soon" {
		t.Errorf("caught %+v", found)
	}
}

func TestStoreKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir)
	musttest.OK(t, err)
	musttest.OK(t, s.add(SMS, []byte(`{"to":"+1","text":"another kind"}`)))
	for i := range keep + 3 {
		musttest.OK(t, s.add(Mail, fmt.Appendf(nil, "Subject: %d\r\n\r\n", i)))
	}
	found, total := s.list(Mail, "", keep)
	if total != keep || found[0].Title != fmt.Sprint(keep+2) || found[keep-1].Title != "3" {
		t.Errorf("%d kept, from %s to %s", total, found[keep-1].Title, found[0].Title)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != keep+1 {
		t.Errorf("%d files", len(files))
	}
}

func TestUnreadableMailIsShownAsItIs(t *testing.T) {
	dir := t.TempDir()
	musttest.OK(t, os.WriteFile(filepath.Join(dir, "5.eml"), []byte("not a letter"), 0o600))
	musttest.OK(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	s, err := openStore(dir)
	musttest.OK(t, err)
	c := &Catcher{store: s}
	w := httptest.NewRecorder()
	c.routes().ServeHTTP(w, httptest.NewRequest("GET", "/messages/5", nil))
	if w.Code != 200 || !bytes.Contains(w.Body.Bytes(), []byte("not a letter")) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, total := s.list(Mail, "", 10); total != 1 {
		t.Errorf("%d messages", total)
	}
}

// TestCloseRightAfterStart ends also if the servers have not begun to serve yet.
func TestCloseRightAfterStart(t *testing.T) {
	for range 50 {
		c, err := Start(Config{Dir: t.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", SMSToken: testToken, WebhookSecret: testSecret})
		musttest.OK(t, err)
		musttest.OK(t, c.Close(t.Context()))
	}
}
