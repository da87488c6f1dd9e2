package feedback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"dropbell/domain/user"
)

// A Ref names one message: the batch that it was sent for and its recipient.
type Ref struct {
	Batch int64
	User  user.ID
}

// Refs writes and reads the signed text of a [Ref]. Providers get this text with a message and
// name it in their reports. The zero value writes "" and accepts no text.
type Refs struct{ keys [][]byte }

// refSignature is its length in bytes: a guess in 2^64 could report one message.
const refSignature = 8

// refText has no upper-case letters, since mail servers may change the case of a sender's
// address. Its characters need no escaping in addresses and URLs.
var refText = base32.HexEncoding.WithPadding(base32.NoPadding)

// NewRefs returns refs for secrets, a list separated by commas. Texts are signed with the first
// secret; signatures of all secrets are accepted.
func NewRefs(secrets string) (r Refs) {
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s != "" {
			// A key of its own, so that no signature made for another purpose fits.
			h := hmac.New(sha256.New, []byte(s))
			h.Write([]byte("references of messages"))
			r.keys = append(r.keys, h.Sum(nil))
		}
	}
	return r
}

// Enabled reports whether references can be written.
func (r Refs) Enabled() bool { return len(r.keys) > 0 }

// Text returns the signed text of a message's reference: at most 45 characters of a-v and 0-9; ""
// without a secret.
func (r Refs) Text(of Ref) string {
	if len(r.keys) == 0 {
		return ""
	}
	b := binary.AppendUvarint(make([]byte, 0, 2*binary.MaxVarintLen64+refSignature), uint64(of.Batch))
	b = binary.AppendUvarint(b, uint64(of.User))
	return strings.ToLower(refText.EncodeToString(append(b, sign(r.keys[0], b)...)))
}

// Parse reads the text that [Refs.Text] returned, in upper or lower case. It returns false if the
// text is not signed with any of the secrets.
func (r Refs) Parse(text string) (Ref, bool) {
	b, err := refText.DecodeString(strings.ToUpper(text))
	if err != nil || len(b) <= refSignature {
		return Ref{}, false
	}
	body, signature := b[:len(b)-refSignature], b[len(b)-refSignature:]
	batch, n := binary.Uvarint(body)
	if n <= 0 {
		return Ref{}, false
	}
	id, m := binary.Uvarint(body[n:])
	if m <= 0 || n+m != len(body) {
		return Ref{}, false
	}
	for _, key := range r.keys {
		if hmac.Equal(signature, sign(key, body)) {
			return Ref{int64(batch), user.ID(id)}, true
		}
	}
	return Ref{}, false
}

func sign(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return h.Sum(nil)[:refSignature]
}
