package smtp

import (
	"maps"
	"slices"

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
}

// Feedbacks are the providers that can be told what names a mail, in order.
func Feedbacks() []string { return slices.Sorted(maps.Keys(references)) }

// addReference tells the provider what names the mail; an empty ref adds nothing.
func (s *Sender) addReference(to *gomail.Msg, ref string) {
	headers := references[s.cfg.Feedback]
	if ref == "" || headers == nil {
		return
	}
	for _, h := range headers(ref) {
		to.SetGenHeaderPreformatted(gomail.Header(h[0]), h[1])
	}
}
