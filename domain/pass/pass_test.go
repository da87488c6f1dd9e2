package pass_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"dropbell/domain/pass"
	"dropbell/domain/template"
	"dropbell/musttest"
)

var (
	now  = time.Date(2027, 1, 1, 11, 50, 0, 123_000_000, time.UTC)
	keys = pass.NewKeys("a secret of the tests, 32 bytes long")
	kept = pass.Pass{Way: pass.Puzzle, IssuedAt: now, Opened: 90 * time.Second, ExpiresAt: now.Add(time.Hour).Truncate(time.Second)}
)

func TestPass(t *testing.T) {
	text := keys.Issue(kept, 7, 42)
	if len(text) > pass.MaxText {
		t.Errorf("%d characters", len(text))
	}
	if got, err := keys.Check(text, 7, 42, now); err != nil || got != kept {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := keys.Check(text, 7, 42, kept.ExpiresAt.Add(-time.Millisecond)); err != nil {
		t.Errorf("before its end: %v", err)
	}
	for name, check := range map[string]func() error{
		"another user":   func() error { _, err := keys.Check(text, 8, 42, now); return err },
		"another drop":   func() error { _, err := keys.Check(text, 7, 43, now); return err },
		"at its end":     func() error { _, err := keys.Check(text, 7, 42, kept.ExpiresAt); return err },
		"another secret": func() error { _, err := pass.NewKeys(strings.Repeat("x", 32)).Check(text, 7, 42, now); return err },
		"no key":         func() error { _, err := (pass.Keys{}).Check(text, 7, 42, now); return err },
		"no text":        func() error { _, err := keys.Check("", 7, 42, now); return err },
	} {
		if err := check(); !errors.Is(err, pass.ErrRequired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range text { // each character matters
		for _, other := range []byte{'A', 'z', '-', '='} {
			if forged := text[:i] + string(other) + text[i+1:]; forged != text {
				if _, err := keys.Check(forged, 7, 42, now); !errors.Is(err, pass.ErrRequired) {
					t.Fatalf("%s: %v", forged, err)
				}
			}
		}
	}
}

// TestSecretIsReplaced: passes of the old secret are accepted for as long as it is among the secrets.
func TestSecretIsReplaced(t *testing.T) {
	old, both := pass.NewKeys("old secret"), pass.NewKeys("new secret, old secret")
	text := old.Issue(kept, 7, 42)
	if _, err := both.Check(text, 7, 42, now); err != nil {
		t.Error(err)
	}
	if _, err := old.Check(both.Issue(kept, 7, 42), 7, 42, now); !errors.Is(err, pass.ErrRequired) {
		t.Errorf("the new secret does not sign: %v", err)
	}
	if old.Sign("network", "1.2.3.0") == both.Sign("network", "1.2.3.0") {
		t.Error("signs are hashed by the old secret")
	}
}

func TestAdmit(t *testing.T) {
	puzzle, phone := keys.Issue(kept, 7, 42), keys.Issue(pass.Pass{Way: pass.Phone, IssuedAt: now, ExpiresAt: kept.ExpiresAt}, 7, 42)
	for _, c := range []struct {
		protection template.Protection
		text       string
		want       error
	}{
		{"", "", nil}, {template.Unprotected, "nonsense", nil},
		{template.Standard, "", pass.ErrRequired}, {template.Standard, puzzle, nil}, {template.Standard, phone, nil},
		{template.Strict, puzzle, pass.ErrRequired}, {template.Strict, phone, nil},
	} {
		drop := &template.Template{ID: 42, Spec: template.Spec{Protection: c.protection}}
		if err := keys.Admit(drop, 7, c.text, now); !errors.Is(err, c.want) {
			t.Errorf("%s %q: %v", c.protection, c.text, err)
		}
	}
	if err := (pass.Keys{}).Admit(&template.Template{ID: 42, Spec: template.Spec{Protection: template.Standard}}, 7, puzzle, now); !errors.Is(err, pass.ErrOff) {
		t.Errorf("without a key: %v", err)
	}
}

// TestSolutionOfALTCHA checks a solution that npm's altcha-lib 2.8.0 found for a puzzle of this
// package: testdata/solution.txt is the output of its solveChallenge.
func TestSolutionOfALTCHA(t *testing.T) {
	raw, err := os.ReadFile("testdata/solution.txt")
	musttest.OK(t, err)
	text := strings.TrimSpace(string(raw))
	if at, err := keys.Solved(text, 7, 42, now.Add(time.Hour)); err != nil || !at.Equal(now) {
		t.Errorf("%s, %v", at, err)
	}
	for name, solved := range map[string]func() error{
		"another user":   func() error { _, err := keys.Solved(text, 8, 42, now); return err },
		"another drop":   func() error { _, err := keys.Solved(text, 7, 43, now); return err },
		"too late":       func() error { _, err := keys.Solved(text, 7, 42, now.Add(2*time.Hour)); return err },
		"another secret": func() error { _, err := pass.NewKeys("other").Solved(text, 7, 42, now); return err },
		"no base64":      func() error { _, err := keys.Solved("%", 7, 42, now); return err },
		"no JSON":        func() error { _, err := keys.Solved("AAAA", 7, 42, now); return err },
	} {
		if err := solved(); !errors.Is(err, pass.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(keys.Issue(kept, 7, 42))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := keys.Check(text, 7, 42, now); err == nil && keys.Issue(p, 7, 42) != text {
			t.Errorf("%q is accepted", text)
		}
		if _, err := keys.Solved(text, 7, 42, now); err == nil {
			t.Errorf("%q solves a puzzle", text)
		}
	})
}

// BenchmarkCheck is what a claim in a protected drop costs more: at most 2 µs.
func BenchmarkCheck(b *testing.B) {
	drop, text := &template.Template{ID: 42, Spec: template.Spec{Protection: template.Standard}}, keys.Issue(kept, 7, 42)
	b.ReportAllocs()
	for b.Loop() {
		if err := keys.Admit(drop, 7, text, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnprotected is what a claim in a drop without protection costs more.
func BenchmarkUnprotected(b *testing.B) {
	drop := &template.Template{ID: 42, Spec: template.Spec{Protection: template.Unprotected}}
	for b.Loop() {
		if err := keys.Admit(drop, 7, "", now); err != nil {
			b.Fatal(err)
		}
	}
}
