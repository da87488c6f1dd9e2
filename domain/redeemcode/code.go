// Package redeemcode holds the codes that users redeem for a coupon: how a serial
// number becomes a code that cannot be guessed, how batches of codes are made, and
// how a code is redeemed.
//
// A code is derived from its serial number and a key; it is not stored. The key can
// generate every code that was or will be sold, so it must be kept secret. The
// database alone reveals no code.
package redeemcode

import (
	"strings"
	"unicode/utf8"

	"dropbell/domain/fault"
)

// A code has sixteen symbols of five bits: one names the key, eight are the
// serial number under the key's permutation, seven are the check value.
const (
	symbols      = 16
	groupOf      = 4
	symbolBits   = 5
	bodySymbols  = 8
	checkSymbols = 7

	// SerialBits is the size of a serial number.
	SerialBits = bodySymbols * symbolBits
	// CheckBits is the size of the check value. An invented or mistyped code passes
	// with a probability of 2^-35, one in 34 billion. Its serial number must then
	// also be one that was issued: with a million codes on sale, one guess in
	// 3.8·10^16 (2^55) is a code.
	CheckBits = checkSymbols * symbolBits
)

// alphabet is Crockford's: no I, L, O, and no U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Faults of reading and using codes. A code that was never sold gets the same
// answer as a mistyped code, whatever the reason.
var (
	ErrInvalid = fault.New(fault.Invalid, "code_invalid", "this is not a valid code; check what was typed")
	ErrUsed    = fault.New(fault.Conflict, "code_used", "this code was used before, and each works once; use another code")
)

// A Code is sixteen symbols, which are a valid code only if [Keyring.Serial]
// accepts them. The zero Code is never valid.
type Code struct {
	key   KeyID
	body  uint64
	check uint64
}

// Key returns the number of the key that the code claims to be made with.
func (c Code) Key() KeyID { return c.key }

// Text returns the code as text: XXXX-XXXX-XXXX-XXXX.
func (c Code) Text() string { return string(c.append(make([]byte, 0, symbols+symbols/groupOf-1))) }

// append writes the code's text to b.
func (c Code) append(b []byte) []byte {
	for i := range symbols {
		if i > 0 && i%groupOf == 0 {
			b = append(b, '-')
		}
		b = append(b, alphabet[c.symbol(i)])
	}
	return b
}

func (c Code) symbol(i int) uint64 {
	switch {
	case i == 0:
		return uint64(c.key) & 31
	case i <= bodySymbols:
		return c.body >> (symbolBits * (bodySymbols - i)) & 31
	}
	return c.check >> (symbolBits * (symbols - 1 - i)) & 31
}

// String keeps codes out of logs and messages; see [Code.Text].
func (c Code) String() string { return "(a redeem code)" }

// GoString is String for the verb %#v.
func (c Code) GoString() string { return c.String() }

// maxTyped bounds the input that is read, in bytes: enough for sixteen full-width
// symbols with as many other characters between them.
const maxTyped = 200

// Parse reads a typed code: in any case, with or without dashes and spaces, with
// similar letters, half or full width. It returns [ErrInvalid] for a text that does
// not have the form of a code.
func Parse(typed string) (Code, error) {
	var c Code
	if len(typed) > maxTyped || !utf8.ValidString(typed) {
		return c, ErrInvalid
	}
	n := 0
	for _, r := range typed {
		r = halfWidth(r)
		if separates(r) {
			continue
		}
		v := value(r)
		if v < 0 || n == symbols {
			return Code{}, ErrInvalid
		}
		c = c.with(n, uint64(v))
		n++
	}
	if n != symbols {
		return Code{}, ErrInvalid
	}
	return c, nil
}

func (c Code) with(i int, v uint64) Code {
	switch {
	case i == 0:
		c.key = KeyID(v)
	case i <= bodySymbols:
		c.body = c.body<<symbolBits | v
	default:
		c.check = c.check<<symbolBits | v
	}
	return c
}

// halfWidth turns what Chinese and Japanese keyboards produce into ASCII.
func halfWidth(r rune) rune {
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	return r
}

// separates reports whether r only divides a code into groups.
func separates(r rune) bool {
	return strings.ContainsRune("-_ \t\r\n\u00a0\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u3000\u30fc\u200b\ufeff", r)
}

// value returns the number of a symbol, or -1.
func value(r rune) int {
	if r >= 'a' && r <= 'z' {
		r -= 'a' - 'A'
	}
	switch r {
	case 'I', 'L':
		return 1
	case 'O':
		return 0
	case 'U':
		r = 'V'
	}
	if r > 'Z' {
		return -1
	}
	return strings.IndexRune(alphabet, r)
}
