package chaos_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/domain/delivery"
)

// ServeHTTP is the webhook endpoint.
func (k *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.inHand.Add(1)
	defer k.inHand.Add(-1)
	list, err := k.readHook(r)
	if err != nil {
		if r.Context().Err() == nil && !broken(err) {
			k.t.Errorf("a webhook call cannot be read: %v", err)
		}
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	if k.hooks.down.Load() {
		k.refused.Add(int64(len(list)))
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	card := k.hooks.deal()
	if k.turnAway(w, r, card, len(list)) {
		return
	}
	k.take(list...)
	if held := k.hold.Load(); held != nil {
		select {
		case <-*held:
		case <-r.Context().Done():
		}
	}
	k.pause(k.hooks, k.slow, r.Context().Done())
	switch {
	case card == late:
		k.settle(concealed, list...)
		select {
		case <-r.Context().Done():
		case <-k.over:
		}
	case card == dropAfter:
		k.settle(concealed, list...)
		panic(http.ErrAbortHandler)
	case r.Context().Err() != nil:
		k.settle(unheard, list...)
	default:
		k.settle(answered, list...)
	}
	w.WriteHeader(http.StatusNoContent)
}

// turnAway deals with a call in such a way that nothing of it arrives.
func (k *sink) turnAway(w http.ResponseWriter, r *http.Request, card fault, n int) bool {
	switch card {
	case refuse:
		http.Error(w, "trouble", http.StatusInternalServerError)
	case throttle:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
	case hang:
		select {
		case <-r.Context().Done():
		case <-k.over:
		}
	case dropBefore:
		k.refused.Add(int64(n))
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	k.refused.Add(int64(n))
	return true
}

// readHook checks the signature and returns the messages of one call.
func (k *sink) readHook(r *http.Request) ([]*arrival, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	if err := verifier.Verify(body, r.Header); err != nil {
		return nil, err
	}
	var call struct {
		Messages []struct {
			UserID int64  `json:"user_id,string"`
			Key    string `json:"idempotency_key"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return nil, err
	}
	now := time.Now()
	id := r.Header.Get(standardwebhooks.HeaderWebhookID) + now.Format(clock)
	var list []*arrival
	for _, m := range call.Messages {
		list = append(list, &arrival{channel: delivery.Webhook, user: m.UserID, key: m.Key, call: id,
			worker: strings.TrimPrefix(r.URL.Path, "/"), at: now, answer: unheard})
	}
	return list, nil
}

// broken reports whether a body ended early because its sender did.
func broken(err error) bool {
	_, isNet := err.(net.Error)
	return isNet || err == io.ErrUnexpectedEOF
}

// A letter is one mail on its way in.
type letter struct {
	sink     *sink
	conn     net.Conn
	from, to string
}

func (l *letter) Reset()        {}
func (l *letter) Logout() error { return nil }

func (l *letter) Mail(from string, _ *smtp.MailOptions) error {
	if l.sink.mails.down.Load() {
		l.sink.refused.Add(1)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "down"}
	}
	l.from = from
	return nil
}

func (l *letter) Rcpt(to string, _ *smtp.RcptOptions) error {
	l.to = to
	return nil
}

// Data takes one mail. Its arrival is the moment at which all of it is here.
func (l *letter) Data(r io.Reader) error {
	in := textproto.NewReader(bufio.NewReader(r))
	head, err := in.ReadMIMEHeader()
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in.R); err != nil {
		return err // cut off: not a mail
	}
	a, err := l.read(head)
	if err != nil {
		l.sink.t.Errorf("a mail cannot be read: %v", err)
		return err
	}
	card := l.sink.mails.deal()
	switch card {
	case refuse:
		l.sink.refused.Add(1)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "trouble"}
	case throttle:
		l.sink.refused.Add(1)
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "too many"}
	case hang:
		l.sink.refused.Add(1)
		wait(giveUp, l.sink.over)
		return l.conn.Close()
	case dropBefore:
		l.sink.refused.Add(1)
		return l.conn.Close()
	}
	l.sink.take(a)
	l.sink.pause(l.sink.mails, l.sink.perMail, l.sink.over)
	switch card {
	case dropAfter:
		l.sink.settle(concealed, a)
		return l.conn.Close()
	case late:
		l.sink.settle(concealed, a)
		wait(giveUp, l.sink.over)
		return nil
	}
	l.sink.settle(answered, a)
	return nil
}

// giveUp is longer than any sender waits for one mail.
const giveUp = 35 * time.Second

func (l *letter) read(head textproto.MIMEHeader) (*arrival, error) {
	id, _, _ := strings.Cut(strings.Trim(head.Get("Message-Id"), "<>"), "@")
	name, _, _ := strings.Cut(l.to, "@")
	user, err := strconv.ParseInt(strings.TrimPrefix(name, "u"), 10, 64)
	worker, _, _ := strings.Cut(l.from, "@")
	return &arrival{channel: delivery.Email, user: user, key: id, call: id, worker: worker, at: time.Now(), answer: unheard}, err
}
