// Package pass holds the passes of protected drops. A user earns a pass before the rush, by a
// puzzle, a service, an attestation of the shop or a code to the user's phone. A claim or an entry
// shows the pass, whose check is one HMAC: nothing is solved, called or looked up in the rush.
package pass

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"
	"sync"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Way is how a user earned a pass.
type Way byte

// The ways. [Link] is the reader's own link in a message, which leads to a page that claims.
const (
	Puzzle Way = iota + 1
	Service
	Attested
	Phone
	Link
)

var wayNames = map[Way]string{Puzzle: "puzzle", Service: "token", Attested: "attested", Phone: "phone_code", Link: "link"}

func (w Way) String() string { return wayNames[w] }

// Enough reports whether a pass that was earned this way is accepted by a drop with this
// protection. A strict drop accepts no puzzle, which a script solves at a price, and no link.
func (w Way) Enough(p template.Protection) bool {
	return p != template.Strict || w != Puzzle && w != Link
}

// Faults of this room.
var (
	// ErrRequired is the refusal of a claim or an entry without a valid pass.
	ErrRequired = fault.New(fault.Denied, "pass_required", "this drop needs a pass; get one by POST /passes/{template_id} and send it as pass")
	// ErrRefused is the refusal of evidence for a pass.
	ErrRefused = fault.New(fault.Invalid, "pass_refused", "the evidence is wrong, expired or another user's; ask for a new puzzle")
	// ErrOff is returned where no pass can be issued.
	ErrOff = fault.New(fault.Conflict, "passes_not_configured", "this server has no key for passes; set PASS_SECRET")
	// ErrUnreachable means that the service behind SITEVERIFY_URL gave no answer.
	ErrUnreachable = fault.New(fault.Unavailable, "overloaded", "the service that checks tokens does not answer; try again, or earn the pass in another way")
)

// A Pass is a right to claim in one drop.
type Pass struct {
	Way Way
	// IssuedAt is when the pass was earned, in whole milliseconds.
	IssuedAt time.Time
	// Opened is how long before IssuedAt the puzzle was handed out, or the page of the link was
	// opened; 0 = it is not known.
	Opened    time.Duration
	ExpiresAt time.Time // a whole second
}

// Keys sign passes and puzzles. The zero value signs and accepts nothing.
type Keys struct{ list []*key }

type key struct {
	passes  sync.Pool // of *mac
	puzzles []byte
	signs   []byte
}

// mac is a reusable state of HMAC-SHA-256 with its buffers.
type mac struct {
	hash.Hash
	in  [payloadSize + 16]byte
	sum [sha256.Size]byte
}

// NewKeys returns keys that are derived from secrets, which are separated by commas. The first
// signs; all are accepted, so that a secret can be replaced.
func NewKeys(secrets string) (k Keys) {
	for s := range strings.SplitSeq(secrets, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		passes := derived(s, "passes of drops")
		one := &key{puzzles: derived(s, "puzzles of drops"), signs: derived(s, "signs of claims")}
		one.passes.New = func() any { return &mac{Hash: hmac.New(sha256.New, passes)} }
		k.list = append(k.list, one)
	}
	return k
}

func derived(secret, purpose string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(purpose))
	return h.Sum(nil)
}

// Enabled reports whether passes can be signed.
func (k Keys) Enabled() bool { return len(k.list) > 0 }

const (
	version     = 1
	payloadSize = 1 + 1 + 8 + 4 + 4
	sumSize     = 16
	// MaxText is the length of a pass as text.
	MaxText = (payloadSize+sumSize)*4/3 + 2
)

// Issue returns the text of the pass for the user and the drop. It needs a key.
func (k Keys) Issue(p Pass, by user.ID, templateID int64) string {
	var b [payloadSize + sumSize]byte
	b[0], b[1] = version, byte(p.Way)
	binary.BigEndian.PutUint64(b[2:], uint64(p.IssuedAt.UnixMilli()))
	binary.BigEndian.PutUint32(b[10:], uint32(min(max(p.Opened.Milliseconds(), 0), 1<<32-1)))
	binary.BigEndian.PutUint32(b[14:], uint32(p.ExpiresAt.Unix()))
	sum := k.list[0].sum((*[payloadSize]byte)(b[:payloadSize]), by, templateID)
	copy(b[payloadSize:], sum[:sumSize])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (k *key) sum(payload *[payloadSize]byte, by user.ID, templateID int64) [sha256.Size]byte {
	m := k.passes.Get().(*mac)
	m.Reset()
	copy(m.in[:], payload[:])
	binary.BigEndian.PutUint64(m.in[payloadSize:], uint64(by))
	binary.BigEndian.PutUint64(m.in[payloadSize+8:], uint64(templateID))
	m.Write(m.in[:])
	m.Sum(m.sum[:0])
	sum := m.sum
	k.passes.Put(m)
	return sum
}

// Check returns the pass that the text is, if it is the user's pass for the drop and has not
// expired. Otherwise it returns [ErrRequired].
func (k Keys) Check(text string, by user.ID, templateID int64, now time.Time) (Pass, error) {
	var b [payloadSize + sumSize]byte
	if len(text) != base64.RawURLEncoding.EncodedLen(len(b)) {
		return Pass{}, ErrRequired
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(text)); err != nil || b[0] != version {
		return Pass{}, ErrRequired
	}
	p := Pass{Way: Way(b[1]), IssuedAt: time.UnixMilli(int64(binary.BigEndian.Uint64(b[2:]))).UTC(),
		Opened:    time.Duration(binary.BigEndian.Uint32(b[10:])) * time.Millisecond,
		ExpiresAt: time.Unix(int64(binary.BigEndian.Uint32(b[14:])), 0).UTC()}
	if !now.Before(p.ExpiresAt) {
		return Pass{}, ErrRequired
	}
	for _, one := range k.list {
		if sum := one.sum((*[payloadSize]byte)(b[:payloadSize]), by, templateID); hmac.Equal(sum[:sumSize], b[payloadSize:]) {
			return p, nil
		}
	}
	return Pass{}, ErrRequired
}

// Admit returns nil if the drop is not protected, or the text is a pass that is enough for it.
// Otherwise it returns [ErrRequired], or
// [ErrOff] without a key. Claims and entries call it.
func (k Keys) Admit(t *template.Template, by user.ID, text string, now time.Time) error {
	if !t.Protected() {
		return nil
	}
	if !k.Enabled() {
		return ErrOff
	}
	p, err := k.Check(text, by, t.ID, now)
	if err == nil && !p.Way.Enough(t.Protection) {
		err = ErrRequired.Because("this drop needs more than a puzzle; send a token, an attestation or a code from the phone to POST /passes/{template_id}")
	}
	return err
}

// Sign returns the keyed hash of a sign of a claim, such as a network: the first 64 bits of an
// HMAC, never 0. An empty text is 0.
func (k Keys) Sign(kind, text string) int64 {
	if text == "" || len(k.list) == 0 {
		return 0
	}
	h := hmac.New(sha256.New, k.list[0].signs)
	h.Write([]byte(kind + "\x00" + text))
	return max(1, int64(binary.BigEndian.Uint64(h.Sum(nil))>>1))
}

// After is how long a pass is valid after it was earned, and after the opening if it was earned
// before.
const After = 30 * time.Minute

// expiry returns the whole second at which a pass that is earned now ends.
func expiry(t *template.Template, now time.Time) time.Time {
	from := now
	if t.OpensAt.After(from) {
		from = t.OpensAt
	}
	return from.Add(After).Truncate(time.Second).UTC()
}
