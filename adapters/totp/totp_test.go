package totp

import (
	"bytes"
	"encoding/base32"
	"errors"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/musttest"
)

func codes(t *testing.T, keys ...string) *Codes {
	t.Helper()
	c, err := New(keys...)
	musttest.OK(t, err)
	return c
}

// TestStep: the values of RFC 6238, appendix B, for SHA-1, shortened to six digits, and the time
// steps before and after.
func TestStep(t *testing.T) {
	c := codes(t)
	stored := c.box.Seal("row 1", []byte("12345678901234567890"))
	for at, code := range map[int64]string{1111111109: "081804", 1234567890: "005924", 20000000000: "353130"} {
		for away, ok := range map[int64]bool{-60: false, -30: true, 0: true, 30: true, 60: false} {
			step, got, err := c.Step("row 1", stored, code, time.Unix(at+away, 0))
			if got != ok || err != nil || ok && step != at/30 {
				t.Errorf("the code of %d, %d s away: step %d, %v, %v", at, away, step, got, err)
			}
		}
	}
	for _, code := range []string{"", "28708", "2870821", "abcdef", "000000"} {
		if _, ok, err := c.Step("row 1", stored, code, time.Unix(59, 0)); ok || err != nil {
			t.Errorf("%q: %v %v", code, ok, err)
		}
	}
}

func TestSecretsAreSealed(t *testing.T) {
	old, young := strings.Repeat("a", 32), strings.Repeat("b", 32)
	before, both, after := codes(t, old), codes(t, young, old), codes(t, young)
	stored, err := before.New("row 1")
	musttest.OK(t, err)
	shown, err := both.Show("row 1", stored, "ada@example.com")
	musttest.OK(t, err)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(shown.Secret)
	if err != nil || len(secret) != secretLen || bytes.Contains(stored, secret) {
		t.Errorf("%v: the secret is stored as it is", err)
	}
	if !strings.HasPrefix(shown.URI, "otpauth://totp/Dropbell:ada@example.com?") || !bytes.HasPrefix(shown.QR, []byte("\x89PNG")) {
		t.Errorf("%s, %d bytes of a picture", shown.URI, len(shown.QR))
	}
	for _, c := range []*Codes{after, codes(t)} {
		if _, _, err := c.Step("row 1", stored, "123456", time.Unix(0, 0)); !errors.Is(err, staff.ErrSealed) {
			t.Errorf("without the key: %v", err)
		}
	}
	if _, err := before.Show("row 2", stored, "x"); !errors.Is(err, staff.ErrSealed) {
		t.Errorf("copied into another row: %v", err)
	}
	if _, err := before.Show("row 1", nil, "x"); !errors.Is(err, staff.ErrSealed) {
		t.Errorf("nothing: %v", err)
	}
	if open, err := codes(t).New("row 1"); err != nil || codes(t, old) == nil {
		t.Error(err)
	} else if _, err := after.Show("row 1", open, "x"); err != nil {
		t.Errorf("a secret from before there was a key: %v", err)
	}
}
