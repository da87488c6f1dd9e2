package smtp

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/mail"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"dropbell/domain/delivery"
)

// maxSubject and maxDisplayName bound two header lines, in runes.
const (
	maxSubject     = 200
	maxDisplayName = 80
)

// compose builds the mail for m: plain text and HTML, to one recipient. complete is called after
// all of the mail except its end has been written; the server takes the mail with the end. An
// error of complete keeps the end from being written. With a DKIM key the mail is signed; an
// error means that signing failed.
func (s *Sender) compose(m delivery.Message, complete func() error) (*gomail.Msg, error) {
	mime := gomail.NewMsg(gomail.WithEncoding(encodingOf(m.Content)), gomail.WithNoDefaultUserAgent())
	from := s.cfg.From
	if name := headerText(m.Content.Sender, maxDisplayName); name != "" {
		from.Name = name
	}
	mime.FromMailAddress(&from)
	if reply, err := mail.ParseAddress(m.Content.ReplyTo); err == nil {
		mime.ReplyToMailAddress(&mail.Address{Address: reply.Address})
	}
	mime.ToMailAddress(&mail.Address{Name: headerText(m.To.Name, maxDisplayName), Address: m.To.Email})
	mime.Subject(headerText(m.Content.Title, maxSubject))
	mime.SetDate()
	mime.SetMessageIDWithValue(s.messageID(m))
	// RFC 3834: suppresses automatic replies
	mime.SetGenHeader("Auto-Submitted", "auto-generated")
	addUnsubscribe(mime, m)
	s.addReference(mime, m.Reference())
	signing := s.cfg.DKIM != nil
	text, html := delivery.OptOut(m)
	last := func(body string) func(io.Writer) (int64, error) {
		return func(w io.Writer) (int64, error) {
			n, err := io.WriteString(w, body)
			if err == nil && !signing {
				err = complete()
			}
			return int64(n), err
		}
	}
	if html == "" {
		mime.SetBodyWriter(gomail.TypeTextPlain, last(text))
	} else {
		mime.SetBodyString(gomail.TypeTextPlain, text)
		// An HTML page has so many equals signs that quoted-printable saves hardly a byte and
		// takes three times as long as base64.
		mime.AddAlternativeWriter(gomail.TypeTextHTML, last(html), gomail.WithPartEncoding(gomail.EncodingB64))
	}
	if !signing {
		return mime, nil
	}
	// The mail is written twice, and both writes must be equal. The library does not quote the
	// boundary, so the boundary has letters and digits only (RFC 2045, section 5.1).
	mime.SetBoundary(rand.Text())
	err := s.sign(mime)
	signing = false
	return mime, err
}

// messageID is the same for every attempt at one delivery, so that servers and
// mail programs can recognise a repetition.
func (s *Sender) messageID(m delivery.Message) string {
	sum := sha256.Sum256([]byte(m.IdempotencyKey()))
	return hex.EncodeToString(sum[:16]) + "@" + s.domain
}

// addUnsubscribe adds the headers for the unsubscribe button of mail programs (RFC 8058). The
// address must be https.
func addUnsubscribe(to *gomail.Msg, m delivery.Message) {
	u, err := url.Parse(m.OptOutURL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return
	}
	to.SetGenHeaderPreformatted("List-Unsubscribe", "<"+strings.NewReplacer("<", "%3C", ">", "%3E").Replace(u.String())+">")
	to.SetGenHeaderPreformatted("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
}

// headerText returns s as the text of one header line of at most n runes. It contains no control
// characters, so that no further header can be injected.
func headerText(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// encodingOf picks the encoding that is shorter for the text's script.
func encodingOf(c *delivery.Content) gomail.Encoding {
	foreign := 0
	for _, r := range c.Text {
		if r >= utf8.RuneSelf {
			foreign++
		}
	}
	if foreign > len(c.Text)/6 {
		return gomail.EncodingB64
	}
	return gomail.EncodingQP
}
