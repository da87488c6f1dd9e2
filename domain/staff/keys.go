package staff

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// A KeyInput is what an admin types about a new service key.
type KeyInput struct {
	Name      string
	Scopes    []Scope
	ExpiresAt *time.Time
	// Test makes a key that reaches only rehearsals.
	Test bool
	// RequestKey makes the request repeatable: sending the same form twice makes
	// one key. Empty = every call is a request of its own.
	RequestKey string
}

// Keys lists every service key, the newest first. Keys belong to no shop: staff who are
// limited to some shops get [ErrEveryShop], from Keys and from the methods below.
func (s *Service) Keys(ctx context.Context, by Actor) ([]Key, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return nil, err
	}
	return s.Store.Keys(ctx)
}

// CreateKey returns a new key and its secret, which cannot be read again. It
// returns a [fault.Fields] if a rule is broken, and [ErrKeyRepeated] for a request
// that has made its key.
func (s *Service) CreateKey(ctx context.Context, by Actor, in KeyInput) (Key, string, error) {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return Key{}, "", err
	}
	if err := in.check(s.Now()); err != nil {
		return Key{}, "", err
	}
	secret := NewSecret()
	if in.Test {
		secret = TestPrefix + strings.TrimPrefix(secret, KeyPrefix)
	}
	k := keyOf(in, secret, by)
	k, err := s.Store.InsertKey(ctx, k, HashSecret(secret), in.RequestKey, Entry{Actor: by, Action: "key.create", ObjectKind: "key", After: k.shown()})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// ConfiguredKey is the name of the service key that the configuration sets.
const ConfiguredKey = "ADMIN_API_KEY"

// EnsureKey creates a key with this secret and the scopes given, unless a key with
// this secret exists already. A key that was revoked stays revoked. It reports
// whether it created a key.
func (s *Service) EnsureKey(ctx context.Context, secret, name string, scopes []Scope) (bool, error) {
	if len(secret) < 16 {
		return false, fault.ErrInvalid.Because("an API key must have at least 16 characters")
	}
	k := keyOf(KeyInput{Name: name, Scopes: scopes}, secret, System())
	return s.Store.EnsureKey(ctx, k, HashSecret(secret), Entry{Actor: System(), Action: "key.create", ObjectKind: "key", After: k.shown()})
}

// RevokeKey revokes a key for good. It returns [ErrKeyNotFound].
func (s *Service) RevokeKey(ctx context.Context, by Actor, id int64, reason string) error {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return err
	}
	return s.Store.RevokeKey(ctx, id, s.Now(), Entry{Actor: by, Action: "key.revoke", ObjectKind: "key", ObjectID: itoa(id), Reason: reason})
}

func (in KeyInput) check(now time.Time) error {
	e := &fault.Fields{}
	if strings.TrimSpace(in.Name) == "" {
		e.Add("name", "rule.required", "is required")
	} else {
		checkName(e, in.Name, 80)
	}
	known := func(sc Scope) bool { return slices.Contains(Scopes(), sc) }
	if len(in.Scopes) == 0 || !all(in.Scopes, known) {
		e.Add("scopes", "rule.scopes", "choose at least one scope")
	} else if in.Test && !all(in.Scopes, func(sc Scope) bool { return slices.Contains(TestScopes(), sc) }) {
		e.Add("scopes", "rule.test_scopes", "can only be act-as-user and payment for a key of rehearsals")
	}
	if in.ExpiresAt != nil && !in.ExpiresAt.After(now) {
		e.Add("expires_at", "rule.ahead", "must lie in the future")
	}
	return e.Err()
}

// keyOf returns the key with a part of the secret: enough to identify the key and
// too little to guess the secret.
func keyOf(in KeyInput, secret string, by Actor) Key {
	shown := len(KeyPrefix) + 4
	if IsTestSecret(secret) {
		shown = len(TestPrefix) + 4
	}
	return Key{Name: strings.TrimSpace(in.Name), Prefix: secret[:min(shown, len(secret)/3)], Scopes: in.Scopes,
		CreatedBy: by.Label, ExpiresAt: in.ExpiresAt}
}

func (k Key) shown() map[string]any {
	return map[string]any{"name": k.Name, "prefix": k.Prefix, "scopes": k.Scopes, "expires_at": k.ExpiresAt}
}

func all[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !ok(v) })
}
