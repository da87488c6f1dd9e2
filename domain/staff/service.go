package staff

import (
	"context"
	"time"

	"dropbell/domain/fault"
)

// Store keeps members, their sign-ins and service keys. Every method that
// takes an [Entry] records it in the transaction of the change.
type Store interface {
	FactorStore
	LinkStore
	// RequestPasswordMail stores that the member with this address wants a mail with a
	// password link, unless the member asked within every. It returns no error if there is no
	// such member, or the member has no password.
	RequestPasswordMail(ctx context.Context, email, locale string, every time.Duration) error
	// Member and MemberByEmail return [ErrNotFound] if there is none.
	Member(ctx context.Context, id int64) (Member, error)
	MemberByEmail(ctx context.Context, email string) (Member, error)
	Members(ctx context.Context) ([]Member, error)
	// InsertMember stores m and, if hash is not empty, an invitation with this
	// hash for m. It returns [ErrEmailTaken] if the address is in use.
	InsertMember(ctx context.Context, m Member, l PasswordLink, hash []byte, e Entry) (Member, error)
	// InsertFirstAdmin does nothing and returns false if there is an enabled admin
	// of all shops. An account with m's address gets m's role and data. Of several
	// concurrent calls one creates the admin.
	InsertFirstAdmin(ctx context.Context, m Member, e Entry) (created bool, err error)
	// SaveMember returns [ErrLastAdmin] if no enabled admin of all shops would
	// remain. It ends the member's sign-ins if revoke is set, and removes a
	// password link that went to another address or to a member now disabled.
	SaveMember(ctx context.Context, m Member, revoke bool, e Entry) error
	SavePassword(ctx context.Context, id int64, hash string, e Entry) error
	// SavePreferences changes language and theme only.
	SavePreferences(ctx context.Context, id int64, locale, theme string) error

	InsertSignIn(ctx context.Context, in SignIn, e Entry) error
	// MemberByIdentity returns the member that is linked to the person at the identity
	// provider, or [ErrNotFound].
	MemberByIdentity(ctx context.Context, issuer, subject string) (Member, error)
	// LinkIdentity links the member to the person and stores the sign-in. It returns
	// [ErrSingleSignOn] if the member is linked to another person of the same provider.
	LinkIdentity(ctx context.Context, in SignIn, who Identity, e Entry) error
	// SignInAddresses returns the network addresses from which the member with this
	// e-mail address has signed in since then, the latest first; none if there is
	// no such member.
	SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error)
	Present(ctx context.Context, signInID string, now time.Time) (Presence, error)
	SignIns(ctx context.Context, staffID int64) ([]SignIn, error)
	RevokeSignIns(ctx context.Context, r Revocation) (ended int, err error)
	// Record stores an entry about an action that makes no other change.
	Record(ctx context.Context, e Entry) error

	Keys(ctx context.Context) ([]Key, error)
	// InsertKey returns [ErrKeyRepeated] if the actor of e has made a key with this
	// request key recently. An empty request key is never a repetition.
	InsertKey(ctx context.Context, k Key, hash []byte, requestKey string, e Entry) (Key, error)
	// EnsureKey does nothing and returns false if a key with this hash exists.
	EnsureKey(ctx context.Context, k Key, hash []byte, e Entry) (created bool, err error)
	// RevokeKey returns [ErrKeyNotFound]; revoking twice keeps the first instant.
	RevokeKey(ctx context.Context, id int64, at time.Time, e Entry) error
}

// Service holds the use cases around the people and services that operate
// Dropbell.
type Service struct {
	Store     Store
	Passwords Passwords
	// Codes and Passkeys make and check second factors.
	Codes    OneTimeCodes
	Passkeys Passkeys
	// FixedPolicy, if set, says whether second factors are demanded; otherwise the
	// choice of the admins is valid.
	FixedPolicy Policy
	// PasswordsOff says that members sign in with single sign-on only.
	PasswordsOff bool
	Now          func() time.Time
}

// EnsureFirstAdmin creates an admin if no admin of all shops can sign in, and
// reports whether it did. A member with this address becomes the admin. While
// passwords are switched off, password is ignored and may be empty. Several
// processes may call it at once.
func (s *Service) EnsureFirstAdmin(ctx context.Context, email, password string) (bool, error) {
	m := Member{Email: NormalEmail(email), Role: Admin}
	e := &fault.Fields{}
	checkEmail(e, m.Email)
	if !s.PasswordsOff {
		checkPassword(e, password, m.Email, "")
	}
	if err := e.Err(); err != nil {
		return false, err
	}
	if !s.PasswordsOff {
		hash, err := s.Passwords.Hash(ctx, password)
		if err != nil {
			return false, err
		}
		m.PasswordHash = hash
	}
	return s.Store.InsertFirstAdmin(ctx, m, Entry{Actor: System(), Action: "staff.create", ObjectKind: "staff",
		Reason: ReasonFirstAdmin, After: m.Shown()})
}

// Members lists the members by e-mail. Staff who are limited to shops get
// [ErrEveryShop], here and wherever access is read or changed: a limited admin
// could otherwise create an account or a key without the limit.
func (s *Service) Members(ctx context.Context, by Actor) ([]Member, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return nil, err
	}
	return s.Store.Members(ctx)
}

// Member returns one of them, or [ErrNotFound].
func (s *Service) Member(ctx context.Context, by Actor, id int64) (Member, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return Member{}, err
	}
	return s.Store.Member(ctx, id)
}

// A MemberInput is an admin's input for a member.
type MemberInput struct {
	Email    string
	Name     string
	Role     Role
	Shops    []int64
	Disabled bool
}

// CreateMember creates a member. It returns the token of an invitation with which
// the new member sets a password. The token cannot be read again; it is empty while
// passwords are switched off. It returns a [fault.Fields] or [ErrEmailTaken].
func (s *Service) CreateMember(ctx context.Context, by Actor, in MemberInput) (Member, string, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return Member{}, "", err
	}
	if err := in.check(); err != nil {
		return Member{}, "", err
	}
	m := s.apply(Member{}, in)
	var l PasswordLink
	var token string
	var hash []byte
	if !s.PasswordsOff && m.DisabledAt == nil {
		l, token = s.newLink(m)
		hash = HashSecret(token)
	}
	m, err := s.Store.InsertMember(ctx, m, l, hash, Entry{Actor: by, Action: "staff.create", ObjectKind: "staff", After: m.Shown()})
	return m, token, err
}

// ChangeMember changes role, shops, name, address or access. Disabling a member
// signs the member out everywhere. It returns a [fault.Fields], [ErrEmailTaken], or
// [ErrLastAdmin].
func (s *Service) ChangeMember(ctx context.Context, by Actor, id int64, in MemberInput) (Member, error) {
	old, err := s.Member(ctx, by, id)
	if err != nil {
		return old, err
	}
	if err := in.check(); err != nil {
		return old, err
	}
	m := s.apply(old, in)
	return m, s.Store.SaveMember(ctx, m, m.DisabledAt != nil, Entry{Actor: by, Action: "staff.change", ObjectKind: "staff",
		ObjectID: itoa(id), Before: old.Shown(), After: m.Shown()})
}

func (s *Service) apply(m Member, in MemberInput) Member {
	m.Email, m.Name, m.Role, m.Shops = NormalEmail(in.Email), in.Name, in.Role, in.Shops
	switch {
	case !in.Disabled:
		m.DisabledAt = nil
	case m.DisabledAt == nil:
		now := s.Now()
		m.DisabledAt = &now
	}
	return m
}

// ChangeOwnPassword changes m's password and ends m's other sign-ins. It returns a
// [fault.Fields] if the old password is wrong or the new password too weak, or
// [ErrPasswordsOff].
func (s *Service) ChangeOwnPassword(ctx context.Context, m Member, old, next, inUse string) error {
	if s.PasswordsOff {
		return ErrPasswordsOff
	}
	m, err := s.Store.Member(ctx, m.ID)
	if err != nil {
		return err
	}
	ok, err := s.Passwords.Matches(ctx, old, m.PasswordHash)
	if err != nil {
		return err
	}
	e := &fault.Fields{}
	if !ok {
		e.Add("old_password", "rule.old_password", "is not your current password")
	}
	checkPassword(e, next, m.Email, m.Name)
	if err := e.Err(); err != nil {
		return err
	}
	hash, err := s.Passwords.Hash(ctx, next)
	if err != nil {
		return err
	}
	entry := Entry{Actor: m.Actor(), Action: "staff.password", ObjectKind: "staff", ObjectID: itoa(m.ID)}
	if err := s.Store.SavePassword(ctx, m.ID, hash, entry); err != nil {
		return err
	}
	_, err = s.Store.RevokeSignIns(ctx, Revocation{StaffID: m.ID, Except: inUse, At: s.Now()})
	return err
}

// SetPreferences stores the member's language and theme. An empty value means the
// browser's.
func (s *Service) SetPreferences(ctx context.Context, m Member, locale, theme string) error {
	return s.Store.SavePreferences(ctx, m.ID, locale, theme)
}
