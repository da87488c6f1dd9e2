package draw

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// keyName is the name of all keys in signed texts. It is fixed, so that the key of an installation
// follows from its secret alone.
const keyName = "dropbell"

// A Key signs the texts of draws. All its parts follow from one secret.
type Key struct {
	// Public is the public key as golang.org/x/mod/sumdb/note writes it.
	Public   string
	verifier note.Verifier
	private  ed25519.PrivateKey
	secret   []byte
}

// Keys are the keys of an installation. The first key signs new draws; the others finish the draws
// that they began.
type Keys []Key

// NewKeys returns the keys of secrets that are separated by commas; "" gives no keys.
func NewKeys(secrets string) (keys Keys, err error) {
	for secret := range strings.SplitSeq(secrets, ",") {
		if secret = strings.TrimSpace(secret); secret == "" {
			continue
		}
		k := Key{secret: []byte(secret)}
		k.private = ed25519.NewKeyFromSeed(k.derive("key"))
		if k.Public, err = note.NewEd25519VerifierKey(keyName, k.private.Public().(ed25519.PublicKey)); err != nil {
			return nil, err
		}
		if k.verifier, err = note.NewVerifier(k.Public); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Of returns the key with the public key, or [ErrNoKey].
func (keys Keys) Of(public string) (Key, error) {
	for _, k := range keys {
		if k.Public == public {
			return k, nil
		}
	}
	return Key{}, ErrNoKey
}

func (k Key) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("dropbell draw " + purpose))
	return mac.Sum(nil)
}

// Beacon is the secret of the installation's local beacon.
func (k Key) Beacon() []byte { return k.derive("local beacon") }

// Commit is the secret that decides the draw of a drop whose card has its hash.
func (k Key) Commit(drop int64) Hash {
	return Hash(k.derive("commit " + string(binary.BigEndian.AppendUint64(nil, uint64(drop)))))
}

// Sign signs the text of a card, a seal, a result or a receipt.
func (k Key) Sign(text string) (string, error) { return Sign(signer{k}, text) }

// signer is a [note.Signer].
type signer struct{ Key }

func (s signer) Name() string                     { return s.verifier.Name() }
func (s signer) KeyHash() uint32                  { return s.verifier.KeyHash() }
func (s signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.private, text), nil }
