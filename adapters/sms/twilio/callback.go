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
	"dropbell/domain/delivery/feedback"
)

// A Source reads Twilio's status callbacks and its callbacks for messages that people send to
// the shop's number.
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

// Read checks the signature and reads one callback. The signature covers the address u as Twilio
// called it.
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

// repeats asks Twilio to repeat a call up to five times after any failure. By default Twilio
// repeats a call once, and only if the connection failed. The text is a fragment of the address,
// so it is not sent.
const repeats = "#rc=5&rp=all"

// signed reports whether given is the signature of the address. It accepts the address with and
// without the fragment [repeats], since Twilio does not say whether the fragment is signed. It
// accepts the address with and without the port, as Twilio's RequestValidator does.
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

// hosts returns the address's host with and without its port. If the address names no port, the
// port is the scheme's default.
func hosts(u *url.URL) []string {
	if port := u.Port(); port != "" {
		return []string{u.Host, strings.TrimSuffix(u.Host, ":"+port)}
	}
	usual := map[string]string{"https": ":443", "http": ":80"}
	return []string{u.Host, u.Host + usual[u.Scheme]}
}

// Signature returns the value of X-Twilio-Signature for a form that is posted to the address. It
// covers the address and the sorted names and values of the parameters, without separators.
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

// receipt reads a status callback. Intermediate states, such as queued and sent, give no report.
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

// transient reports whether a message that was not delivered for this reason may be delivered
// next time: the phone was off, the network was busy, or the queue was full.
func transient(code string) bool {
	return slices.Contains([]string{"30001", "30003", "30008", "30017", "30022"}, code)
}

// reply reads a message that a person sent. With Twilio's Advanced Opt-Out the account chooses
// the keywords, in any language, and OptOutType says how Twilio understood the message: STOP,
// START or HELP.
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
