package smstest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// SNS imitates Amazon SNS's action Publish to a number.
type SNS struct{ Provider }

// NewSNS starts an imitation; close it with Close.
func NewSNS() *SNS {
	s := &SNS{}
	s.start(s.call)
	return s
}

var sigv4 = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$`)

// AmazonSigned reports whether the request is signed with the key, as the service checks it. The
// body can be read again afterwards.
func AmazonSigned(r *http.Request, keyID, secret string) bool {
	body := bodyOf(r)
	parts := sigv4.FindStringSubmatch(r.Header.Get("Authorization"))
	date := r.Header.Get("X-Amz-Date")
	if parts == nil || parts[1] != keyID || !strings.HasPrefix(date, parts[2]) {
		return false
	}
	request := canonical(r, parts[5], hexHash(string(body)), func(name, v string) string {
		if name == "content-length" {
			return fmt.Sprint(len(body))
		}
		return v
	})
	scope := parts[2] + "/" + parts[3] + "/" + parts[4] + "/aws4_request"
	return matches(parts[6], derived("AWS4"+secret, parts[2], parts[3], parts[4], "aws4_request"), "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hexHash(request))
}

func (s *SNS) call(w http.ResponseWriter, r *http.Request) {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	signed := AmazonSigned(r, KeyID, KeySecret)
	form := r.PostFormValue
	switch {
	case !signed:
		s.refuse(w, 403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
		return
	case err != nil || time.Since(at).Abs() > 5*time.Minute:
		s.refuse(w, 403, "RequestExpired", "Signature expired")
		return
	case form("Action") != "Publish" || form("Version") != "2010-03-31":
		s.refuse(w, 400, "InvalidAction", "The action is not valid")
		return
	case !e164.MatchString(form("PhoneNumber")):
		s.refuse(w, 400, "InvalidParameter", "Invalid parameter: PhoneNumber Reason: "+form("PhoneNumber")+" is not valid to publish to")
		return
	case form("Message") == "" || len(form("Message")) > 1600*4:
		s.refuse(w, 400, "InvalidParameter", "Invalid parameter: Message")
		return
	}
	attributes := map[string]string{}
	for i := 1; form(fmt.Sprintf("MessageAttributes.entry.%d.Name", i)) != ""; i++ {
		entry := fmt.Sprintf("MessageAttributes.entry.%d.", i)
		attributes[form(entry+"Name")] = form(entry + "Value.StringValue")
	}
	id, code := s.take(Sent{To: form("PhoneNumber"), Text: form("Message"), Params: attributes}, "94f20ce6-13c5-43a0-9a9e-")
	if code != "" {
		status := map[string]int{"InternalError": 500}[code]
		if status == 0 {
			status = 400
		}
		s.refuse(w, status, code, "refused "+form("PhoneNumber"))
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	_, _ = fmt.Fprintf(w, `<PublishResponse xmlns="https://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>%s</MessageId></PublishResult><ResponseMetadata><RequestId>f187a3c1</RequestId></ResponseMetadata></PublishResponse>`, id)
}

func (s *SNS) refuse(w http.ResponseWriter, status int, code, words string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(words)) // into memory
	_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>9dd01905</RequestId></ErrorResponse>`, code, escaped.String())
}
