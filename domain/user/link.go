package user

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"
	"sync"

	"dropbell/domain/fault"
)

// ErrLink is returned for a link that this installation did not make, or made
// with a secret that is no longer valid.
var ErrLink = fault.New(fault.NotFound, "link_invalid", "this link is not valid; open it exactly as it is in the message")

// Links signs and reads the tokens of links with which users turn off a channel
// without signing in, and of other links for people without a sign-in. The zero
// value makes no links and accepts none.
type Links struct{ keys []*key }

// NewLinks returns links signed with the first of the secrets, which are separated
// by commas. Signatures with any of the secrets are accepted, so a secret can be
// replaced while old messages are still read. Without secrets NewLinks returns the
// zero value.
func NewLinks(secrets string) Links {
	var l Links
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s != "" {
			l.keys = append(l.keys, newKey(s))
		}
	}
	return l
}

// Enabled reports whether links can be made.
func (l Links) Enabled() bool { return len(l.keys) > 0 }

// A token is version, channel, user id and 16 bytes of signature.
const (
	linkVersion     = 1
	linkBody        = 1 + 1 + 8
	linkLength      = linkBody + signatureLength
	signatureLength = 16
)

// Token returns the part of the user's link for the channel, given as its
// number, that identifies the user; empty without a secret. It does not reveal
// the id and does not expire: an opt-out must work for as long as the message
// can be read.
func (l Links) Token(id ID, channel uint8) string {
	if !l.Enabled() {
		return ""
	}
	b := make([]byte, linkBody, linkLength)
	b[0], b[1] = linkVersion, channel
	binary.BigEndian.PutUint64(b[2:], uint64(id))
	return l.Seal(optOutPurpose, b)
}

// Parse returns the user and channel of a token, or [ErrLink].
func (l Links) Parse(token string) (ID, uint8, error) {
	b, err := l.Unseal(optOutPurpose, token, linkBody)
	if err != nil || b[0] != linkVersion {
		return 0, 0, ErrLink
	}
	return ID(binary.BigEndian.Uint64(b[2:])), b[1], nil
}

// optOutPurpose keeps the signatures of opt-out links apart from all others.
const optOutPurpose = "dropbell opt-out link"

// Seal returns body with a signature for the purpose, in a form that fits into
// addresses; empty without a secret. The token is not valid for another purpose.
func (l Links) Seal(purpose string, body []byte) string {
	if !l.Enabled() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(body[:len(body):len(body)], l.keys[0].sign(purpose, body)...))
}

// Unseal returns the body, of size bytes, of a token that [Links.Seal] made
// for the purpose, or [ErrLink].
func (l Links) Unseal(purpose, token string, size int) ([]byte, error) {
	length := size + signatureLength
	if len(token) != base64.RawURLEncoding.EncodedLen(length) {
		return nil, ErrLink
	}
	// Strict: the unused bits of the last letter are no second name of a link.
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != length {
		return nil, ErrLink
	}
	body, signature := b[:size], b[size:]
	for _, k := range l.keys {
		if hmac.Equal(signature, k.sign(purpose, body)) {
			return body, nil
		}
	}
	return nil, ErrLink
}

// A key signs by HMAC-SHA256. It is safe for concurrent use. It keeps prepared
// hashes, because preparing a hash takes half of the time of a signature.
type key struct{ prepared sync.Pool }

func newKey(secret string) *key {
	return &key{sync.Pool{New: func() any { return hmac.New(sha256.New, []byte(secret)) }}}
}

func (k *key) sign(purpose string, body []byte) []byte {
	mac := k.prepared.Get().(hash.Hash)
	defer k.prepared.Put(mac)
	mac.Reset()
	mac.Write([]byte(purpose + "\x00"))
	mac.Write(body)
	return mac.Sum(nil)[:signatureLength]
}
