// Package chat posts alerts to chat groups, in the formats of the bots of Feishu and WeCom and
// of Slack's incoming webhooks.
package chat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/netrule"
	"dropbell/domain/staff/alert"
)

const (
	timeout   = 10 * time.Second
	maxAnswer = 16 << 10
	// maxText is WeCom's limit for a text, in bytes; the other services accept longer texts.
	maxText = 2048
)

// Config are a sender's limits.
type Config struct {
	// AllowPrivate permits plain http and addresses that are not public. Staff type the
	// addresses, so by default only https to public addresses is called.
	AllowPrivate bool
	Now          func() time.Time
}

// A Sender posts alerts. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	client *http.Client
}

// New returns a sender.
func New(cfg Config) *Sender {
	control := sender.Public
	if cfg.AllowPrivate {
		control = nil
	}
	return &Sender{cfg: cfg, client: sender.Options{Control: control}.Client(timeout)}
}

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send posts the text once; see [alert.Sender].
func (s *Sender) Send(ctx context.Context, d alert.Delivery, text string) alert.Outcome {
	to := d.Destination
	if !s.cfg.AllowPrivate && !strings.HasPrefix(to.URL, "https://") {
		return alert.Outcome{State: alert.Failed, Detail: "only https is called"}
	}
	body, err := encode(to, cut(text, maxText), s.cfg.Now())
	if err != nil {
		return alert.Outcome{State: alert.Failed, Detail: "this form is not known"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return alert.Outcome{State: alert.Failed, Detail: "the address cannot be called"}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	answer, err := sender.Call(s.client, req, maxAnswer)
	if errors.Is(err, netrule.ErrPrivate) {
		return alert.Outcome{State: alert.Failed, Detail: netrule.ErrPrivate.Error()}
	}
	if err = cmp.Or(err, answer.Cut); err != nil {
		return alert.Outcome{State: alert.Waiting, Detail: delivery.CauseOf(err)} // which names no address
	}
	return s.judge(to.Form, answer)
}

// judge reads an answer by its status. If the form has a code in the body, judge also reads the
// code, which may be a failure under status 200.
func (s *Sender) judge(f alert.Form, a sender.Answer) alert.Outcome {
	status := "HTTP " + strconv.Itoa(a.Status)
	switch {
	case a.Status == http.StatusTooManyRequests || a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		return alert.Outcome{State: alert.Waiting, Detail: status, After: delivery.RetryAfter(a.Header.Get("Retry-After"), s.cfg.Now())}
	case a.Status < 200 || a.Status > 299: // redirects are not followed
		return alert.Outcome{State: alert.Failed, Detail: status}
	case f == alert.Slack:
		return alert.Outcome{State: alert.Sent, Detail: status}
	}
	var said struct {
		Code       *int   `json:"code"`       // Feishu
		StatusCode *int   `json:"StatusCode"` // Feishu, older
		ErrCode    *int   `json:"errcode"`    // WeCom
		Msg        string `json:"msg"`
		ErrMsg     string `json:"errmsg"`
	}
	if err := json.Unmarshal(a.Body, &said); err != nil {
		return alert.Outcome{State: alert.Failed, Detail: "the answer is not that of such a group"}
	}
	for _, code := range []*int{said.Code, said.StatusCode, said.ErrCode} {
		if code == nil {
			continue
		}
		detail := strconv.Itoa(*code) + " " + delivery.DetailOf(said.Msg+said.ErrMsg)
		switch {
		case *code == 0:
			return alert.Outcome{State: alert.Sent, Detail: status}
		case *code == feishuBusy || *code == feishuLimit || *code == wecomLimit || *code == wecomBusy:
			return alert.Outcome{State: alert.Waiting, Detail: detail, After: time.Minute}
		}
		return alert.Outcome{State: alert.Failed, Detail: detail}
	}
	return alert.Outcome{State: alert.Failed, Detail: "the answer is not that of such a group"}
}

// Codes with which a message is worth another attempt: too many a minute, or busy.
const (
	feishuLimit = 11232
	feishuBusy  = 1254290
	wecomLimit  = 45009
	wecomBusy   = -1
)

// encode returns the body of a message.
func encode(to alert.Destination, text string, now time.Time) ([]byte, error) {
	type content struct {
		Content string `json:"content"`
	}
	type words struct {
		Text string `json:"text"`
	}
	var body any
	switch to.Form {
	case alert.Feishu:
		m := struct {
			Timestamp string `json:"timestamp,omitempty"`
			Sign      string `json:"sign,omitempty"`
			Type      string `json:"msg_type"`
			Content   words  `json:"content"`
		}{Type: "text", Content: words{text}}
		if to.Secret != "" {
			m.Timestamp = strconv.FormatInt(now.Unix(), 10)
			m.Sign = sign(m.Timestamp, to.Secret)
		}
		body = m
	case alert.WeCom:
		body = struct {
			Type string  `json:"msgtype"`
			Text content `json:"text"`
		}{"text", content{text}}
	case alert.Slack:
		// The three characters that Slack reads as markup.
		body = words{strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)}
	default:
		return nil, errors.New("unknown form")
	}
	return sender.JSON(body), nil
}

// sign is the signature of Feishu: an HMAC of nothing under timestamp and secret.
func sign(timestamp, secret string) string {
	mac := hmac.New(sha256.New, []byte(timestamp+"\n"+secret))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// cut shortens text to at most most bytes, at the boundary of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}
