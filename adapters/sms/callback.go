package sms

import (
	"crypto/subtle"
	"net/url"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// Readable returns c, which was read from a call with several entries. odd says that some
// entries are not in the provider's format. The valid entries still count, since one may be a
// STOP. A call with odd entries only is [feedback.ErrUnreadable].
func Readable(c feedback.Call, odd bool) (feedback.Call, error) {
	if odd && len(c.Reports)+len(c.Replies) == 0 {
		return feedback.Call{}, feedback.ErrUnreadable
	}
	return c, nil
}

// Keyed reports whether the parameter key of a callback's address is the secret. It is for
// providers that sign nothing. An empty secret matches no key.
func Keyed(u *url.URL, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(u.Query().Get("key")), []byte(secret)) == 1
}

// NumberOf returns a callback's phone number in E.164. It returns "" for a short code or a name,
// which is the number of no user.
func NumberOf(phone string) string {
	n, err := Number(phone)
	if err != nil {
		return ""
	}
	return n
}

// china is the zone of times in callbacks of providers in China.
var china = time.FixedZone("China", 8*60*60)

// InChina reads a date and time of China, such as 2026-11-26 20:00:00; zero if it is none.
func InChina(s string) time.Time {
	t, err := time.ParseInLocation(time.DateTime, s, china)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Receipt returns the report of a message. delivered says whether it arrived. passing says that
// the network's code means that the phone was off or the network busy. cause is the code with
// its text.
func Receipt(provider string, delivered, passing bool, cause string) feedback.Report {
	r := feedback.Report{Provider: provider, Status: feedback.Delivered}
	if delivered {
		return r
	}
	r.Cause = delivery.DetailOf(cause)
	if r.Status = feedback.Bounced; passing {
		r.Status = feedback.SoftBounced
	}
	return r
}
