// Package beacon verifies and fetches the rounds of drand's chain quicknet, and signs the rounds of a
// local beacon for development and tests.
package beacon

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/ecc/bls12381"
	"github.com/cloudflare/circl/sign/bls"
)

// ErrSignature is returned for a signature that does not verify.
var ErrSignature = errors.New("the signature does not verify")

// Judge verifies rounds with BLS12-381, with signatures on G1 and public keys on G2.
type Judge struct{}

// message is what a beacon signs for a round: the SHA-256 of its number as 8 bytes, big endian.
func message(round int64) []byte {
	hash := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(round)))
	return hash[:]
}

// Verify returns [ErrSignature] unless signature is the signature of round under key, which is in
// hexadecimal digits.
func (Judge) Verify(key string, round int64, signature []byte) error {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return fmt.Errorf("the public key of the beacon: %w", err)
	}
	public := new(bls.PublicKey[bls.KeyG2SigG1])
	if err := public.UnmarshalBinary(raw); err != nil {
		return fmt.Errorf("the public key of the beacon: %w", err)
	}
	if !canonical(signature) || !bls.Verify(public, message(round), signature) {
		return ErrSignature
	}
	return nil
}

// canonical reports whether signature is the compressed form of its point, which is the form that
// beacons publish. A point has other forms that the library reads too, and the random value is a hash
// of the bytes: with a choice of forms an operator could choose the random value.
func canonical(signature []byte) bool {
	var point bls12381.G1
	return point.SetBytes(signature) == nil && bytes.Equal(point.BytesCompressed(), signature)
}

// Local is a beacon with a key of its own. Its secret determines all its values, so it is
// for development and tests.
type Local struct {
	key    *bls.PrivateKey[bls.KeyG2SigG1]
	public string
}

// NewLocal returns the beacon of secret, which has at least 32 bytes.
func NewLocal(secret []byte) (*Local, error) {
	key, err := bls.KeyGen[bls.KeyG2SigG1](secret, []byte("dropbell local beacon"), nil)
	if err != nil {
		return nil, fmt.Errorf("the secret of the local beacon: %w", err)
	}
	public, err := key.PublicKey().MarshalBinary()
	return &Local{key, hex.EncodeToString(public)}, err
}

// Public is the beacon's public key in hexadecimal digits.
func (l *Local) Public() string { return l.public }

// Sign returns the signature of a round.
func (l *Local) Sign(round int64) []byte { return bls.Sign(l.key, message(round)) }
