package staff

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/fault"
)

var (
	// ErrPasswordLink is the refusal of a link that sets a password. It says
	// neither the reason nor whose link it was.
	ErrPasswordLink = fault.New(fault.NotFound, "password_link_invalid",
		"this link was used, has expired, or was replaced by a newer one; ask an admin for a new link")
	// ErrPasswordsOff is the refusal of everything around passwords while the
	// console is for single sign-on only.
	ErrPasswordsOff = fault.New(fault.Denied, "passwords_off", "passwords are switched off in this installation; use single sign-on")
	// ErrDisabled is the refusal to give a link to a disabled member.
	ErrDisabled = fault.New(fault.Conflict, "staff_disabled", "this member is disabled; enable the account first")
)

// How long a link counts after it was made.
const (
	InvitationLife    = 7 * 24 * time.Hour
	PasswordResetLife = 24 * time.Hour
)

// A LinkPurpose says why a password link was made.
type LinkPurpose string

// The purposes.
const (
	Invitation    LinkPurpose = "invitation"
	PasswordReset LinkPurpose = "password_reset"
)

// A PasswordLink lets the holder of its token set the password of one member,
// once. The token has 160 random bits and only its hash is stored. A member has
// at most one link: a new one replaces it.
type PasswordLink struct {
	StaffID   int64
	Purpose   LinkPurpose
	ExpiresAt time.Time
}

// LinkStore keeps password links.
type LinkStore interface {
	// SavePasswordLink replaces the member's link. It returns [ErrNotFound] or
	// [ErrDisabled].
	SavePasswordLink(ctx context.Context, l PasswordLink, hash []byte, e Entry) error
	// PasswordLink returns the link with this hash and its member. It returns
	// [ErrPasswordLink] if there is no link that is valid at now.
	PasswordLink(ctx context.Context, hash []byte, now time.Time) (PasswordLink, Member, error)
	// UsePasswordLink sets the password, ends every sign-in of the member and
	// removes the link. Of several concurrent calls one succeeds; all other calls
	// return [ErrPasswordLink]. The audit entry is about the link's member.
	UsePasswordLink(ctx context.Context, hash []byte, now time.Time, passwordHash string, e func(PasswordLink, Member) Entry) (Member, error)
}

// newLink returns a link for the member and its token.
func (s *Service) newLink(m Member) (PasswordLink, string) {
	l := PasswordLink{StaffID: m.ID, Purpose: PasswordReset, ExpiresAt: s.Now().Add(PasswordResetLife)}
	if m.PasswordHash == "" {
		l.Purpose, l.ExpiresAt = Invitation, s.Now().Add(InvitationLife)
	}
	return l, newToken()
}

// NewPasswordLink makes a link with which the member sets a password, and returns
// its token, which cannot be read again. Only admins may call it. The present
// password and the sign-ins stay until the link is used. It returns
// [ErrPasswordsOff], [ErrNotFound] or [ErrDisabled].
func (s *Service) NewPasswordLink(ctx context.Context, by Actor, id int64) (Member, string, error) {
	m, err := s.Member(ctx, by, id)
	if err != nil {
		return m, "", err
	}
	return s.linkFor(ctx, by, m)
}

// NewPasswordLinkOf is [Service.NewPasswordLink] for the operator at the
// command line, by e-mail address.
func (s *Service) NewPasswordLinkOf(ctx context.Context, email string) (Member, string, error) {
	m, err := s.Store.MemberByEmail(ctx, NormalEmail(email))
	if err != nil {
		return m, "", err
	}
	return s.linkFor(ctx, System(), m)
}

func (s *Service) linkFor(ctx context.Context, by Actor, m Member) (Member, string, error) {
	if s.PasswordsOff {
		return m, "", ErrPasswordsOff
	}
	l, token := s.newLink(m)
	e := m.entry(by, "staff.password_link")
	e.After = map[string]any{"purpose": l.Purpose, "expires_at": l.ExpiresAt}
	return m, token, s.Store.SavePasswordLink(ctx, l, HashSecret(token), e)
}

// PasswordLink returns the link with this token and its member, or
// [ErrPasswordLink].
func (s *Service) PasswordLink(ctx context.Context, token string) (PasswordLink, Member, error) {
	if s.PasswordsOff {
		return PasswordLink{}, Member{}, ErrPasswordsOff
	}
	return s.Store.PasswordLink(ctx, HashSecret(token), s.Now())
}

// SetPasswordByLink sets the password of the link's member, ends the member's
// sign-ins and opens a new sign-in. It returns a [fault.Fields] about the field
// "password", or [ErrPasswordLink]. It returns the member with
// [ErrSecondFactorNeeded] if a second factor is needed: the password is set then,
// and [Service.SecondStep] opens the sign-in.
func (s *Service) SetPasswordByLink(ctx context.Context, token, password string, from Client) (Member, SignIn, error) {
	_, m, err := s.PasswordLink(ctx, token)
	if err != nil {
		return Member{}, SignIn{}, err
	}
	if err := CheckPassword(password, m.Email, m.Name); err != nil {
		return m, SignIn{}, err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return m, SignIn{}, err
	}
	m, err = s.Store.UsePasswordLink(ctx, HashSecret(token), s.Now(), hash, func(l PasswordLink, m Member) Entry {
		e := m.entry(m.Actor(), "staff.password_set")
		e.After = map[string]any{"purpose": l.Purpose}
		return e
	})
	if err != nil {
		return Member{}, SignIn{}, err
	}
	if m.SecondFactors > 0 {
		return m, SignIn{}, ErrSecondFactorNeeded
	}
	in := s.newSignIn(m, from)
	return m, in, s.Store.InsertSignIn(ctx, in, m.entry(m.Actor(), "staff.sign_in"))
}

// PasswordLinkURL returns the address at which the token's holder sets the
// password. publicURL is the address at which browsers reach the console.
func PasswordLinkURL(publicURL, token string) string {
	return strings.TrimSuffix(publicURL, "/") + "/password?token=" + token
}
