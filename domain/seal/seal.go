// Package seal encrypts secrets for the database with keys from the environment.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"strconv"
)

// The first byte of a stored secret.
const (
	plain  = 0
	sealed = 1
)

// ErrSealed is returned for a secret that no key opens, that was altered, or that
// was sealed for another row.
var ErrSealed = errors.New("none of the keys opens this secret")

// Box seals with its first key and opens with any of them.
type Box struct{ seals []cipher.AEAD }

// New returns a box whose keys are derived for the purpose, so that one key of the
// environment may serve several purposes. Without keys, secrets are stored in clear
// text.
func New(purpose string, keys ...string) (*Box, error) {
	b := &Box{}
	for _, k := range keys {
		key, err := hkdf.Key(sha256.New, []byte(k), nil, purpose, 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		s, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		b.seals = append(b.seals, s)
	}
	return b, nil
}

// Keyed reports whether there is a key to seal with.
func (b *Box) Keyed() bool { return len(b.seals) > 0 }

// Row returns the name of the row of a table with the id.
func Row(table string, id int64) string { return table + ":" + strconv.FormatInt(id, 10) }

// Seal returns the stored form of the secret of the row. Without keys the stored
// form is the secret itself, which opens in every row.
func (b *Box) Seal(row string, secret []byte) []byte {
	if len(b.seals) == 0 {
		return append([]byte{plain}, secret...)
	}
	return b.seals[0].Seal([]byte{sealed}, nil, secret, []byte(row))
}

// Open returns the secret that was sealed for the row, or [ErrSealed].
func (b *Box) Open(row string, stored []byte) ([]byte, error) {
	switch {
	case len(stored) > 1 && stored[0] == plain:
		return stored[1:], nil
	case len(stored) > 1 && stored[0] == sealed:
		for _, s := range b.seals {
			if secret, err := s.Open(nil, nil, stored[1:], []byte(row)); err == nil {
				return secret, nil
			}
		}
	}
	return nil, ErrSealed
}
