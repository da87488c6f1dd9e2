package reminder

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"
	"sync"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Links makes and reads the tokens of tracked links in messages about a drop. A tracked link
// leads one recipient to the claim address and is counted. The zero value makes no tokens and
// accepts none.
type Links struct{ keys []*linkKey }

// NewLinks returns links for secrets, a list separated by commas. Tokens are made with the first
// secret; tokens of all secrets are accepted.
func NewLinks(secrets string) Links {
	var l Links
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s != "" {
			l.keys = append(l.keys, newLinkKey(s))
		}
	}
	return l
}

// LinkPath is where the links live below the public address.
const LinkPath = "/d/"

// A Reader is whose link it is, and the message it stood in.
type Reader struct {
	TemplateID int64
	UserID     user.ID
	// Slot is the slot of a reminder; 0 = the correction of an opening.
	Slot    template.Slot
	Channel delivery.Channel
}

// A token is 8 bytes of signature and an encrypted body: slot and channel in one byte, the drop
// in 3 bytes, the user in 5 bytes. Numbers that need more take 8 bytes each. The signature is
// also the initial value of the encryption (a synthetic IV, as in RFC 5297): equal readers have
// equal tokens, and a token reveals nothing of the user id. One guess in 2^64 would count one
// opening; it could not lead to another address.
const (
	linkSignature = 8
	linkNarrow    = 1 + 3 + 5
	linkWide      = 1 + 8 + 8
)

// Enabled reports whether links can be made.
func (l Links) Enabled() bool { return len(l.keys) > 0 }

// Token returns the part of the link's address that identifies the reader; empty without a
// secret.
func (l Links) Token(r Reader) string {
	if !l.Enabled() {
		return ""
	}
	var raw [linkSignature + linkWide]byte
	body := appendReader(raw[:linkSignature], r)[linkSignature:]
	return l.seal(raw[:linkSignature+len(body)])
}

// seal signs and encrypts the body that follows the room for the signature.
func (l Links) seal(raw []byte) string {
	k, body := l.keys[0], raw[linkSignature:]
	k.sign(raw[:linkSignature], body)
	k.encrypt(raw[:linkSignature], body)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Parse returns whose link it is, or [user.ErrLink].
func (l Links) Parse(token string) (Reader, error) {
	if len(token) > base64.RawURLEncoding.EncodedLen(linkSignature+linkWide) {
		return Reader{}, user.ErrLink
	}
	// Strict: the unused bits of the last letter are no second name of a link.
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < linkSignature+linkNarrow {
		return Reader{}, user.ErrLink
	}
	signature, sealed := raw[:linkSignature], raw[linkSignature:]
	for _, k := range l.keys {
		body := append([]byte{}, sealed...)
		k.encrypt(signature, body)
		var want [linkSignature]byte
		if k.sign(want[:], body); !hmac.Equal(signature, want[:]) {
			continue
		}
		if r, ok := readerOf(body); ok {
			return r, nil
		}
	}
	return Reader{}, user.ErrLink
}

// Addresses returns the function that makes links under the public address; nil without a secret.
func (l Links) Addresses(public string) func(Reader) string {
	if !l.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(public, "/") + LinkPath
	return func(r Reader) string { return base + l.Token(r) }
}

// Example returns a link for previews. It is as long as the reader's link and is never counted;
// "" without a secret.
func (l Links) Example(public string, r Reader) string {
	if !l.Enabled() {
		return ""
	}
	var raw [linkSignature + linkWide]byte
	body := appendReader(raw[:linkSignature], r)[linkSignature:]
	user := body[len(body)-5:]
	if r.UserID>>40 != 0 {
		user = body[len(body)-8:]
	}
	clear(user)
	return strings.TrimSuffix(public, "/") + LinkPath + l.seal(raw[:linkSignature+len(body)])
}

// Page returns the link to the drop for every reader, which is never counted; "" without a secret.
func (l Links) Page(public string) func(templateID int64) string {
	address := l.Addresses(public)
	return func(templateID int64) string {
		if address == nil {
			return ""
		}
		return address(Reader{TemplateID: templateID})
	}
}

// InMessages is [Links.Addresses] for the reader of a message about s.
func (l Links) InMessages(public string) func(s *delivery.Subject, c delivery.Channel, id user.ID) string {
	address := l.Addresses(public)
	if address == nil {
		return nil
	}
	return func(s *delivery.Subject, c delivery.Channel, id user.ID) string {
		return address(Reader{TemplateID: s.TemplateID, UserID: id, Slot: template.Slot(s.Slot), Channel: c})
	}
}

func appendReader(b []byte, r Reader) []byte {
	var n [8]byte
	b = append(b, byte(r.Slot)<<4|byte(r.Channel))
	for _, part := range [2]struct {
		n     uint64
		bytes int
	}{{uint64(r.TemplateID), 3}, {uint64(r.UserID), 5}} {
		if part.n>>(8*part.bytes) != 0 {
			part.bytes = 8
		}
		binary.BigEndian.PutUint64(n[:], part.n)
		b = append(b, n[8-part.bytes:]...)
	}
	return b
}

func readerOf(b []byte) (r Reader, ok bool) {
	drop := 3
	switch len(b) {
	case linkNarrow, 1 + 3 + 8:
	case 1 + 8 + 5, linkWide:
		drop = 8
	default:
		return r, false
	}
	number := func(part []byte) (n uint64) {
		for _, c := range part {
			n = n<<8 | uint64(c)
		}
		return n
	}
	r.Slot, r.Channel = template.Slot(b[0]>>4), delivery.Channel(b[0]&15)
	r.TemplateID, r.UserID = int64(number(b[1:1+drop])), user.ID(number(b[1+drop:]))
	return r, r.Channel.Valid()
}

// A linkKey is a prepared secret. It is safe for concurrent use and reuses its hash states.
type linkKey struct {
	prepared sync.Pool // of *linkHash
	block    cipher.Block
}

// linkHash is a hash with room for its sum and for a block of the key stream.
type linkHash struct {
	mac     hash.Hash
	sum     [sha256.Size]byte
	counter [aes.BlockSize]byte
	stream  [aes.BlockSize]byte
}

// Purposes keep the two keys of a secret apart from each other and from all others.
const (
	linkSigned    = "dropbell drop link"
	linkEncrypted = "dropbell drop link, encrypted"
)

func newLinkKey(secret string) *linkKey {
	derive := func(purpose string) []byte {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
	signing := derive(linkSigned)
	block, err := aes.NewCipher(derive(linkEncrypted)[:16])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return &linkKey{block: block, prepared: sync.Pool{New: func() any { return &linkHash{mac: hmac.New(sha256.New, signing)} }}}
}

// sign puts the signature of body into out.
func (k *linkKey) sign(out, body []byte) {
	h := k.prepared.Get().(*linkHash)
	defer k.prepared.Put(h)
	h.mac.Reset()
	h.mac.Write(body)
	copy(out, h.mac.Sum(h.sum[:0])[:linkSignature])
}

// encrypt encrypts or decrypts body in place, from the initial value.
func (k *linkKey) encrypt(initial, body []byte) {
	h := k.prepared.Get().(*linkHash)
	defer k.prepared.Put(h)
	copy(h.counter[:], initial)
	for i := 0; i < len(body); i += aes.BlockSize {
		h.counter[aes.BlockSize-1] = byte(i / aes.BlockSize)
		k.block.Encrypt(h.stream[:], h.counter[:])
		for j := i; j < min(i+aes.BlockSize, len(body)); j++ {
			body[j] ^= h.stream[j-i]
		}
	}
}
