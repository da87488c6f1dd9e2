package verification

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	"dropbell/domain/user"
)

// Digits is the length of a code.
const Digits = 6

// newCode returns a code that cannot be foreseen.
func newCode() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%0*d", Digits, n), nil
}

// Keys hash codes. A hash without a key would not protect a code: all codes can be
// tried in a moment.
type Keys struct{ list [][]byte }

// NewKeys returns keys that are derived from secrets, which are separated by commas.
// The first key hashes; a code is compared with the hashes of all keys.
func NewKeys(secrets string) (k Keys) {
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s != "" {
			// A key of its own, so that nothing made for another purpose fits.
			h := hmac.New(sha256.New, []byte(s))
			h.Write([]byte("codes that prove phone numbers"))
			k.list = append(k.list, h.Sum(nil))
		}
	}
	return k
}

// Enabled reports whether codes can be hashed.
func (k Keys) Enabled() bool { return len(k.list) > 0 }

// Hash returns the hash of a code for the user and the number of one request. It needs
// a key.
func (k Keys) Hash(r Request, code string) []byte { return hashOf(k.list[0], r, code) }

// Match reports whether hash is the hash of the code, in a time that does not depend
// on the code.
func (k Keys) Match(hash []byte, r Request, code string) (same bool) {
	for _, key := range k.list {
		same = hmac.Equal(hash, hashOf(key, r, code)) || same
	}
	return same
}

func hashOf(key []byte, r Request, code string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.ID)))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.User)))
	h.Write([]byte(r.Phone + "\x00" + code))
	return h.Sum(nil)
}

// typedCode returns a code as it was typed, without spaces and dashes, with full-width
// digits converted to ASCII; false if it cannot be a code.
func typedCode(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ' ', r == '-', r == '\u00a0', r == '\u3000':
			return -1
		case r >= '０' && r <= '９':
			return r - '０' + '0'
		}
		return r
	}, s)
	return s, len(s) == Digits && strings.Trim(s, "0123456789") == ""
}

// A Request is the wish of a user to prove a number.
type Request struct {
	ID    int64
	User  user.ID
	Phone string
}
