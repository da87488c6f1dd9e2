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

// TestKeysRotate: the first key seals and all keys open. A key of another purpose,
// no key, another row, or a changed byte does not open.
func TestKeysRotate(t *testing.T) {
	first, second, row := strings.Repeat("a", 32), strings.Repeat("b", 32), seal.Row("groups", 1)
	stored := box(t, "p", first).Seal(row, []byte("secret"))
	if bytes.Contains(stored, []byte("secret")) {
		t.Error("the secret is stored as it is")
	}
	if got, err := box(t, "p", second, first).Open(row, stored); string(got) != "secret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	changed := bytes.Clone(stored)
	changed[len(changed)-1] ^= 1
	for name, try := range map[string]func() ([]byte, error){
		"another purpose":    func() ([]byte, error) { return box(t, "q", first).Open(row, stored) },
		"another key":        func() ([]byte, error) { return box(t, "p", second).Open(row, stored) },
		"no key":             func() ([]byte, error) { return box(t, "p").Open(row, stored) },
		"another row":        func() ([]byte, error) { return box(t, "p", first).Open(seal.Row("groups", 2), stored) },
		"another table":      func() ([]byte, error) { return box(t, "p", first).Open(seal.Row("members", 1), stored) },
		"no row":             func() ([]byte, error) { return box(t, "p", first).Open("", stored) },
		"sealed for no row":  func() ([]byte, error) { return box(t, "p", first).Open(row, box(t, "p", first).Seal("", []byte("x"))) },
		"changed":            func() ([]byte, error) { return box(t, "p", first).Open(row, changed) },
		"another first byte": func() ([]byte, error) { return box(t, "p", first).Open(row, append([]byte{9}, stored[1:]...)) },
		"empty":              func() ([]byte, error) { return box(t, "p", first).Open(row, nil) },
	} {
		if got, err := try(); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	plain := box(t, "p").Seal(row, []byte("secret"))
	if got, err := box(t, "p", first).Open(row, plain); string(got) != "secret" || err != nil {
		t.Errorf("stored before there was a key: %q, %v", got, err)
	}
}
