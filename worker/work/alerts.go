package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"dropbell/adapters/push/webpush"
	"dropbell/domain/delivery"
	"dropbell/domain/pause"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/user"
)

const (
	// alertsEvery is how often each worker checks for conditions that need attention. One of the
	// workers does the work.
	alertsEvery = 15 * time.Second
)

// sealAddresses encrypts the addresses of chat groups that are stored in plain text. It retries
// until the database allows it.
func (d Deps) sealAddresses(ctx context.Context) error {
	for {
		err := d.Seal(ctx)
		if err == nil {
			return nil
		}
		d.Log.Warn("addresses of chat groups cannot be sealed yet", "error", err)
		if !pause.For(ctx, 10*time.Second) {
			return nil
		}
	}
}

// alertCrashed logs a panic of a sender of notifications for staff.
func (d Deps) alertCrashed(what string, stack []byte) {
	d.Log.Error("a notification of staff was not sent: its sender panicked", "panic", what, "stack", string(stack))
}

// AlertSender sends alerts in the form of their destination.
type AlertSender struct {
	Groups alert.Sender
	Mail   delivery.Sender // nil without a mail server; see [delivery.RoutedSender]
}

// Send sends one alert; see [alert.Sender]. A mail has the first line of the text as its
// subject, and the number of the delivery in its Message-ID.
func (s AlertSender) Send(ctx context.Context, d alert.Delivery, text string) alert.Outcome {
	switch {
	case d.Destination.Form != alert.Email:
		return s.Groups.Send(ctx, d, text)
	case s.Mail == nil || !hasProvider(s.Mail):
		return alert.Outcome{State: alert.Failed, Detail: "no mail server is configured"}
	}
	title, _, _ := strings.Cut(text, "\n")
	r := s.Mail.Send(ctx, []delivery.Message{{Channel: delivery.Email, To: &user.User{Email: d.Destination.URL, Locale: d.Destination.Language},
		Subject: &delivery.Subject{Kind: delivery.KindTest, OwnerID: d.ID, DueAt: d.CreatedAt},
		Content: &delivery.Content{Title: "Dropbell: " + title, Text: text + "\n"}}})[0]
	return outcomeOf(r)
}

// SendPasswordMail sends the mail with which a member sets a new password; see
// [staff.PasswordMailer].
func (s AlertSender) SendPasswordMail(ctx context.Context, m staff.PasswordMail, title, text string) (retry bool, err error) {
	if s.Mail == nil || !hasProvider(s.Mail) {
		return false, errors.New("a mail for a new password was not sent: no mail server is configured")
	}
	r := s.Mail.Send(ctx, []delivery.Message{{Channel: delivery.Email, To: &user.User{Email: m.Member.Email, Locale: m.Member.Locale},
		Subject: &delivery.Subject{Kind: delivery.KindTest, OwnerID: m.Member.ID, DueAt: m.RequestedAt.Add(time.Duration(m.Attempts) * time.Second)},
		Content: &delivery.Content{Title: "Dropbell: " + title, Text: text}}})[0]
	if r.Status == delivery.Delivered {
		return false, nil
	}
	return r.Status != delivery.Permanent, errors.New("a mail for a new password was not sent: the mail server refused it or did not answer")
}

// hasProvider reports whether the sender has a provider for messages of no shop.
func hasProvider(s delivery.Sender) bool {
	routed, ok := s.(delivery.RoutedSender)
	return !ok || routed.Serves(0)
}

// AlertPusher pushes alerts to browsers of members.
type AlertPusher struct{ Browsers *webpush.Sender }

// Push sends one alert; see [alert.Pusher]. A repeated condition replaces its earlier
// notification.
func (s AlertPusher) Push(ctx context.Context, p alert.Push, text, path string) (alert.Outcome, bool) {
	r, gone := s.Browsers.Notify(ctx, p.Browser.Subscription, webpush.Notice{Title: "Dropbell", Text: text, Tag: p.Key, URL: path, WorthlessAfter: p.DeadlineAt})
	return outcomeOf(r), gone
}

// outcomeOf translates a sender's answer.
func outcomeOf(r delivery.Result) alert.Outcome {
	switch r.Status {
	case delivery.Delivered:
		return alert.Outcome{State: alert.Sent}
	case delivery.Permanent:
		return alert.Outcome{State: alert.Failed, Detail: r.Detail}
	}
	return alert.Outcome{State: alert.Waiting, Detail: r.Detail, After: r.After}
}
