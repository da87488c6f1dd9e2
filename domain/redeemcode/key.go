package redeemcode

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dropbell/domain/fault"
)

// KeyID numbers the keys of an installation, 1 to [MaxKeys]. It is the first symbol
// of each code and is not secret.
type KeyID uint8

// Bounds of keys.
const (
	MaxKeys     = 31
	minKeyBytes = 16
	maxKeyBytes = 128
)

// A Serial is the number behind a code: 1 to [MaxSerial], each used once.
type Serial int64

// MaxSerial is the last serial number there is.
const MaxSerial Serial = 1<<SerialBits - 1

// ErrNoKeys is the refusal to make codes without a key.
var ErrNoKeys = fault.New(fault.Conflict, "codes_not_configured", "this server has no key for redeem codes; set CODE_KEYS")

// ErrKeyMissing is the refusal to show codes whose key is missing, or differs from
// the key with which they were generated.
var ErrKeyMissing = fault.New(fault.Conflict, "code_key_missing",
	"the key that these codes were made with is missing from CODE_KEYS or has changed; put it back")

// A Keyring holds the keys of all codes on sale; new codes are made with the key of
// the greatest number. The zero Keyring has no keys: it accepts no code and makes
// none. It is safe for concurrent use.
type Keyring struct {
	ciphers [MaxKeys + 1]*cipher
	newest  KeyID
}

// ParseKeys reads keys written as "1:base64,2:base64", each of 16 to 128 bytes. The
// error names the wrong key by its number and never quotes the key.
func ParseKeys(text string) (*Keyring, error) {
	k := &Keyring{}
	if strings.TrimSpace(text) == "" {
		return k, nil
	}
	for i, one := range strings.Split(text, ",") {
		id, secret, ok := strings.Cut(strings.TrimSpace(one), ":")
		n, err := strconv.ParseUint(id, 10, 8)
		if !ok || err != nil || n == 0 || n > MaxKeys {
			return nil, fmt.Errorf("entry %d must be a number from 1 to %d, a colon and a key in base64", i+1, MaxKeys)
		}
		if k.ciphers[n] != nil {
			return nil, fmt.Errorf("key %d is given twice", n)
		}
		raw, err := decodeKey(secret)
		if err != nil {
			return nil, fmt.Errorf("key %d %w", n, err)
		}
		k.ciphers[n] = newCipher(KeyID(n), raw)
		k.newest = max(k.newest, KeyID(n))
	}
	return k, nil
}

// decodeKey reads base64, standard or for URLs, padded or not.
func decodeKey(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(strings.TrimSpace(s), "="))
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("is not base64")
	}
	if len(raw) < minKeyBytes || len(raw) > maxKeyBytes {
		return nil, fmt.Errorf("must have %d to %d bytes", minKeyBytes, maxKeyBytes)
	}
	return raw, nil
}

// Newest returns the key for new codes, or [ErrNoKeys].
func (k *Keyring) Newest() (KeyID, error) {
	if k.newest == 0 {
		return 0, ErrNoKeys
	}
	return k.newest, nil
}

// Code returns the code of a serial number under a key, or [ErrKeyMissing].
func (k *Keyring) Code(id KeyID, s Serial) (Code, error) {
	var code Code
	err := k.each(id, s, 1, func(c Code) error { code = c; return nil })
	return code, err
}

// each calls yield with the codes of count serial numbers from first on, until
// yield returns an error.
func (k *Keyring) each(id KeyID, first Serial, count int64, yield func(Code) error) error {
	c := k.cipher(id)
	if c == nil {
		return ErrKeyMissing
	}
	p := c.pool.Get().(*pair)
	defer c.pool.Put(p)
	for s := first; s < first+Serial(count); s++ {
		if s < 1 || s > MaxSerial {
			return fmt.Errorf("serial number %d is out of range", s)
		}
		if err := yield(p.seal(id, uint64(s))); err != nil {
			return err
		}
	}
	return nil
}

// Serial returns the serial number of a code, or [ErrInvalid] if the code was not
// made with one of the keys. It needs no store: rejecting an invented code takes
// one to four microseconds.
func (k *Keyring) Serial(code Code) (Serial, error) {
	c := k.cipher(code.key)
	if c == nil {
		return 0, ErrInvalid
	}
	p := c.pool.Get().(*pair)
	defer c.pool.Put(p)
	s, ok := p.open(code)
	if !ok || s == 0 {
		return 0, ErrInvalid
	}
	return Serial(s), nil
}

func (k *Keyring) cipher(id KeyID) *cipher {
	if k == nil || id < 1 || id > MaxKeys {
		return nil
	}
	return k.ciphers[id]
}
