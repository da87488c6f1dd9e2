package staff

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope is one thing a service key may be used for.
type Scope string

// The scopes.
const (
	ScopeAdmin     Scope = "admin"
	ScopeActAsUser Scope = "act-as-user"
	ScopePayment   Scope = "payment"
	ScopeRead      Scope = "read"
)

// Scopes returns every scope.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeActAsUser, ScopePayment, ScopeAdmin} }

// KeyPrefix begins every service key.
const KeyPrefix = "dbk_"

// TestPrefix begins the keys that reach only rehearsals of drops.
const TestPrefix = KeyPrefix + "test_"

// IsTestSecret reports whether the key with this secret reaches only rehearsals.
func IsTestSecret(secret string) bool { return strings.HasPrefix(secret, TestPrefix) }

// TestScopes are the scopes that keys of rehearsals can have.
func TestScopes() []Scope { return []Scope{ScopeActAsUser, ScopePayment} }

// A Key is a service's credential. The secret itself is shown once and never stored.
type Key struct {
	ID         int64
	Name       string
	Prefix     string // the first characters, to identify the key
	Scopes     []Scope
	CreatedBy  string
	CreatedAt  time.Time
	ExpiresAt  *time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}

// Has reports whether the key was given scope.
func (k Key) Has(s Scope) bool { return slices.Contains(k.Scopes, s) }

// Test reports whether the key reaches only rehearsals.
func (k Key) Test() bool { return IsTestSecret(k.Prefix) }

// Usable reports whether the key is neither revoked nor expired at now.
func (k Key) Usable(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// Actor returns the key as the cause of a change.
func (k Key) Actor() Actor {
	a := Actor{Label: "key:" + itoa(k.ID), Name: k.Name}
	if k.Has(ScopeAdmin) {
		a.Role = Admin
	} else if k.Has(ScopeRead) {
		a.Role = Viewer
	}
	return a
}

// NewSecret returns a fresh key with 160 random bits.
func NewSecret() string { return KeyPrefix + newToken() }

// newToken returns 160 random bits as 32 lower-case letters and digits.
func newToken() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// HashSecret returns the stored form of a key or of a link's token. Salt and
// stretching are unnecessary, because keys and tokens have enough entropy.
func HashSecret(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
