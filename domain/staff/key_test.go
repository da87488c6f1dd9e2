package staff_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"testing"
	"time"

	"dropbell/domain/staff"
)

func TestKeyUsability(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before, after := new(now.Add(-1)), new(now.Add(1))
	for _, c := range []struct {
		name             string
		expires, revoked *time.Time
		want             bool
	}{
		{"for ever", nil, nil, true},
		{"expires in a moment", after, nil, true},
		{"expires now", &now, nil, false},
		{"expired", before, nil, false},
		{"revoked", nil, before, false},
		{"revoked and not expired", after, before, false},
		{"revoked by a clock that is ahead", nil, after, false},
	} {
		if got := (staff.Key{ExpiresAt: c.expires, RevokedAt: c.revoked}).Usable(now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestKeyAsActor(t *testing.T) {
	for _, c := range []struct {
		scopes []staff.Scope
		want   staff.Role
	}{
		{nil, ""},
		{[]staff.Scope{staff.ScopeActAsUser, staff.ScopePayment}, ""},
		{[]staff.Scope{staff.ScopeRead}, staff.Viewer},
		{[]staff.Scope{staff.ScopeRead, staff.ScopeAdmin}, staff.Admin},
		{staff.Scopes(), staff.Admin},
		{[]staff.Scope{"Admin", "root"}, ""},
	} {
		a := staff.Key{ID: 3, Name: "shop", Scopes: c.scopes}.Actor()
		if a.Role != c.want || a.Label != "key:3" || a.Name != "shop" {
			t.Errorf("%v: %+v", c.scopes, a)
		}
	}
}

func TestNewSecret(t *testing.T) {
	// 160 random bits are 32 letters in base 32.
	form, seen := regexp.MustCompile(`^dbk_[a-z2-7]{32}$`), map[string]bool{}
	for range 1000 {
		s := staff.NewSecret()
		if !form.MatchString(s) || seen[s] {
			t.Fatalf("%q has the wrong form or came before", s)
		}
		seen[s] = true
	}
}

func TestHashSecret(t *testing.T) {
	want := sha256.Sum256([]byte("dbk_abc"))
	if got := staff.HashSecret("dbk_abc"); !bytes.Equal(got, want[:]) {
		t.Errorf("%x", got)
	}
	if bytes.Equal(staff.HashSecret("dbk_abc"), staff.HashSecret("dbk_abd")) || bytes.Contains(staff.HashSecret("dbk_abc"), []byte("abc")) {
		t.Error("the hash shows the secret")
	}
}
