package smtp_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// A letter is a received mail, decoded by the standard library.
type letter struct {
	header mail.Header
	parts  map[string]string
}

func (l letter) decoded(t *testing.T, header string) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(l.header.Get(header))
	musttest.OK(t, err)
	return text
}

func open(t *testing.T, raw []byte) letter {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	musttest.OK(t, err)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q, %v", kind, err)
	}
	l := letter{header: message.Header, parts: make(map[string]string)}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return l
		}
		musttest.OK(t, err)
		var body io.Reader = quotedprintable.NewReader(part)
		if part.Header.Get("Content-Transfer-Encoding") == "base64" {
			body = base64.NewDecoder(base64.StdEncoding, part)
		}
		decoded, err := io.ReadAll(body)
		musttest.OK(t, err)
		kind, _, _ := strings.Cut(part.Header.Get("Content-Type"), ";")
		l.parts[kind] = string(decoded)
	}
}

// deliver sends one message after change and returns the received mail.
func deliver(t *testing.T, cfg func(*smtp.Config), change func(*delivery.Message)) letter {
	t.Helper()
	r := new(relay).start(t, nil)
	messages := sendertest.Messages(delivery.Email, 1)
	change(&messages[0])
	want(t, r.sender(t, cfg).Send(t.Context(), messages), delivery.Delivered)
	for line := range bytes.SplitSeq(r.last(t).raw, []byte("\r\n")) {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes (RFC 5322 allows 998)", len(line))
		}
	}
	return open(t, r.last(t).raw)
}

func TestChineseRoundTrip(t *testing.T) {
	subject := delivery.Subject{
		Kind: delivery.KindReminder, TemplateID: 7, TemplateName: "春季满减券 🎉", Slot: 2,
		OpensAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), ClaimURL: "https://shop.example/c/7?a=1&b=2",
	}
	content := delivery.Render(nil, subject, delivery.Email, user.User{Locale: "zh-CN", Timezone: "Asia/Shanghai"})
	got := deliver(t, nil, func(m *delivery.Message) {
		m.Subject, m.Content = &subject, &content
		m.To.Name = "王小明"
	})
	if title := got.decoded(t, "Subject"); title != content.Title {
		t.Errorf("got subject %q, want %q", title, content.Title)
	}
	to, err := got.header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Name != "王小明" {
		t.Errorf("got To %v, %v", to, err)
	}
	if text := got.parts["text/plain"]; text != content.Text {
		t.Errorf("got text %q, want %q", text, content.Text)
	}
	if html := got.parts["text/html"]; strings.ReplaceAll(html, "\r\n", "\n") != content.HTML {
		t.Errorf("got HTML %q, want %q", html, content.HTML)
	}
}

func TestHeadersCannotBeInjected(t *testing.T) {
	const evil = "Hi\r\nBcc: victim@example.com\r\n\r\nbody\x00\u2028x"
	got := deliver(t, nil, func(m *delivery.Message) {
		m.Content = &delivery.Content{Title: evil, Text: evil, HTML: "<p>hi</p>", Sender: evil, ReplyTo: "a@example.com\r\nBcc: victim@example.com"}
		m.To.Name = evil + `" <other@example.com>, "`
	})
	if bcc := got.header.Get("Bcc"); bcc != "" {
		t.Errorf("somebody wrote the header Bcc: %q", bcc)
	}
	if want := "Hi Bcc: victim@example.com body x"; got.decoded(t, "Subject") != want {
		t.Errorf("got subject %q", got.decoded(t, "Subject"))
	}
	from, err := got.header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Hi Bcc: victim@example.com body x" || from[0].Address != "drops@shop.example" || got.header.Get("Reply-To") != "" {
		t.Errorf("got From %v, %v, Reply-To %q", from, err, got.header.Get("Reply-To"))
	}
	to, err := got.header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Address != "reader1@example.com" {
		t.Errorf("got To %v, %v", to, err)
	}
}

func TestVeryLongTitles(t *testing.T) {
	for name, title := range map[string]string{
		"ascii":   strings.Repeat("a", 10_000),
		"words":   strings.Repeat("word ", 2_000),
		"chinese": strings.Repeat("券", 10_000),
		"broken":  strings.Repeat("\xff券", 5_000),
	} {
		t.Run(name, func(t *testing.T) {
			got := deliver(t, nil, func(m *delivery.Message) {
				m.Content = &delivery.Content{Title: title, Text: title, HTML: title}
			})
			subject := []rune(got.decoded(t, "Subject"))
			if len(subject) != 200 || subject[199] != '…' {
				t.Errorf("got a subject of %d runes", len(subject))
			}
		})
	}
}

func TestMessageIDIsStableOverRetries(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, nil)
	messages := sendertest.Messages(delivery.Email, 2)
	ids := make([]string, 0, 4)
	for range 2 {
		for i := range messages {
			want(t, s.Send(t.Context(), messages[i:i+1]), delivery.Delivered)
			ids = append(ids, open(t, r.last(t).raw).header.Get("Message-Id"))
		}
	}
	if ids[0] != ids[2] || ids[1] != ids[3] || ids[0] == ids[1] {
		t.Errorf("got message ids %q", ids)
	}
	if !strings.HasSuffix(ids[0], "@shop.example>") {
		t.Errorf("got message id %q", ids[0])
	}
}

// TestUnsubscribeLink: the mail's body contains the unsubscribe link, in the reader's language,
// for mail programs without an unsubscribe button.
func TestUnsubscribeLink(t *testing.T) {
	const link = "https://shop.example/u/AQE?a=1&b=<2>"
	got := deliver(t, nil, func(m *delivery.Message) { m.OptOutURL, m.To.Locale = link, "zh-CN" })
	if text := got.parts["text/plain"]; !strings.HasSuffix(text, "\r\n\r\n您可以关闭我们的全部邮件，包括提醒: https://shop.example/u/AQE?a=1&b=<2>") {
		t.Errorf("text %q", text)
	}
	html := got.parts["text/html"]
	if !strings.Contains(html, `href="https://shop.example/u/AQE?a=1&amp;b=%3c2%3e"`) || strings.Count(html, "</body>") != 1 {
		t.Errorf("HTML %q", html)
	}
	if got := deliver(t, nil, func(m *delivery.Message) { m.OptOutURL = "" }); strings.Contains(got.parts["text/plain"], "Turn off") ||
		strings.Contains(got.parts["text/html"], "Turn off") {
		t.Error("a way out that leads nowhere")
	}
}

func TestUnsubscribeHeader(t *testing.T) {
	for given, wanted := range map[string]string{
		"https://shop.example/u/1?t=a>b": "<https://shop.example/u/1?t=a%3Eb>",
		"":                               "",
		"javascript:alert(1)":            "",
		"https://x.example/\r\nBcc: a@b": "",
	} {
		got := deliver(t, nil, func(m *delivery.Message) { m.OptOutURL = given })
		if header := got.header.Get("List-Unsubscribe"); header != wanted {
			t.Errorf("%q: got List-Unsubscribe %q, want %q", given, header, wanted)
		}
		if post := got.header.Get("List-Unsubscribe-Post"); (post == "List-Unsubscribe=One-Click") != (wanted != "") {
			t.Errorf("%q: got List-Unsubscribe-Post %q", given, post)
		}
	}
}
