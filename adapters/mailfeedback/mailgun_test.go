package mailfeedback_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/mailfeedback"
	"dropbell/domain/delivery/feedback"
)

const mailgunKey = "a signing key of tests"

// mailgunSigned fills in the signature of an example.
func mailgunSigned(body, key, token string, at time.Time) string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(timestamp + token))
	return strings.NewReplacer("{timestamp}", timestamp, "{token}", token, "{signature}", hex.EncodeToString(h.Sum(nil))).Replace(body)
}

func TestMailgun(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	s := mailfeedback.NewMailgun(mailgunKey, refs, func() time.Time { return now })
	failed := recorded(t, "mailgun_failed.json", refs.Text(mine))
	n := 0
	for change, want := range map[string]feedback.Status{
		"": feedback.Bounced, `"permanent"→"temporary"`: feedback.SoftBounced, `"failed"→"delivered"`: feedback.Delivered,
		`"suppress-bounce"→"old"`: feedback.SoftBounced, `"attempt-no"→"bounce-type": "soft", "attempt-no"`: feedback.SoftBounced,
		`"attempt-no"→"bounce-type": "hard", "attempt-no"`: feedback.Bounced,
		`"failed"→"complained"`:                            feedback.Complained, `"failed"→"opened"`: "",
	} {
		n++
		body := failed
		if before, after, ok := strings.Cut(change, "→"); ok {
			body = strings.Replace(body, before, after, 1)
		}
		body = mailgunSigned(body, mailgunKey, fmt.Sprint("token", n), now)
		call, err := s.Read(nil, nil, []byte(body))
		if want == "" {
			if err != nil || len(call.Reports) > 0 {
				t.Errorf("%+v %v", call, err)
			}
			continue
		}
		wants(t, call, err, feedback.Report{Ref: mine, Status: want, Provider: "mailgun", Address: "ada@shop.example"})
	}
	body := mailgunSigned(strings.Replace(failed, `{"dropbell": "`+refs.Text(mine)+`"}`, `{"dropbell": 5}`, 1), mailgunKey, "odd", now)
	if call, err := s.Read(nil, nil, []byte(body)); err != nil || call.Reports[0].Ref != (feedback.Ref{}) {
		t.Errorf("%+v %v", call, err)
	}
}

// TestMailgunRefuses: Mailgun signs only a time and a token. An old pair is refused, and so is a
// known pair with another body. Mailgun's own repetition of a call is accepted.
func TestMailgunRefuses(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	s := mailfeedback.NewMailgun(mailgunKey, refs, func() time.Time { return now })
	failed := recorded(t, "mailgun_failed.json", refs.Text(mine))
	refuses(t, "another key", s, nil, nil, mailgunSigned(failed, "another key", "a", now))
	refuses(t, "old", s, nil, nil, mailgunSigned(failed, mailgunKey, "b", now.Add(-13*time.Hour)))
	refuses(t, "in the future", s, nil, nil, mailgunSigned(failed, mailgunKey, "c", now.Add(time.Hour)))
	for _, odd := range []string{"", "{", "[]", "null", "{}", `{"signature":{"timestamp":7}}`, strings.Repeat("[", 1<<20)} {
		refuses(t, fmt.Sprintf("%.20q", odd), s, nil, nil, odd)
	}
	taken := mailgunSigned(failed, mailgunKey, "d", now)
	for range 2 {
		if call, err := s.Read(nil, nil, []byte(taken)); err != nil || len(call.Reports) != 1 {
			t.Errorf("%+v %v", call, err)
		}
	}
	refuses(t, "a token with another body", s, nil, nil, strings.Replace(taken, "ada@shop.example", "bob@shop.example", 1))
}
