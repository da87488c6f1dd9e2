package delivery

import (
	"context"
	"net/http"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/mailcheck"
	"dropbell/domain/staff"
	deliverypages "dropbell/views/pages/delivery"
	"dropbell/web/console/shell"
)

// checkFor bounds the time of all DNS queries for one page.
const checkFor = 8 * time.Second

// mostChecked is how many senders one page checks.
const mostChecked = 10

// A MailCheck has the senders of mails, and the resolver that reads their DNS records.
type MailCheck struct {
	// Senders returns the senders that a member may see; none = no mail server is configured.
	Senders  func(ctx context.Context, by staff.Actor) ([]mailcheck.Sender, error)
	Resolver mailcheck.Resolver
	// Pace returns the limits of mails; nil = no limits.
	Pace func(context.Context) (delivery.MailPace, error)
}

// checkMail shows the present DNS records.
func (h *handlers) checkMail(w http.ResponseWriter, r *http.Request) error {
	p := deliverypages.MailCheck{}
	if h.Mail.Senders != nil {
		senders, err := h.Mail.Senders(r.Context(), shell.Actor(r))
		if err != nil {
			return err
		}
		p.All, p.Senders = len(senders), h.checkSenders(r.Context(), senders[:min(len(senders), mostChecked)])
	}
	if h.Mail.Pace != nil {
		var err error
		if p.Pace, err = h.Mail.Pace(r.Context()); err != nil {
			return err
		}
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// checkSenders queries DNS for all senders at the same time.
func (h *handlers) checkSenders(ctx context.Context, senders []mailcheck.Sender) []deliverypages.MailSender {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	checked := make([]deliverypages.MailSender, len(senders))
	var all sync.WaitGroup
	for i, s := range senders {
		all.Go(func() {
			checked[i] = deliverypages.MailSender{Sender: s, Findings: mailcheck.Check(ctx, h.Mail.Resolver, s)}
		})
	}
	all.Wait()
	return checked
}
