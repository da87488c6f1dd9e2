package mailfeedback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/delivery/feedback"
)

const (
	// mailgunAge is the largest age of a call. Mailgun repeats a call that was not taken for
	// eight hours.
	mailgunAge = 12 * time.Hour
	// mailgunTokens is how many tokens are remembered.
	mailgunTokens = 100_000
)

// Mailgun reads the calls of Mailgun's webhooks. The signature covers only a timestamp and a
// token, not the body. A token is therefore accepted for one body only, as long as this process
// remembers the token.
type Mailgun struct {
	key  []byte
	refs feedback.Refs
	now  func() time.Time

	mu sync.Mutex
	// seen and before are the digests of bodies by token; before is the older half.
	seen, before map[string][sha256.Size]byte
}

// NewMailgun returns the source of the account whose webhook signing key this is.
func NewMailgun(signingKey string, refs feedback.Refs, now func() time.Time) *Mailgun {
	return &Mailgun{key: []byte(signingKey), refs: refs, now: now, seen: map[string][sha256.Size]byte{}}
}

// Name is the last part of the source's address.
func (*Mailgun) Name() string { return "mailgun" }

type mailgunCall struct {
	Signature struct {
		Timestamp string `json:"timestamp"`
		Token     string `json:"token"`
		Signature string `json:"signature"`
	} `json:"signature"`
	Event struct {
		Event     string         `json:"event"`
		Severity  string         `json:"severity"`
		Reason    string         `json:"reason"`
		Recipient string         `json:"recipient"`
		Timestamp float64        `json:"timestamp"`
		Variables map[string]any `json:"user-variables"`
		Status    struct {
			Code        any    `json:"code"`
			Message     string `json:"message"`
			Description string `json:"description"`
			Bounce      string `json:"bounce-type"` // soft or hard; absent in older calls
		} `json:"delivery-status"`
	} `json:"event-data"`
}

// Read checks the signature and returns the report.
func (s *Mailgun) Read(_ http.Header, _ *url.URL, body []byte) (call feedback.Call, err error) {
	var c mailgunCall
	// Without the body there is no signature.
	if decode(body, &c) != nil || !s.verified(c, body) {
		return call, feedback.ErrUnverified
	}
	var status feedback.Status
	switch c.Event.Event {
	case "delivered":
		status = feedback.Delivered
	case "complained":
		status = feedback.Complained
	case "failed":
		if status = feedback.Bounced; c.passes() {
			status = feedback.SoftBounced
		}
	default:
		return call, nil
	}
	ref, _ := c.Event.Variables[key].(string)
	cause := c.Event.Status.Message
	if cause == "" {
		cause = c.Event.Status.Description
	}
	if cause == "" {
		cause = c.Event.Reason
	}
	return one(feedback.Report{Ref: refOf(s.refs, ref), Status: status, Provider: s.Name(), Address: c.Event.Recipient, Cause: cause, At: seconds(c.Event.Timestamp)}), nil
}

// passes reports whether the failure may pass, so that the address may be good: Mailgun calls the
// failure temporary or a soft bounce, or gives the reason "old". "old" means that servers deferred
// the mail for too long and Mailgun gave up.
func (c mailgunCall) passes() bool {
	return c.Event.Severity == "temporary" || c.Event.Reason == "old" || c.Event.Status.Bounce == "soft"
}

func (s *Mailgun) verified(c mailgunCall, body []byte) bool {
	given, err := hex.DecodeString(c.Signature.Signature)
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(c.Signature.Timestamp + c.Signature.Token))
	if err != nil || !hmac.Equal(given, h.Sum(nil)) {
		return false
	}
	at, err := strconv.ParseInt(c.Signature.Timestamp, 10, 64)
	if err != nil {
		return false
	}
	return fresh(time.Unix(at, 0), s.now(), mailgunAge) && s.first(c.Signature.Token, sha256.Sum256(body))
}

// first reports whether the token was not used for another body.
func (s *Mailgun) first(token string, digest [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.seen[token]
	if !ok {
		known, ok = s.before[token]
	}
	if ok {
		return known == digest
	}
	if len(s.seen) >= mailgunTokens/2 {
		s.before, s.seen = s.seen, map[string][sha256.Size]byte{}
	}
	s.seen[token] = digest
	return true
}
