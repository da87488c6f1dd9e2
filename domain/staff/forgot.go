package staff

import (
	"context"
	"errors"
	"strings"
	"time"

	"dropbell/domain/wording"
)

// Limits of mails that set a forgotten password.
const (
	// ForgottenLife is how long a link counts that was mailed to a member.
	ForgottenLife = time.Hour
	// ForgottenEvery is the time in which a member gets one such mail at most.
	ForgottenEvery = 2 * time.Minute
	// forgottenFor is how long a mail is tried.
	forgottenFor   = 15 * time.Minute
	forgottenLease = time.Minute
	forgottenBatch = 20
	forgottenWait  = 10 * time.Second
)

// A PasswordMail is a member's request for a mail with a password link.
type PasswordMail struct {
	Member      Member
	Locale      string // of the page where it was requested
	RequestedAt time.Time
	Attempts    int // before this one
	Lease       string
}

// PasswordMailStore keeps requests for mails with password links.
type PasswordMailStore interface {
	LinkStore
	// TakePasswordMails leases due requests.
	TakePasswordMails(ctx context.Context, limit int, lease time.Duration) ([]PasswordMail, error)
	// EndPasswordMail stores that the request needs no further attempt.
	EndPasswordMail(ctx context.Context, m PasswordMail) error
	// DelayPasswordMail stores that the request is tried again after wait.
	DelayPasswordMail(ctx context.Context, m PasswordMail, wait time.Duration) error
}

// ForgotPassword requests a mail with a link that sets the password of the member with this
// address. Whether there is such a member shows neither in the result nor in its time: the
// mail is made by a worker. A member without a password gets no mail. It returns
// [ErrPasswordsOff].
func (s *Service) ForgotPassword(ctx context.Context, email, locale string) error {
	if s.PasswordsOff {
		return ErrPasswordsOff
	}
	email = NormalEmail(email)
	if len(email) > MaxEmail || !wording.OneLine(email) {
		return nil // no member has it
	}
	return s.Store.RequestPasswordMail(context.WithoutCancel(ctx), email, locale, ForgottenEvery)
}

// A PasswordMailer sends the mails that members requested.
type PasswordMailer struct {
	Store PasswordMailStore
	// Send sends the mail; retry reports whether it can be tried again after an error.
	Send func(ctx context.Context, m PasswordMail, title, text string) (retry bool, err error)
	// PublicURL is the address at which browsers reach the console.
	PublicURL string
	Now       func() time.Time
	// Off says that members sign in with single sign-on only: no mail is sent.
	Off bool
}

// Deliver sends the due mails. Each attempt makes a new link, which replaces the link of an
// earlier attempt. A mail is sent twice only if a process dies between the server's answer
// and its record. The returned errors name no member.
func (p *PasswordMailer) Deliver(ctx context.Context) error {
	due, err := p.Store.TakePasswordMails(ctx, forgottenBatch, forgottenLease)
	errs := []error{err}
	for _, m := range due {
		errs = append(errs, p.deliver(ctx, m))
	}
	return errors.Join(errs...)
}

func (p *PasswordMailer) deliver(ctx context.Context, m PasswordMail) error {
	now := p.Now()
	if p.Off || now.Sub(m.RequestedAt) > forgottenFor {
		return p.Store.EndPasswordMail(ctx, m)
	}
	l, token := PasswordLink{StaffID: m.Member.ID, Purpose: PasswordReset, ExpiresAt: now.Add(ForgottenLife)}, newToken()
	e := m.Member.entry(System(), "staff.password_mail")
	e.After = map[string]any{"expires_at": l.ExpiresAt}
	err := p.Store.SavePasswordLink(ctx, l, HashSecret(token), e)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDisabled) {
		return p.Store.EndPasswordMail(ctx, m)
	}
	if err != nil {
		return err // the lease ends
	}
	title, text := forgottenText(m, PasswordLinkURL(p.PublicURL, token))
	retry, err := p.Send(ctx, m, title, text)
	if err != nil && retry {
		return errors.Join(err, p.Store.DelayPasswordMail(ctx, m, forgottenWait<<min(m.Attempts, 5)))
	}
	return errors.Join(err, p.Store.EndPasswordMail(context.WithoutCancel(ctx), m))
}

// forgottenText returns the mail in the member's language.
func forgottenText(m PasswordMail, link string) (title, text string) {
	locale := m.Member.Locale
	if locale == "" {
		locale = m.Locale
	}
	if strings.HasPrefix(locale, "zh") {
		return "设置新密码", "有人在登录页面请求为 " + m.Member.Email + " 设置新密码。\n\n请在一小时内打开以下链接设置新密码，链接只能使用一次：\n" + link +
			"\n\n设置后，其他所有登录都会结束。如果不是您本人请求，请忽略此邮件，密码不会改变。\n"
	}
	return "Set a new password", "Somebody asked on the sign-in page to set a new password for " + m.Member.Email +
		".\n\nOpen this link within an hour to set it. The link works once:\n" + link +
		"\n\nAll other sign-ins end then. If it was not you, ignore this mail: the password stays as it is.\n"
}
