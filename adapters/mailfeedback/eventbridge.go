package mailfeedback

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery/feedback"
)

// eventBridgeAge is the largest difference between the instant of a call and this machine's
// clock. EventBridge signs each attempt anew and asks receivers to refuse older attempts.
const eventBridgeAge = time.Minute

// eventBridgeSigned are the headers that EventBridge signs, in order. The owner of the rule
// chooses the token; its header is absent if the owner chose none.
var eventBridgeSigned = []string{"x-eventbridge-signature-timestamp", "x-eventbridge-hash-method", "x-eventbridge-signature-version",
	"x-eventbridge-signature-url", "x-eventbridge-signature-token"}

// eventBridgeHosts are the hosts of the certificates, in the regions in which Direct Mail
// publishes events. The hosts are buckets of Alibaba Cloud; a similar bucket name could belong
// to a stranger.
var eventBridgeHosts = map[string]bool{
	"cn-hangzhou-eventbridge.oss-accelerate.aliyuncs.com":    true,
	"ap-southeast-1-eventbridge.oss-accelerate.aliyuncs.com": true,
	"eu-central-1-eventbridge.oss-accelerate.aliyuncs.com":   true,
	"us-east-1-eventbridge.oss-accelerate.aliyuncs.com":      true,
}

var eventBridgeCertificate = regexp.MustCompile(`^/[0-9A-Za-z._-]+\.pem$`)

// An eventBridge checks calls of Alibaba Cloud EventBridge to HTTP targets, by its second
// signature algorithm (RSA over SHA-256), as published at
// help.aliyun.com/en/eventbridge/user-guide/signature-algorithm. The signature alone proves
// little, because every customer can have EventBridge call any address. The call's token, which
// the signature covers, must therefore equal the secret token of the rule.
type eventBridge struct {
	token string
	certs *certificates
	now   func() time.Time
}

// verify returns [feedback.ErrUnverified] for a call that EventBridge did not sign for this
// token and this address. Other errors mean that the signature could not be checked now.
func (b *eventBridge) verify(h http.Header, u *url.URL, body []byte) error {
	signature, err := base64.StdEncoding.DecodeString(h.Get("x-eventbridge-signature-v2"))
	if err != nil || !equal(h.Get("x-eventbridge-signature-token"), b.token) || !strings.EqualFold(h.Get("x-eventbridge-hash-method"), "SHA256") {
		return feedback.ErrUnverified
	}
	at, err := strconv.ParseInt(h.Get("x-eventbridge-signature-timestamp"), 10, 64)
	if age := b.now().Sub(time.UnixMilli(at)); err != nil || age > eventBridgeAge || age < -eventBridgeAge {
		return feedback.ErrUnverified
	}
	address := h.Get("x-eventbridge-signature-url")
	from, err := url.Parse(address)
	if err != nil || !eventBridgeHosts[from.Host] {
		return feedback.ErrUnverified
	}
	signer, err := b.certs.load(address, from.Host)
	if err != nil {
		return err
	}
	key, ok := signer.PublicKey.(*rsa.PublicKey)
	if !ok {
		return feedback.ErrUnverified
	}
	text := eventBridgeText(h, u, body)
	// The published format ends with the body; Alibaba's own library adds a line feed.
	for _, end := range []string{"", "\n"} {
		sum := sha256.Sum256([]byte(text + end))
		if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil {
			return nil
		}
	}
	return feedback.ErrUnverified
}

// eventBridgeText is the text that EventBridge signs: the address, the headers, the body.
func eventBridgeText(h http.Header, u *url.URL, body []byte) string {
	var b strings.Builder
	b.WriteString(u.String() + "\n")
	for _, name := range eventBridgeSigned {
		if v := h.Get(name); v != "" {
			b.WriteString(name + ": " + v + "\n")
		}
	}
	b.Write(body)
	return b.String()
}
