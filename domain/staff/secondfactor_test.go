package staff

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPolicyDemands(t *testing.T) {
	for _, r := range append(Roles(), "") {
		if Optional.Demands(r) || Policy("").Demands(r) {
			t.Errorf("%s: demanded although nobody has to", r)
		}
		if want := r == Operator || r == Admin; Required.Demands(r) != want {
			t.Errorf("%s: demanded %v, want %v", r, !want, want)
		}
	}
}

func TestConfirmed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for ago, want := range map[time.Duration]bool{0: true, ConfirmedFor - time.Second: true, ConfirmedFor: false, -30 * time.Second: true, -2 * time.Minute: false} {
		if Confirmed(now.Add(-ago), now) != want {
			t.Errorf("%v ago counts: %v", ago, !want)
		}
	}
	if Confirmed(time.Time{}, now) {
		t.Error("never counts")
	}
}

// The first step of a sign-in is valid for one member, one password and a few
// minutes.
func TestHalfSignIn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := Member{ID: 7, PasswordHash: "hash"}
	half := m.Half(now)
	if strings.Contains(half.Password, "hash") {
		t.Error("the session would hold the hash")
	}
	changed, off, other := m, m, m
	changed.PasswordHash, off.DisabledAt, other.ID = "new", &now, 8
	for name, c := range map[string]struct {
		m     Member
		after time.Duration
		holds bool
	}{"at once": {m, 0, true}, "in time": {m, HalfLife - time.Second, true}, "too late": {m, HalfLife, false}, "before": {m, -time.Second, false},
		"new password": {changed, 0, false}, "disabled": {off, 0, false}, "somebody else": {other, 0, false}} {
		if half.holds(c.m, now.Add(c.after)) != c.holds {
			t.Errorf("%s: holds %v", name, !c.holds)
		}
	}
	if (HalfSignIn{}).holds(Member{}, time.Time{}) {
		t.Error("nobody's counts")
	}
}

func TestRecoveryCodes(t *testing.T) {
	codes := newRecoveryCodes()
	if len(codes) != RecoveryCodes || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != RecoveryCodes {
		t.Fatalf("%v", codes)
	}
	hash := func(s string) string { return string(hashRecovery(s)) }
	for _, c := range codes {
		if len(c) != 19 || strings.ContainsAny(c, "018") {
			t.Errorf("%q", c)
		}
		typed := strings.ToUpper(strings.ReplaceAll(c, "-", " "))
		if hash(typed) != hash(c) || hash(strings.ReplaceAll(c, "o", "0")) != hash(c) || hash(c) == hash(c[:18]) {
			t.Errorf("%q is read wrongly", c)
		}
		if _, ok := oneTime(c); ok {
			t.Errorf("%q is taken for a code of an app", c)
		}
	}
	if code, ok := oneTime(" 123 456 "); !ok || code != "123456" {
		t.Errorf("%q %v", code, ok)
	}
}

func TestPartyOf(t *testing.T) {
	for _, c := range []struct{ public, host, id, origin string }{
		{"https://drops.example", "drops.example", "drops.example", "https://drops.example"},
		{"https://drops.example/console", "evil.example", "drops.example", "https://drops.example"},
		{"https://drops.example:8443", "x", "drops.example", "https://drops.example:8443"},
		{"http://127.0.0.1:8080", "localhost:8080", "localhost", "http://localhost:8080"},
		{"http://localhost:8080", "localhost:9090", "localhost", "http://localhost:9090"},
		{"http://127.0.0.1:8080", "127.0.0.1:8080", "", ""},
		{"http://127.0.0.1:8080", "evil.example", "", ""},
		{"http://drops.example", "localhost", "", ""},
		{"https://192.0.2.1", "192.0.2.1", "", ""},
		{"", "localhost", "", ""},
	} {
		if got := PartyOf(c.public, c.host); got != (Party{c.id, c.origin}) {
			t.Errorf("%s asked as %s: %+v", c.public, c.host, got)
		}
	}
}
