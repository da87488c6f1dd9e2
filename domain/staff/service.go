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
	// Member and MemberByEmail return [ErrNotFound] if there is none.
	Member(ctx context.Context, id int64) (Member, error)
	MemberByEmail(ctx context.Context, email string) (Member, error)
	Members(ctx context.Context) ([]Member, error)
	// InsertMember returns [ErrEmailTaken] if the address is in use.
	InsertMember(ctx context.Context, m Member, e Entry) (Member, error)
	// InsertFirstAdmin does nothing and returns false if there is an enabled
	// admin of all shops. An account with m's address becomes what m is. Of
	// several calls at once one creates the admin.
	InsertFirstAdmin(ctx context.Context, m Member, e Entry) (created bool, err error)
	// SaveMember returns [ErrLastAdmin] if no enabled admin of all shops would
	// remain. It
	// ends the member's sign-ins if revoke is set.
	SaveMember(ctx context.Context, m Member, revoke bool, e Entry) error
	SavePassword(ctx context.Context, id int64, hash string, e Entry) error
	// SavePreferences changes language and theme only.
	SavePreferences(ctx context.Context, id int64, locale, theme string) error

	InsertSignIn(ctx context.Context, in SignIn, e Entry) error
	// SignInAddresses returns from where the member with the e-mail address has
	// signed in since then, the latest first; of nobody's address nothing.
	SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error)
	Present(ctx context.Context, signInID string, now time.Time) (Presence, error)
	SignIns(ctx context.Context, staffID int64) ([]SignIn, error)
	RevokeSignIns(ctx context.Context, r Revocation) (ended int, err error)
	// Record stores an entry about something that changes nothing else.
	Record(ctx context.Context, e Entry) error

	Keys(ctx context.Context) ([]Key, error)
	// InsertKey returns [ErrKeyRepeated] if the actor of e has made a key with
	// this request key lately; empty = none.
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
	// FixedPolicy, if set, says whether second factors are demanded; else what
	// admins have chosen counts.
	FixedPolicy Policy
	Now         func() time.Time
}

// EnsureFirstAdmin creates an admin if there is none of all shops that can sign
// in, and reports whether it did. Somebody with the address becomes that admin.
// It may run in several processes at once.
func (s *Service) EnsureFirstAdmin(ctx context.Context, email, password string) (bool, error) {
	m := Member{Email: NormalEmail(email), Role: Admin}
	e := &fault.Fields{}
	checkEmail(e, m.Email)
	checkPassword(e, password, m.Email, "")
	if err := e.Err(); err != nil {
		return false, err
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err != nil {
		return false, err
	}
	m.PasswordHash = hash
	return s.Store.InsertFirstAdmin(ctx, m, Entry{Actor: System(), Action: "staff.create", ObjectKind: "staff",
		Reason: ReasonFirstAdmin, After: m.Shown()})
}

// Members lists everybody with access, by e-mail. Who is limited to shops gets
// [ErrEveryShop], here and wherever access is read or changed: whoever could
// give access, to themselves or by a key, would be limited no longer.
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

// A MemberInput is what an admin types about a member. An empty password
// keeps the one there is.
type MemberInput struct {
	Email    string
	Name     string
	Role     Role
	Shops    []int64
	Password string
	Disabled bool
}

// CreateMember gives somebody access. It returns a [fault.Fields] or
// [ErrEmailTaken].
func (s *Service) CreateMember(ctx context.Context, by Actor, in MemberInput) (Member, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return Member{}, err
	}
	if err := in.check(true); err != nil {
		return Member{}, err
	}
	m, err := s.apply(ctx, Member{}, in)
	if err != nil {
		return m, err
	}
	return s.Store.InsertMember(ctx, m, Entry{Actor: by, Action: "staff.create", ObjectKind: "staff", After: m.Shown()})
}

// ChangeMember changes role, shops, name, address, password or access. It
// returns a [fault.Fields], [ErrEmailTaken], or [ErrLastAdmin]. Whoever is
// disabled or gets a new password is signed out everywhere.
func (s *Service) ChangeMember(ctx context.Context, by Actor, id int64, in MemberInput) (Member, error) {
	old, err := s.Member(ctx, by, id)
	if err != nil {
		return old, err
	}
	if err := in.check(false); err != nil {
		return old, err
	}
	m, err := s.apply(ctx, old, in)
	if err != nil {
		return old, err
	}
	revoke := in.Password != "" || m.DisabledAt != nil
	return m, s.Store.SaveMember(ctx, m, revoke, Entry{Actor: by, Action: "staff.change", ObjectKind: "staff",
		ObjectID: itoa(id), Before: old.Shown(), After: shownWith(m, in.Password != "")})
}

func (s *Service) apply(ctx context.Context, m Member, in MemberInput) (Member, error) {
	m.Email, m.Name, m.Role, m.Shops = NormalEmail(in.Email), in.Name, in.Role, in.Shops
	switch {
	case !in.Disabled:
		m.DisabledAt = nil
	case m.DisabledAt == nil:
		now := s.Now()
		m.DisabledAt = &now
	}
	if in.Password == "" {
		return m, nil
	}
	hash, err := s.Passwords.Hash(ctx, in.Password)
	m.PasswordHash = hash
	return m, err
}

// ChangeOwnPassword returns a [fault.Fields] if the old password is wrong or
// the new one too weak. Other sign-ins of the member end.
func (s *Service) ChangeOwnPassword(ctx context.Context, m Member, old, next, inUse string) error {
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

// SetPreferences stores the member's language and theme; empty follows the
// browser.
func (s *Service) SetPreferences(ctx context.Context, m Member, locale, theme string) error {
	return s.Store.SavePreferences(ctx, m.ID, locale, theme)
}
