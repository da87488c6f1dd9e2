package smtp

import (
	"maps"
	"net/mail"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// references maps a provider's name to the headers that give the provider the mail's reference
// for its reports. A reference consists of a-v and 0-9, so nothing needs escaping.
// Providers do not pass these headers on, except X-Dropbell-Reference, which names no person.
var references = map[string]func(ref string) [][2]string{
	// The tag is for events of a configuration set. The other header is for notifications of an
	// identity, which have no tags.
	"ses": func(ref string) [][2]string {
		return [][2]string{{"X-SES-MESSAGE-TAGS", "dropbell=" + ref}, {"X-Dropbell-Reference", ref}}
	},
	"sendgrid": func(ref string) [][2]string {
		return [][2]string{{"X-SMTPAPI", `{"unique_args":{"dropbell":"` + ref + `"}}`}}
	},
	"mailgun": func(ref string) [][2]string {
		return [][2]string{{"X-Mailgun-Variables", `{"dropbell":"` + ref + `"}`}}
	},
	"postmark": func(ref string) [][2]string { return [][2]string{{"X-PM-Metadata-dropbell", ref}} },
	directMail: func(ref string) [][2]string { return [][2]string{{"X-Notify-Message-ID", ref}} },
}

// directMail is Alibaba Cloud Direct Mail. Its reports of deliveries return the header; its
// complaints return only the Message-ID.
const directMail = "directmail"

// Feedbacks returns the sorted names of the providers that take the reference of a mail.
func Feedbacks() []string { return slices.Sorted(maps.Keys(references)) }

// referenceHeader carries the mail's reference for providers that need no header of their own.
const referenceHeader = "X-Dropbell-Reference"

// addReference gives the provider the mail's reference; an empty ref adds nothing. With a return
// path, the envelope's sender also contains the reference for the mail server, and a header
// carries it in messages that a report returns.
func (s *Sender) addReference(to *gomail.Msg, ref string) {
	if s.cfg.ReturnPath != "" {
		to.EnvelopeFromMailAddress(&mail.Address{Address: returnPath(s.cfg.ReturnPath, ref)})
	}
	if ref == "" {
		return
	}
	if s.cfg.Feedback == directMail {
		to.SetMessageIDWithValue(ref + "@" + s.domain)
	}
	if headers := references[s.cfg.Feedback]; headers != nil {
		for _, h := range headers(ref) {
			to.SetGenHeaderPreformatted(gomail.Header(h[0]), h[1])
		}
	}
	if s.cfg.ReturnPath != "" {
		to.SetGenHeaderPreformatted(referenceHeader, ref)
	}
}

// returnPath is the bounce address with the mail's reference (variable envelope return path).
func returnPath(address, ref string) string {
	if ref == "" {
		return address
	}
	user, domain, _ := strings.Cut(address, "@")
	return user + "+" + ref + "@" + domain
}
