// Package totp makes and checks the time-based one-time codes (RFC 6238) of
// authenticator apps, and encrypts their secrets at rest.
package totp

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"image/png"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"dropbell/domain/seal"
	"dropbell/domain/staff"
)

// issuer is how authenticator apps name the console.
const issuer = "Dropbell"

const (
	period    = 30 // seconds
	secretLen = 20 // bytes, as long as the hash of SHA-1
	pixels    = 220
)

// Codes implements [staff.OneTimeCodes].
type Codes struct{ box *seal.Box }

// New returns codes whose secrets are encrypted (AES-256-GCM) with the first key and decrypted
// with any of the keys. Without keys, secrets are stored unencrypted.
func New(keys ...string) (*Codes, error) {
	box, err := seal.New("dropbell totp secrets", keys...)
	return &Codes{box}, err
}

// New makes a secret for the row.
func (c *Codes) New(row string) ([]byte, error) {
	secret := make([]byte, secretLen)
	_, _ = rand.Read(secret) // never fails, see crypto/rand
	return c.box.Seal(row, secret), nil
}

// open returns the secret, or [staff.ErrSealed].
func (c *Codes) open(row string, stored []byte) ([]byte, error) {
	secret, err := c.box.Open(row, stored)
	if err != nil {
		return nil, staff.ErrSealed
	}
	return secret, nil
}

// Show returns the secret of the account for an authenticator app.
func (c *Codes) Show(row string, stored []byte, account string) (staff.OneTimeSecret, error) {
	secret, err := c.open(row, stored)
	if err != nil {
		return staff.OneTimeSecret{}, err
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: account, Period: period, Secret: secret})
	if err != nil {
		return staff.OneTimeSecret{}, fmt.Errorf("authenticator key: %w", err)
	}
	picture, err := key.Image(pixels, pixels)
	if err != nil {
		return staff.OneTimeSecret{}, fmt.Errorf("authenticator picture: %w", err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return staff.OneTimeSecret{}, err
	}
	return staff.OneTimeSecret{Secret: key.Secret(), URI: key.URL(), QR: b.Bytes()}, nil
}

// Step returns the time step of the code: the present step, the step before, or the step after;
// ok is false if the code fits none of them.
func (c *Codes) Step(row string, stored []byte, code string, now time.Time) (step int64, ok bool, err error) {
	secret, err := c.open(row, stored)
	if err != nil {
		return 0, false, err
	}
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	for _, away := range []int64{0, -1, 1} {
		step = now.Unix()/period + away
		// One step alone: the library does not return which of several matched.
		ok, err = totp.ValidateCustom(code, text, time.Unix(step*period, 0), totp.ValidateOpts{Period: period, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if ok && err == nil {
			return step, true, nil
		}
	}
	return 0, false, nil // a text other than six digits is wrong, too
}
