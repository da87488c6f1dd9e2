package delivery

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/mailcheck"
	deliverypages "dropbell/views/pages/delivery"
)

// checkFor bounds all questions to DNS for one page.
const checkFor = 8 * time.Second

// A MailCheck is the sender of mails and what reads its records.
type MailCheck struct {
	// Sender is the zero value if no mail server is configured.
	Sender   mailcheck.Sender
	Resolver mailcheck.Resolver
	// Pace is what limits mails; nil = nothing does.
	Pace func(context.Context) (delivery.MailPace, error)
}

// checkMail shows the records as DNS has them now.
func (h *handlers) checkMail(w http.ResponseWriter, r *http.Request) error {
	p := deliverypages.MailCheck{Sender: h.Mail.Sender}
	if p.Sender.From != "" {
		ctx, cancel := context.WithTimeout(r.Context(), checkFor)
		defer cancel()
		p.Findings = mailcheck.Check(ctx, h.Mail.Resolver, p.Sender)
	}
	if h.Mail.Pace != nil {
		var err error
		if p.Pace, err = h.Mail.Pace(r.Context()); err != nil {
			return err
		}
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}
