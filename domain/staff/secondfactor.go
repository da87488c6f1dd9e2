package staff

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// Refusals around second factors.
var (
	// ErrSecondFactorNeeded says that the password is right and the member
	// still has to answer for a second factor.
	ErrSecondFactorNeeded = fault.New(fault.Unauthenticated, "second_factor_needed", "a second factor is needed; enter a code or use a passkey")
	// ErrSecondFactor is the refusal of an answer: it is wrong, or it was used.
	ErrSecondFactor = fault.New(fault.Invalid, "second_factor_refused", "this code or passkey is not right, or it was used before; enter the code that the app shows now")
	// ErrHalfSignIn means that the first step of a sign-in counts no longer.
	ErrHalfSignIn = fault.New(fault.Unauthenticated, "half_sign_in_ended", "this sign-in took too long; begin again")
	// ErrMustEnrol is the refusal to a member who must have a second factor and has
	// none. Everything but enrolment is refused.
	ErrMustEnrol = fault.New(fault.Denied, "second_factor_missing", "add a second factor first")
	// ErrSealed means that the secret of an authenticator app cannot be read.
	ErrSealed = fault.New(fault.Unavailable, "second_factor_sealed",
		"the secret of this authenticator app cannot be read: SECOND_FACTOR_KEY lacks the key it was encrypted with; use a recovery code or a passkey")
	ErrFactorNotFound = fault.New(fault.NotFound, "second_factor_not_found", "there is no such second factor; load the page again")
	// ErrFactorTaken means that the same authenticator is enrolled already.
	ErrFactorTaken = fault.New(fault.Conflict, "second_factor_taken", "this authenticator is enrolled already; use another one")
	// ErrManyFactors is the refusal of more than [MaxFactors].
	ErrManyFactors = fault.New(fault.Conflict, "second_factors_full", "there are ten second factors already; remove one first")
	// ErrLastFactor is the refusal to remove the last factor of a member who must
	// have a factor.
	ErrLastFactor = fault.New(fault.Conflict, "last_second_factor", "your role needs a second factor; add another one before you remove the last")
	// ErrNoPasskeysHere means that the console's address cannot have passkeys.
	ErrNoPasskeysHere = fault.New(fault.Invalid, "passkeys_unavailable", "passkeys need https and a host name, or http://localhost")
	// ErrPolicyFixed is the refusal to change a policy that the environment sets.
	ErrPolicyFixed = fault.New(fault.Conflict, "second_factor_fixed", "CONSOLE_SECOND_FACTOR decides this; remove it to decide in the console")
)

// A Policy says whether second factors are demanded.
type Policy string

// The policies.
const (
	Required Policy = "required"
	Optional Policy = "optional"
)

// Valid reports whether p is one of the two policies.
func (p Policy) Valid() bool { return p == Required || p == Optional }

// Demands reports whether members with the role must have a second factor.
func (p Policy) Demands(r Role) bool { return p == Required && (r == Operator || r == Admin) }

// A Method is how a member signed in.
type Method string

// The methods. At a sign-in with [BySingleSignOn] the identity provider is
// responsible for second factors.
const (
	ByPassword     Method = "password"
	BySingleSignOn Method = "single_sign_on"
)

// A Presence is the member behind a sign-in.
type Presence struct {
	Member
	Method Method
	// MustEnrol is set while the member must have a second factor and has none.
	MustEnrol bool
}

// FactorKind is the technology of a second factor.
type FactorKind string

// The kinds of second factors.
const (
	TOTP    FactorKind = "totp"
	Passkey FactorKind = "passkey"
)

// recoveryKind is the kind of a recovery code in the audit log.
const recoveryKind FactorKind = "recovery_code"

// MaxFactors bounds the second factors of one member.
const MaxFactors = 10

// A Factor is one second factor of a member.
type Factor struct {
	ID      int64
	StaffID int64
	Kind    FactorKind
	Name    string
	Handle  []byte // identifies this authenticator
	Secret  []byte // as [OneTimeCodes] or [Passkeys] made it
	// Counter keeps a code from being used twice: the last accepted time step of an
	// authenticator app, the number of uses of a passkey. It only grows.
	Counter   int64
	CreatedAt time.Time
	UsedAt    *time.Time
}

// row is the row that the secret is sealed for: of no other factor and no other member.
func (f Factor) row() string { return fmt.Sprintf("staff:%d/second_factors:%d", f.StaffID, f.ID) }

func (f Factor) shown() map[string]string {
	return map[string]string{"second_factor": string(f.Kind), "name": f.Name}
}

// A Proof is an answer that was checked. Storing a proof uses it up: of two equal
// concurrent answers one is accepted.
type Proof struct {
	// Factor is the factor that was used, with its new counter and secret; its ID
	// is 0 for a recovery code.
	Factor       Factor
	RecoveryHash []byte
}

func (p Proof) kind() FactorKind {
	if p.Factor.ID == 0 {
		return recoveryKind
	}
	return p.Factor.Kind
}

// How long a first step and a confirmation are valid.
const (
	// HalfLife is how long after the password the second factor may be given.
	HalfLife = 10 * time.Minute
	// ConfirmedFor is how long a confirmation, or a fresh sign-in, counts.
	ConfirmedFor = 10 * time.Minute
)

// Confirmed reports whether a confirmation at the instant at still counts.
func Confirmed(at, now time.Time) bool {
	return !at.IsZero() && !now.Before(at.Add(-time.Minute)) && now.Sub(at) < ConfirmedFor
}

// A HalfSignIn is the first step of a sign-in: the password was right.
type HalfSignIn struct {
	StaffID int64     `json:"staff"`
	At      time.Time `json:"at"`
	// Password is a fingerprint of the stored hash: a change of the password makes
	// the first step invalid.
	Password string `json:"password"`
	Return   string `json:"return"` // where to go afterwards
}

// Half returns the first step of m's sign-in at now.
func (m Member) Half(now time.Time) HalfSignIn {
	return HalfSignIn{StaffID: m.ID, At: now, Password: fingerprint(m.PasswordHash)}
}

// holds reports whether the step still counts for m at now.
func (h HalfSignIn) holds(m Member, now time.Time) bool {
	same := subtle.ConstantTimeCompare([]byte(h.Password), []byte(fingerprint(m.PasswordHash))) == 1
	return h.StaffID != 0 && h.StaffID == m.ID && same && m.DisabledAt == nil && !now.Before(h.At) && now.Sub(h.At) < HalfLife
}

func fingerprint(hash string) string {
	sum := sha256.Sum256([]byte("half sign-in\x00" + hash))
	return hex.EncodeToString(sum[:16])
}

// RecoveryCodes is how many recovery codes a member gets.
const RecoveryCodes = 10

// newRecoveryCodes returns fresh codes of 80 random bits, in groups for reading.
func newRecoveryCodes() []string {
	list := make([]string, RecoveryCodes)
	for i := range list {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails, see crypto/rand
		c := strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
		list[i] = c[:4] + "-" + c[4:8] + "-" + c[8:12] + "-" + c[12:]
	}
	return list
}

// hashRecovery returns the stored form of a recovery code. Salt and stretching are
// unnecessary, because codes have enough entropy. Case, blanks and dashes do not
// matter, nor do digits that look like letters: a code has no 0, 1 and 8.
func hashRecovery(code string) []byte {
	code = strings.NewReplacer("-", "", " ", "", "0", "o", "1", "l", "8", "b").Replace(strings.ToLower(code))
	h := sha256.Sum256([]byte("recovery code\x00" + code))
	return h[:]
}

func hashesOf(codes []string) [][]byte {
	list := make([][]byte, len(codes))
	for i, c := range codes {
		list[i] = hashRecovery(c)
	}
	return list
}

var oneTimeForm = regexp.MustCompile(`^[0-9]{6}$`)

// oneTime returns the code without blanks if it has the form of a code of an
// authenticator app.
func oneTime(code string) (string, bool) {
	code = strings.Join(strings.Fields(code), "")
	return code, oneTimeForm.MatchString(code)
}

// A Party is the site that passkeys belong to. The zero Party can have none.
type Party struct{ ID, Origin string }

// PartyOf returns the party of a console that browsers reach at publicURL. On a
// developer's machine the party is the host that the request names, because
// browsers accept localhost and refuse 127.0.0.1.
func PartyOf(publicURL, host string) Party {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" {
		return Party{}
	}
	if here, err := url.Parse("http://" + host); err == nil && loopback(u.Hostname()) && loopback(here.Hostname()) {
		u = here
	}
	name := u.Hostname()
	if _, err := netip.ParseAddr(name); err == nil || u.Scheme != "https" && !loopback(name) {
		return Party{}
	}
	return Party{ID: name, Origin: u.Scheme + "://" + u.Host}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}
