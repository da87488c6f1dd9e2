package smtp

import (
	"maps"
	"net/mail"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// references are the headers by which a provider learns what names a mail in its
// reports, by the provider's name. A reference consists of a-v and 0-9, so nothing
// is to be escaped. The providers keep these headers to themselves, but for
// X-Dropbell-Reference, which names no person.
var references = map[string]func(ref string) [][2]string{
	// The tag is for events of a configuration set, the other header for
	// notifications of an identity, which have no tags.
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

// directMail is Alibaba Cloud Direct Mail. Its reports of deliveries return the header,
// its complaints only the Message-ID.
const directMail = "directmail"

// Feedbacks are the providers that can be told what names a mail, in order.
func Feedbacks() []string { return slices.Sorted(maps.Keys(references)) }

// referenceHeader names a mail where its provider needs nothing else.
const referenceHeader = "X-Dropbell-Reference"

// addReference tells the provider what names the mail; an empty ref adds nothing.
// With a return path the mail server is told as well, by the sender of the envelope,
// and a header comes back with what a report returns.
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

// returnPath is the variant of the bounce address that names one mail: a variable
// envelope return path.
func returnPath(address, ref string) string {
	if ref == "" {
		return address
	}
	user, domain, _ := strings.Cut(address, "@")
	return user + "+" + ref + "@" + domain
}
