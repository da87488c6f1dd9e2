package smtp

import (
	"net/mail"
	"strings"
	"testing"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// TestMailsNameThemselves: each provider behind the server gets the mail's reference in its own
// way. Without a provider or a reference nothing is added.
func TestMailsNameThemselves(t *testing.T) {
	ref := feedback.NewRefs("a secret").Text(feedback.Ref{Batch: 77, User: 99})
	for provider, want := range map[string][]string{
		"":           nil,
		"ses":        {"X-SES-MESSAGE-TAGS: dropbell=" + ref, "X-Dropbell-Reference: " + ref},
		"sendgrid":   {`X-SMTPAPI: {"unique_args":{"dropbell":"` + ref + `"}}`},
		"mailgun":    {`X-Mailgun-Variables: {"dropbell":"` + ref + `"}`},
		"postmark":   {"X-PM-Metadata-dropbell: " + ref},
		"directmail": {"X-Notify-Message-ID: " + ref, "Message-ID: <" + ref + "@shop.example>"},
	} {
		s, err := New(Config{Host: "mail.example", From: mail.Address{Address: "drops@shop.example"}, Feedback: provider})
		musttest.OK(t, err)
		for _, given := range []string{ref, ""} {
			subject := &delivery.Subject{Reference: func(user.ID) string { return given }}
			m := delivery.Message{To: &user.User{ID: 99, Email: "ada@shop.example"}, Channel: delivery.Email, Subject: subject, Content: &delivery.Content{Title: "t", Text: "x"}}
			var b strings.Builder
			mail, err := s.compose(m, func() error { return nil })
			musttest.OK(t, err)
			if _, err := mail.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(b.String(), "\r\n\r\n")
			found := strings.Count(head, ref)
			if given == "" {
				want = nil
			}
			if found != len(want) {
				t.Errorf("%q with %q: the reference stands %d times", provider, given, found)
			}
			for _, line := range want {
				if !strings.Contains(head+"\r\n", line+"\r\n") {
					t.Errorf("%q: %q is missing in\n%s", provider, line, head)
				}
			}
		}
	}
	if _, err := New(Config{Host: "mail.example", From: mail.Address{Address: "drops@shop.example"}, Feedback: "pigeon"}); err == nil {
		t.Error("an unknown provider was taken")
	}
}
