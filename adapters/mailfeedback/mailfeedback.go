// Package mailfeedback reads the reports of mail providers about mails: deliveries, bounces and
// complaints. Each source checks that its provider made the call. Package smtp decides how a
// mail carries its reference for the reports.
package mailfeedback

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// key is the name under which mails carry their reference.
const key = "dropbell"

// callAhead is how far a provider's clock may be ahead of this one.
const callAhead = 10 * time.Minute

// fresh reports whether a call that was signed at an instant may still be taken. A valid
// signature does not prove when a call arrives: a stranger who saw an old call could send it
// again.
func fresh(at, now time.Time, age time.Duration) bool {
	passed := now.Sub(at)
	return passed <= age && passed >= -callAhead
}

// decode reads JSON. It returns [feedback.ErrUnreadable] if body is not JSON that fits to.
func decode(body []byte, to any) error {
	if err := json.Unmarshal(body, to); err != nil {
		return feedback.ErrUnreadable
	}
	return nil
}

// refOf returns the message whose reference a provider returned; the zero Ref if the message is
// not from this installation.
func refOf(refs feedback.Refs, text string) feedback.Ref {
	ref, _ := refs.Parse(text)
	return ref
}

// one returns a call with one report. The provider's words are masked.
func one(r feedback.Report) feedback.Call {
	r.Cause = delivery.DetailOf(r.Cause)
	return feedback.Call{Reports: []feedback.Report{r}}
}

// equal compares secrets in a time that does not depend on where they differ.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// instant reads a time in ISO 8601; zero if it is none.
func instant(text string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t.UTC()
}

// seconds returns the instant n seconds after 1970, with fractions; zero if a database cannot
// store the instant.
func seconds(n float64) time.Time {
	if !(n > 0 && n < 1e11) {
		return time.Time{}
	}
	return time.UnixMilli(int64(n * 1000)).UTC()
}
