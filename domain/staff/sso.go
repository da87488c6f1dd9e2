package staff

import (
	"context"
	"crypto/subtle"
	"time"

	"dropbell/domain/fault"
)

var (
	// ErrSingleSignOn is the refusal of an identity that the provider has
	// authenticated. It does not say whether the account is missing or disabled, or
	// whether only the address is not verified.
	ErrSingleSignOn = fault.New(fault.Denied, "sso_refused", "single sign-on does not let you in here; ask an admin of this console for access")
	// ErrAttempt is the refusal of an answer of the provider that belongs to no
	// attempt of this browser, arrives too late or a second time, or proves
	// nothing.
	ErrAttempt = fault.New(fault.Invalid, "sso_attempt", "this attempt to sign in has ended; begin again")
	// ErrNotAskedAgain: the identity provider does not state that it
	// authenticated the person again.
	ErrNotAskedAgain = fault.New(fault.Denied, "sso_not_asked_again", "the identity provider did not ask you to sign in again; confirm with a passkey or an authenticator app")
	// ErrProviderDown means that the identity provider does not answer.
	ErrProviderDown = fault.New(fault.Unavailable, "sso_unavailable", "the identity provider does not answer; try again in a moment")
)

// AttemptLife is how long a sign-in at the identity provider may take.
const AttemptLife = 10 * time.Minute

// An Attempt is one sign-in that was begun at the identity provider. The browser
// that began it keeps it, where scripts of the page cannot read it. An attempt is
// valid for one answer.
type Attempt struct {
	State    string    `json:"state"`    // comes back with the answer
	Nonce    string    `json:"nonce"`    // comes back inside the signed answer
	Verifier string    `json:"verifier"` // proves to the provider which browser began (PKCE)
	Return   string    `json:"return"`   // where to go afterwards
	At       time.Time `json:"at"`
	// Confirms is the member who confirms their identity; 0 = a sign-in.
	Confirms int64 `json:"confirms,omitempty"`
}

// Answers returns nil if an answer with this state belongs to the attempt and
// arrives in time, otherwise [ErrAttempt].
func (a Attempt) Answers(state string, now time.Time) error {
	same := subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) == 1
	if a.State == "" || !same || now.Before(a.At) || now.Sub(a.At) > AttemptLife {
		return ErrAttempt
	}
	return nil
}

// An Identity is a person whom the identity provider vouches for.
type Identity struct {
	Issuer   string // the provider
	Subject  string // the provider's own, lasting identifier of the person
	Email    string
	Verified bool // the provider has verified the address
	// At is when the person authenticated; zero = the provider does not state it.
	At time.Time
}

// An IdentityProvider authenticates persons outside of Dropbell.
type IdentityProvider interface {
	// Begin returns a new attempt and the address at the provider to go to,
	// or [ErrProviderDown].
	Begin(ctx context.Context) (Attempt, string, error)
	// BeginAgain is Begin with authentication required even in a running session
	// of the provider.
	BeginAgain(ctx context.Context) (Attempt, string, error)
	// Finish exchanges the provider's code. It returns [ErrAttempt] if the
	// provider refuses the code or its answer proves nothing for this
	// attempt, and [ErrProviderDown].
	Finish(ctx context.Context, a Attempt, code string) (Identity, error)
}

// SignInWith opens a sign-in for the member that is linked to the identity, and records it
// in the audit log. An identity without a link is linked for good to the member with its
// verified address: an address may be given to another person, a subject is not.
// SignInWith creates no accounts. It returns [ErrSingleSignOn] if there is no account, or
// if the account is disabled or linked to another person. An admin ends a link by changing
// the member's address or resetting the member's second factors.
func (s *Service) SignInWith(ctx context.Context, who Identity, from Client) (Member, SignIn, error) {
	if who.Subject == "" {
		return Member{}, SignIn{}, ErrSingleSignOn.Because("the identity provider names no subject")
	}
	m, err := s.Store.MemberByIdentity(ctx, who.Issuer, who.Subject)
	linked := err == nil
	if fault.KindOf(err) == fault.NotFound {
		m, err = s.memberWithAddress(ctx, who)
	}
	if err == nil && m.DisabledAt != nil {
		err = ErrSingleSignOn.Because("the member of staff is disabled")
	}
	if err != nil {
		return Member{}, SignIn{}, err
	}
	in := s.newSignIn(m, from)
	in.Method = BySingleSignOn
	e := m.entry(m.Actor(), "staff.single_sign_on")
	e.After = map[string]string{"subject": who.Subject}
	if linked {
		return m, in, s.Store.InsertSignIn(ctx, in, e)
	}
	return m, in, s.Store.LinkIdentity(ctx, in, who, e)
}

// memberWithAddress returns the member with the identity's address, to whom the identity
// may be linked.
func (s *Service) memberWithAddress(ctx context.Context, who Identity) (Member, error) {
	if who.Email == "" {
		return Member{}, ErrSingleSignOn.Because("the identity provider names no e-mail address")
	}
	if !who.Verified {
		return Member{}, ErrSingleSignOn.Because("the identity provider has not verified the e-mail address")
	}
	m, err := s.Store.MemberByEmail(ctx, NormalEmail(who.Email))
	if fault.KindOf(err) == fault.NotFound {
		return Member{}, ErrSingleSignOn.Because("no member of staff has the e-mail address")
	}
	return m, err
}

func (s *Service) newSignIn(m Member, from Client) SignIn {
	now := s.Now()
	return SignIn{ID: newUUID(), StaffID: m.ID, IP: from.IP, UserAgent: cut(from.UserAgent, 300), CreatedAt: now, LastSeenAt: now,
		Method: ByPassword}
}
