package seal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"dropbell/domain/seal"
)

func box(t *testing.T, purpose string, keys ...string) *seal.Box {
	t.Helper()
	b, err := seal.New(purpose, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKeysRotate: the first key seals, all open, and a key of another purpose,
// no key, or a changed byte does not.
func TestKeysRotate(t *testing.T) {
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 32)
	stored := box(t, "p", first).Seal([]byte("secret"))
	if bytes.Contains(stored, []byte("secret")) {
		t.Error("the secret is stored as it is")
	}
	if got, err := box(t, "p", second, first).Open(stored); string(got) != "secret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	changed := bytes.Clone(stored)
	changed[len(changed)-1] ^= 1
	for name, try := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return box(t, "q", first).Open(stored) },
		"another key":     func() ([]byte, error) { return box(t, "p", second).Open(stored) },
		"no key":          func() ([]byte, error) { return box(t, "p").Open(stored) },
		"changed":         func() ([]byte, error) { return box(t, "p", first).Open(changed) },
		"empty":           func() ([]byte, error) { return box(t, "p", first).Open(nil) },
	} {
		if got, err := try(); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	plain := box(t, "p").Seal([]byte("secret"))
	if got, err := box(t, "p", first).Open(plain); string(got) != "secret" || err != nil {
		t.Errorf("stored before there was a key: %q, %v", got, err)
	}
}

// TestSealedForARow: a secret that was sealed for a row opens for that row only, with any of the keys, and not
// as a secret of no row.
func TestSealedForARow(t *testing.T) {
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 32)
	stored := box(t, "p", first).SealFor("groups:1", []byte("secret"))
	if got, err := box(t, "p", second, first).OpenFor("groups:1", stored); string(got) != "secret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for name, try := range map[string]func() ([]byte, error){
		"another row": func() ([]byte, error) { return box(t, "p", first).OpenFor("groups:2", stored) },
		"no row":      func() ([]byte, error) { return box(t, "p", first).Open(stored) },
		"another key": func() ([]byte, error) { return box(t, "p", second).OpenFor("groups:1", stored) },
		"sealed for no row": func() ([]byte, error) {
			return box(t, "p", first).OpenFor("groups:1", box(t, "p", first).Seal([]byte("x")))
		},
		"nothing": func() ([]byte, error) { return box(t, "p", first).OpenFor("groups:1", nil) },
		"another first byte": func() ([]byte, error) {
			return box(t, "p", first).OpenFor("groups:1", append([]byte{9}, stored[1:]...))
		},
	} {
		if got, err := try(); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := box(t, "p", first).OpenFor("groups:1", box(t, "p").SealFor("groups:1", []byte("secret"))); string(got) != "secret" || err != nil {
		t.Errorf("stored before there was a key: %q, %v", got, err)
	}
}
