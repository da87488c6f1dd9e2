package smstest

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The account of the imitation of Twilio.
const (
	TwilioAccount = "AC0123456789abcdef0123456789abcdef"
	TwilioToken   = "12345-auth-token"
)

// Twilio imitates Twilio's resource Message.
type Twilio struct{ Provider }

// NewTwilio starts an imitation; close it with Close.
func NewTwilio() *Twilio {
	t := &Twilio{}
	t.start(t.message)
	return t
}

var e164 = regexp.MustCompile(`^\+[1-9]\d{4,14}$`)

func (t *Twilio) message(w http.ResponseWriter, r *http.Request) {
	account, token, _ := r.BasicAuth()
	form := r.PostFormValue
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/2010-04-01/Accounts/"+TwilioAccount+"/Messages.json":
		t.refuse(w, 404, 20404, "The requested resource was not found")
		return
	case account != TwilioAccount || token != TwilioToken:
		t.refuse(w, 401, 20003, "Authenticate")
		return
	case !e164.MatchString(form("To")):
		t.refuse(w, 400, 21211, "Invalid 'To' Phone Number: "+form("To"))
		return
	case form("Body") == "":
		t.refuse(w, 400, 21602, "Message body is required")
		return
	case utf8.RuneCountInString(form("Body")) > 1600:
		t.refuse(w, 400, 21617, "The concatenated message body exceeds the 1600 character limit")
		return
	case form("From") == "" && form("MessagingServiceSid") == "":
		t.refuse(w, 400, 21603, "A 'From' phone number is required")
		return
	}
	callback, _ := url.Parse(form("StatusCallback"))
	id, code := t.take(Sent{To: form("To"), Text: form("Body"), Callback: form("StatusCallback"), Reference: callback.Query().Get("ref")}, "SM")
	if code != "" {
		number, _ := strconv.Atoi(code)
		status := http.StatusBadRequest
		if number == 20429 || number == 14107 {
			status = http.StatusTooManyRequests
		}
		t.refuse(w, status, number, "refused: "+form("To"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"sid": id, "status": "queued", "to": form("To"), "body": form("Body"), "num_segments": "1", "price": nil})
}

func (t *Twilio) refuse(w http.ResponseWriter, status, code int, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "message": words, "status": status, "more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code)})
}

// Receipt returns the callback with which Twilio reports a message.
func (t *Twilio) Receipt(s Sent, status, errorCode string) *http.Request {
	form := url.Values{"MessageSid": {s.ID}, "SmsSid": {s.ID}, "MessageStatus": {status}, "SmsStatus": {status}, "AccountSid": {TwilioAccount}, "To": {s.To}, "From": {"+15005550006"}, "ApiVersion": {"2010-04-01"}}
	if errorCode != "" {
		form.Set("ErrorCode", errorCode)
	}
	return t.Signed(s.Callback, form)
}

// Inbound returns Twilio's callback for a message that a person sent.
func (t *Twilio) Inbound(address, from, text, id string) *http.Request {
	return t.Signed(address, url.Values{"MessageSid": {id}, "AccountSid": {TwilioAccount}, "From": {from}, "To": {"+15005550006"}, "Body": {text}, "NumMedia": {"0"}})
}

// Signed returns a form as Twilio posts it to the address. A fragment of the address is neither
// sent nor signed.
func (t *Twilio) Signed(address string, form url.Values) *http.Request {
	address, _, _ = strings.Cut(address, "#")
	keys := make([]string, 0, len(form))
	for k := range form {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	data := address
	for _, k := range keys {
		data += k + form.Get(k)
	}
	mac := hmac.New(sha1.New, []byte(TwilioToken))
	mac.Write([]byte(data))
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		panic(err) // of a test's own address
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return r
}
