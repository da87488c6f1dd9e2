package delivery

import (
	"context"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/mailcheck"
	"dropbell/views/ui"
)

// A MailCheck holds the DNS records of the domains that mails are sent from.
type MailCheck struct {
	// Senders are empty if no mail server is configured.
	Senders []MailSender
	// All is the number of senders; the page checks only the first senders.
	All int
	// Pace holds the limits of mails.
	Pace delivery.MailPace
}

// A MailSender is the origin that mails name, and the DNS records about it.
type MailSender struct {
	mailcheck.Sender
	Findings []mailcheck.Finding
}

// heading distinguishes the findings of several senders; "" = there is one sender.
func (p MailCheck) heading(s MailSender) string {
	switch {
	case len(p.Senders) < 2:
		return ""
	case s.ReturnPath != s.From:
		return s.From + " · " + s.ReturnPath + " · " + s.Server
	}
	return s.From + " · " + s.Server
}

func findingID(f mailcheck.Finding, sender int) string {
	return "finding-" + strconv.Itoa(sender) + "-" + f.Kind
}

func findingTone(s mailcheck.State) ui.Tone {
	switch s {
	case mailcheck.OK:
		return ui.Good
	case mailcheck.Missing, mailcheck.Wrong:
		return ui.Bad
	case mailcheck.Unknown:
		return ui.Warn
	}
	return ui.Neutral
}

func noteText(ctx context.Context, n mailcheck.Note) string {
	return ui.T(ctx, "mailcheck.note."+n.Key, n.Value)
}

// budgetText describes the spent part of the day's budget; the budget of mails is a warm-up plan.
func budgetText(ctx context.Context, s delivery.ChannelStatus) string {
	if s.Channel == delivery.Email {
		return ui.T(ctx, "mailpace.spent", s.Budget.Spent, s.Budget.PerDay)
	}
	var list []string
	if s.Budget.PerDay > 0 {
		list = append(list, ui.T(ctx, "channels.budget.spent", s.Budget.Spent, s.Budget.PerDay))
	}
	if b := s.Budget; b.MicrosPerDay > 0 {
		list = append(list, ui.T(ctx, "channels.budget.money", delivery.AmountOf(b.MicrosSpent, b.Currency).Decimal(b.Currency), delivery.AmountOf(b.MicrosPerDay, b.Currency).Decimal(b.Currency), b.Currency))
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

// budgetOver says what happens to further messages.
func budgetOver(ctx context.Context, s delivery.ChannelStatus) string {
	if s.Channel == delivery.Email {
		return ui.T(ctx, "mailpace.used_up")
	}
	return ui.T(ctx, "channels.budget.used_up")
}
