package twilio

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" // Twilio signs with it; HMAC needs no collision resistance
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dropbell/adapters/sms"
	"dropbell/domain/feedback"
)

// A Source reads Twilio's status callbacks and the messages that people send to the
// shop's number.
type Source struct {
	// AuthToken signs callbacks.
	AuthToken string
	// Refs reads references.
	Refs feedback.Refs
}

// name is the provider's in reports and in the address of its callbacks.
const name = "twilio"

// Name returns "twilio".
func (s Source) Name() string { return name }

// Read checks the signature, which covers the address u as Twilio called it, and reads
// one callback.
func (s Source) Read(header http.Header, u *url.URL, body []byte) (feedback.Call, error) {
	form, err := url.ParseQuery(string(body))
	given := header.Get("X-Twilio-Signature")
	if s.AuthToken == "" || given == "" || err == nil && !s.signed(given, u, form) {
		return feedback.Call{}, feedback.ErrUnverified
	}
	if err != nil {
		return feedback.Call{}, feedback.ErrUnreadable
	}
	if form.Get("MessageStatus") != "" {
		return s.receipt(u.Query().Get("ref"), form)
	}
	return reply(form)
}

// repeats asks Twilio to repeat a call up to five times after any failure; without it
// Twilio repeats one to which there was no connection, once. As a fragment of the
// address it is not sent.
const repeats = "#rc=5&rp=all"

// signed reports whether the signature is that of the address, with or without the
// fragment [repeats], since Twilio does not say whether that is signed, and with or
// without the port; Twilio's RequestValidator accepts both.
func (s Source) signed(given string, u *url.URL, form url.Values) bool {
	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	for _, host := range hosts(u) {
		plain.Host = host
		for _, address := range []string{plain.String(), plain.String() + repeats} {
			if hmac.Equal([]byte(given), []byte(Signature(s.AuthToken, address, form))) {
				return true
			}
		}
	}
	return false
}

// hosts are the address's host with its port, which is the usual one of the scheme if it
// names none, and without.
func hosts(u *url.URL) []string {
	if port := u.Port(); port != "" {
		return []string{u.Host, strings.TrimSuffix(u.Host, ":"+port)}
	}
	usual := map[string]string{"https": ":443", "http": ":80"}
	return []string{u.Host, u.Host + usual[u.Scheme]}
}

// Signature is what Twilio sends as X-Twilio-Signature with a form to the address: the
// address and the sorted parameters, their names and values without separators.
func Signature(authToken, address string, form url.Values) string {
	var b strings.Builder
	b.WriteString(address)
	for _, key := range slices.Sorted(maps.Keys(form)) {
		// Of a parameter with several values each counts once, in order.
		for _, v := range slices.Compact(slices.Sorted(slices.Values(form[key]))) {
			b.WriteString(key)
			b.WriteString(v)
		}
	}
	mac := hmac.New(sha1.New, []byte(authToken))
	mac.Write([]byte(b.String()))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// receipt reads a status callback. Steps on the way, such as queued and sent, are
// reports of nothing.
func (s Source) receipt(reference string, form url.Values) (c feedback.Call, err error) {
	var delivered bool
	switch form.Get("MessageStatus") {
	case "delivered", "read":
		delivered = true
	case "undelivered", "failed":
	default:
		return c, nil
	}
	code := form.Get("ErrorCode")
	r := sms.Receipt(name, delivered, transient(code), strings.TrimSpace(code+" "+form.Get("ErrorMessage")))
	r.Address = sms.NumberOf(form.Get("To"))
	r.Ref, _ = s.Refs.Parse(reference) // the zero Ref: a message of another program
	c.Reports = append(c.Reports, r)
	return c, nil
}

// transient reports whether a message that was not delivered for this reason may be
// the next time: the phone was off, the network was busy, the queue was full.
func transient(code string) bool {
	return slices.Contains([]string{"30001", "30003", "30008", "30017", "30022"}, code)
}

// reply reads a message that a person sent. With Twilio's Advanced Opt-Out the account
// chooses the words, in any language, and OptOutType says what Twilio took the message
// for: STOP, START or HELP.
func reply(form url.Values) (c feedback.Call, err error) {
	from := sms.NumberOf(form.Get("From"))
	id := form.Get("MessageSid")
	if id == "" {
		return c, feedback.ErrUnreadable
	}
	if from == "" { // a short code or a name is the number of no user
		return c, nil
	}
	text := form.Get("Body")
	if understood := form.Get("OptOutType"); feedback.WordOf(understood) != "" {
		text = understood
	}
	c.Replies = append(c.Replies, feedback.Reply{Provider: name, From: from, Text: text, ID: id})
	return c, nil
}

// Answer returns TwiML that sends the texts to the senders of the replies.
func (s Source) Answer(answers []string) (contentType string, body []byte) {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<Response>")
	for _, a := range answers {
		if a == "" {
			continue
		}
		b.WriteString("<Message>")
		_ = xml.EscapeText(&b, []byte(a)) // into memory
		b.WriteString("</Message>")
	}
	b.WriteString("</Response>")
	return "text/xml; charset=utf-8", b.Bytes()
}
