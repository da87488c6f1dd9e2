package catcher

import (
	"io"
	"log"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
)

// maxLetter bounds one e-mail.
const maxLetter = 4 << 20

// newSMTP returns a server that takes every e-mail.
func newSMTP(s *store) *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{store: s}, nil
	}))
	server.Domain = "localhost"
	server.MaxMessageBytes = maxLetter
	server.ReadTimeout = 5 * time.Minute
	server.WriteTimeout = 30 * time.Second
	server.EnableSMTPUTF8 = true
	server.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up are of no interest here
	return server
}

// session collects one e-mail at a time, see RFC 5321 section 3.3.
type session struct {
	store *store
	to    []string
}

func (s *session) Reset() { s.to = nil }

func (s *session) Logout() error { return nil }

func (s *session) Mail(string, *smtp.MailOptions) error {
	s.to = nil
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	// The recipients are not part of the e-mail that the client sends. A line end in a recipient
	// would start another header field.
	to := strings.NewReplacer("\r", "", "\n", "").Replace(strings.Join(s.to, ", "))
	return s.store.add(Mail, append([]byte("X-Envelope-To: "+to+"\r\n"), raw...))
}
