package redeemcode

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
)

// rounds is the number of rounds of the permutation. Four rounds make a Feistel
// network a strong pseudorandom permutation in theory; small halves like these get
// ten, as in FF1 (NIST SP 800-38G).
const rounds = 10

// mixer computes keyed functions of small numbers: truncated HMAC-SHA256. It is not
// safe for concurrent use.
type mixer struct {
	mac hash.Hash
	sum []byte
	in  [9]byte
}

func newMixer(secret []byte) *mixer {
	return &mixer{mac: hmac.New(sha256.New, secret), sum: make([]byte, 0, sha256.Size)}
}

// mix returns the low bits of the function that tag names, at v.
func (m *mixer) mix(tag byte, v uint64, bits uint) uint64 {
	m.in[0] = tag
	binary.BigEndian.PutUint64(m.in[1:], v)
	m.mac.Reset()
	m.mac.Write(m.in[:])
	m.sum = m.mac.Sum(m.sum[:0])
	return binary.BigEndian.Uint64(m.sum) & (1<<bits - 1)
}

// permute maps the numbers of 2·half bits onto themselves, one to one.
func (m *mixer) permute(v uint64, half uint) uint64 {
	mask := uint64(1)<<half - 1
	left, right := v>>half&mask, v&mask
	for i := range byte(rounds) {
		left, right = right, left^m.mix(i, right, half)
	}
	return left<<half | right
}

// restore undoes permute.
func (m *mixer) restore(v uint64, half uint) uint64 {
	mask := uint64(1)<<half - 1
	left, right := v>>half&mask, v&mask
	for i := byte(rounds); i > 0; i-- {
		left, right = right^m.mix(i-1, left, half), left
	}
	return left<<half | right
}

// derived returns the secret for one use of key, so that no two uses share one.
func derived(key []byte, use string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(use))
	return m.Sum(nil)
}

// cipher is one key ready for use; it is safe for concurrent use.
type cipher struct {
	id   KeyID
	pool sync.Pool // of *pair
}

// pair holds the mixers of one goroutine.
type pair struct{ order, check *mixer }

// newCipher prepares a key. The words below are part of the meaning of every code
// ever printed: never change them.
func newCipher(id KeyID, key []byte) *cipher {
	order, check := derived(key, "dropbell redeem code order v1"), derived(key, "dropbell redeem code check v1")
	return &cipher{id: id, pool: sync.Pool{New: func() any { return &pair{newMixer(order), newMixer(check)} }}}
}

func (p *pair) seal(id KeyID, serial uint64) Code {
	body := p.order.permute(serial, SerialBits/2)
	return Code{id, body, p.check.mix(byte(id), body, CheckBits)}
}

func (p *pair) open(c Code) (serial uint64, ok bool) {
	if p.check.mix(byte(c.key), c.body, CheckBits) != c.check {
		return 0, false
	}
	return p.order.restore(c.body, SerialBits/2), true
}
