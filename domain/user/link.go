package user

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"dropbell/domain/fault"
)

// ErrLink is returned for a link that this installation did not make, or made
// with a secret that is no longer valid.
var ErrLink = fault.New(fault.NotFound, "link_invalid", "this link is not valid")

// Links signs and reads the tokens of links with which users turn off a
// channel without signing in. The zero value makes none and accepts none.
type Links struct{ secrets []string }

// NewLinks returns links signed with the first of the secrets, which are
// separated by commas; all of them are accepted, so that a secret can be
// replaced while old messages are still read. Without secrets it returns the
// zero value.
func NewLinks(secrets string) Links {
	var l Links
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s != "" {
			l.secrets = append(l.secrets, s)
		}
	}
	return l
}

// Enabled reports whether links can be made.
func (l Links) Enabled() bool { return len(l.secrets) > 0 }

// A token is version, channel, user id and 16 bytes of signature.
const (
	linkVersion = 1
	linkBody    = 1 + 1 + 8
	linkLength  = linkBody + 16
)

// Token returns what goes into the address of the user's link for the channel,
// given as its number; empty without a secret. It names nobody to whoever does
// not know the ids, and does not expire: an opt-out must work for as long as
// the message can be read.
func (l Links) Token(id ID, channel uint8) string {
	if !l.Enabled() {
		return ""
	}
	b := make([]byte, linkBody, linkLength)
	b[0], b[1] = linkVersion, channel
	binary.BigEndian.PutUint64(b[2:], uint64(id))
	return base64.RawURLEncoding.EncodeToString(append(b, sign(l.secrets[0], b)...))
}

// Parse returns the user and channel of a token, or [ErrLink].
func (l Links) Parse(token string) (ID, uint8, error) {
	if len(token) > 2*linkLength {
		return 0, 0, ErrLink
	}
	// Strict: the unused bits of the last letter are no second name of a link.
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != linkLength || b[0] != linkVersion {
		return 0, 0, ErrLink
	}
	body, signature := b[:linkBody], b[linkBody:]
	for _, secret := range l.secrets {
		if hmac.Equal(signature, sign(secret, body)) {
			return ID(binary.BigEndian.Uint64(body[2:])), body[1], nil
		}
	}
	return 0, 0, ErrLink
}

// sign keeps signatures of this purpose apart from whatever else the secret
// may sign one day.
func sign(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("dropbell opt-out link\x00"))
	mac.Write(body)
	return mac.Sum(nil)[:linkLength-linkBody]
}
