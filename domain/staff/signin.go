package staff

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"dropbell/domain/fault"
)

// ErrSignIn is the refusal of a sign-in. It does not say whether the address
// or the password was wrong, nor whether the account is disabled.
var ErrSignIn = fault.New(fault.Unauthenticated, "sign_in_refused", "e-mail or password is not right; check both and try again")

// A Client is where a sign-in comes from.
type Client struct{ IP, UserAgent string }

// A SignIn is one browser in which a member signed in.
type SignIn struct {
	ID         string // UUID
	StaffID    int64
	IP         string
	UserAgent  string
	CreatedAt  time.Time
	LastSeenAt time.Time
	RevokedAt  *time.Time
	Method     Method
}

// A Throttle bounds how often something is tried.
type Throttle interface {
	// Allow counts one attempt for key. It returns 0 if the attempt may go ahead,
	// otherwise the time until the next attempt may.
	Allow(ctx context.Context, key string) (retryAfter time.Duration, err error)
	// Return gives back an admitted attempt that is not to be counted.
	Return(ctx context.Context, key string) error
}

// Passwords hashes passwords and compares them with hashes. Both cost time and
// memory on purpose, so calls wait for their turn.
type Passwords interface {
	Hash(ctx context.Context, password string) (string, error)
	// Matches reports whether hash was made from password. For an empty hash
	// it takes as long as for any other and reports false.
	Matches(ctx context.Context, password, hash string) (bool, error)
}

// SignIn checks a member's password and opens a sign-in. For a wrong address, a
// wrong password and a disabled member it returns [ErrSignIn] after the same time.
// It returns [ErrPasswordsOff] if passwords are switched off. It returns a member
// with a second factor together with [ErrSecondFactorNeeded] and without a sign-in;
// [Service.SecondStep] then opens the sign-in.
func (s *Service) SignIn(ctx context.Context, email, password string, from Client) (Member, SignIn, error) {
	if s.PasswordsOff {
		return Member{}, SignIn{}, ErrPasswordsOff
	}
	var m Member // of no member; its password is compared all the same
	if len(email) <= MaxEmail {
		var err error
		m, err = s.Store.MemberByEmail(ctx, NormalEmail(email))
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return Member{}, SignIn{}, err
		}
	}
	ok, err := s.Passwords.Matches(ctx, password, m.PasswordHash)
	if err != nil {
		return Member{}, SignIn{}, err
	}
	if !ok || m.DisabledAt != nil {
		return Member{}, SignIn{}, ErrSignIn
	}
	if m.SecondFactors > 0 {
		return m, SignIn{}, ErrSecondFactorNeeded
	}
	in := s.newSignIn(m, from)
	return m, in, s.Store.InsertSignIn(ctx, in, m.entry(m.Actor(), "staff.sign_in"))
}

// Present returns the member of a sign-in and stores when the member was seen. It
// returns [ErrUnauthenticated] if the sign-in was revoked, the member is disabled,
// or the sign-in was made with a password while passwords are off.
func (s *Service) Present(ctx context.Context, signInID string) (Presence, error) {
	p, err := s.Store.Present(ctx, signInID, s.Now())
	if err == nil && s.PasswordsOff && p.Method == ByPassword {
		return Presence{}, ErrUnauthenticated
	}
	if err != nil || p.SecondFactors > 0 || p.Method == BySingleSignOn || !Required.Demands(p.Role) {
		return p, err
	}
	policy, _, err := s.Policy(ctx)
	p.MustEnrol = policy.Demands(p.Role)
	return p, err
}

// SignOut ends a sign-in. A sign-in that has ended already stays as it is.
func (s *Service) SignOut(ctx context.Context, m Member, signInID string) error {
	e := m.entry(m.Actor(), "staff.sign_out")
	_, err := s.Store.RevokeSignIns(ctx, Revocation{StaffID: m.ID, Only: signInID, At: s.Now(), Entry: &e})
	return err
}

// SignIns lists the member's sign-ins that still hold, the latest first.
func (s *Service) SignIns(ctx context.Context, m Member) ([]SignIn, error) {
	return s.Store.SignIns(ctx, m.ID)
}

// Revoke ends one of the member's own sign-ins, or with an empty id all sign-ins
// except inUse, and returns how many it ended.
func (s *Service) Revoke(ctx context.Context, m Member, id, inUse string) (int, error) {
	r := Revocation{StaffID: m.ID, Only: id, At: s.Now()}
	e := m.entry(m.Actor(), "staff.revoke_sign_in")
	r.Entry = &e
	if id == "" {
		r.Except = inUse
	}
	return s.Store.RevokeSignIns(ctx, r)
}

// SignInsOf lists the sign-ins of any member, for staff who may manage staff.
func (s *Service) SignInsOf(ctx context.Context, by Actor, id int64) ([]SignIn, error) {
	m, err := s.Member(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return s.Store.SignIns(ctx, m.ID)
}

// SignOutEverywhere ends all sign-ins of a member, for staff who may manage staff, and
// returns how many it ended.
func (s *Service) SignOutEverywhere(ctx context.Context, by Actor, id int64) (int, error) {
	m, err := s.Member(ctx, by, id)
	if err != nil {
		return 0, err
	}
	e := m.entry(by, "staff.revoke_sign_in")
	return s.Store.RevokeSignIns(ctx, Revocation{StaffID: m.ID, At: s.Now(), Entry: &e})
}

// KnownFor is how long a network counts as one's own after a sign-in from it.
const KnownFor = 30 * 24 * time.Hour

// CameFrom returns the network addresses from which the member with this e-mail
// address has signed in lately; none if there is no such member.
func (s *Service) CameFrom(ctx context.Context, email string) ([]string, error) {
	return s.Store.SignInAddresses(ctx, NormalEmail(email), s.Now().Add(-KnownFor))
}

// NoteSlowed records that sign-in attempts for the member with this e-mail address
// are throttled. For an unknown address nothing is stored.
func (s *Service) NoteSlowed(ctx context.Context, email string) error {
	m, err := s.Store.MemberByEmail(ctx, NormalEmail(email))
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Store.Record(ctx, m.entry(System(), "staff.sign_in_slowed"))
}

func (m Member) entry(by Actor, action string) Entry {
	return Entry{Actor: by, Action: action, ObjectKind: "staff", ObjectID: itoa(m.ID)}
}

// A Revocation selects sign-ins of one member to be ended.
type Revocation struct {
	StaffID int64
	Only    string // id; empty = all
	Except  string // id; empty = none
	At      time.Time
	Entry   *Entry // recorded if anything ended; nil = not worth recording
}

func cut(s string, most int) string {
	r := []rune(s)
	if len(r) > most {
		r = r[:most]
	}
	return string(r)
}

// newUUID returns a random UUID (version 4, RFC 9562).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
