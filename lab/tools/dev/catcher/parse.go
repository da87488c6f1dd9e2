package catcher

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
)

// smsMessage and webhookMessage are the messages of Dropbell's SMS and webhook channels. A
// request has up to a hundred of them.
type smsMessage struct {
	To             string `json:"to"`
	Text           string `json:"text"`
	IdempotencyKey string `json:"idempotency_key"`
}

type webhookMessage struct {
	UserID         string `json:"user_id"`
	TemplateID     string `json:"template_id"`
	Kind           string `json:"kind"`
	Slot           int    `json:"slot"`
	Title          string `json:"title"`
	Text           string `json:"text"`
	IdempotencyKey string `json:"idempotency_key"`
}

// describe makes the list's line of a stored message. A message that cannot be parsed is shown
// unparsed rather than hidden.
func describe(kind Kind, raw []byte) message {
	m := message{Kind: kind}
	switch kind {
	case SMS:
		var s smsMessage
		_ = json.Unmarshal(raw, &s) // written by this package
		m.To, m.Title, m.Key = s.To, s.Text, s.IdempotencyKey
	case Webhook:
		var w webhookMessage
		_ = json.Unmarshal(raw, &w) // written by this package
		m.To, m.Title, m.Key = "user "+w.UserID, w.Title, w.IdempotencyKey
	case Push:
		var p pushMessage
		_ = json.Unmarshal(raw, &p) // written by this package
		m.To, m.Title, m.Key = p.Device, p.Title, p.Key
	case Mail:
		letter, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			m.Title = "(not a readable e-mail)"
			return m
		}
		m.To = letter.Header.Get("X-Envelope-To")
		m.Title = decodeWords(letter.Header.Get("Subject"))
	}
	return m
}

func decodeWords(s string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(s)
	if err != nil {
		return s
	}
	return decoded
}

// letter is an e-mail taken apart for the page.
type letter struct {
	From, Subject, Date string
	Header              []string // the remaining lines
	Text, HTML          string
}

func parseLetter(raw []byte) letter {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return letter{Subject: "(not a readable e-mail)", Text: string(raw)}
	}
	l := letter{
		From:    decodeWords(m.Header.Get("From")),
		Subject: decodeWords(m.Header.Get("Subject")),
		Date:    m.Header.Get("Date"),
	}
	for _, name := range []string{"To", "Message-Id", "List-Unsubscribe", "List-Unsubscribe-Post"} {
		if v := m.Header.Get(name); v != "" {
			l.Header = append(l.Header, name+": "+decodeWords(v))
		}
	}
	l.addPart(textproto.MIMEHeader(m.Header), m.Body)
	return l
}

// addPart takes the first plain text and the first HTML text from a part and its nested parts.
func (l *letter) addPart(h textproto.MIMEHeader, body io.Reader) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if err != nil {
				return // the end, or damage: the parts read so far are shown
			}
			l.addPart(p.Header, p)
		}
	}
	text, _ := io.ReadAll(decodeBody(h.Get("Content-Transfer-Encoding"), body)) // likewise
	switch {
	case kind == "text/html" && l.HTML == "":
		l.HTML = string(text)
	case kind == "text/plain" && l.Text == "":
		l.Text = string(text)
	}
}

func decodeBody(encoding string, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	default:
		return body
	}
}
