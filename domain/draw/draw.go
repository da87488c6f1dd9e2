// Package draw holds the rules of draws that anybody can recompute: the protocol dropbell-draw/1,
// which docs/fair.md describes with test vectors. An entry has a random ticket. After the entries
// close, the sorted list of tickets is sealed by the root of a Merkle tree. A random value that
// nobody knew at that instant then gives every ticket a score, and the tickets with the least
// scores win. The list, the seal and the random value determine the winners.
//
// The package does no I/O. Sources of randomness are judged behind the interface [Judge].
package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Protocol is the name and version of the protocol. It begins every signed text and the seed.
const Protocol = "dropbell-draw/1"

const (
	// MaxWeight is the greatest weight of an entry.
	MaxWeight = 10
	// MaxEntries is the greatest number of entries of a draw.
	MaxEntries = 20_000_000
	// ChunkRows is the number of rows of a chunk of the public list. The last chunk may have fewer.
	ChunkRows = 65_536
	// RowSize is the size of a row of the public list in bytes.
	RowSize = 16 + 32 + 1
)

// Ticket is the random number of an entry. It is public.
type Ticket [16]byte

func (t Ticket) String() string { return hex.EncodeToString(t[:]) }

// ParseTicket reads a ticket from 32 hexadecimal digits.
func ParseTicket(text string) (t Ticket, err error) { return t, decodeHex(t[:], text) }

// Salt keeps the user of an entry from being guessed. Only the server and the user know it.
type Salt [16]byte

func (s Salt) String() string { return hex.EncodeToString(s[:]) }

// Hash is a value of SHA-256: a score, a root or a seed.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads a hash from 64 hexadecimal digits.
func ParseHash(text string) (h Hash, err error) { return h, decodeHex(h[:], text) }

// decodeHex fills to from lower-case hexadecimal digits; upper-case digits would give one value two texts.
func decodeHex(to []byte, text string) error {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(to) || strings.ToLower(text) != text {
		return fmt.Errorf("%.80q is not %d lower-case hexadecimal digits", text, 2*len(to))
	}
	copy(to, raw)
	return nil
}

// Entry is a user's part in a draw.
type Entry struct {
	UserID int64
	Ticket Ticket
	Salt   Salt
	// Weight is the number of scores of the ticket, 1 to [MaxWeight]. The least one counts.
	Weight int
}

// Commitment is SHA-256(user ‖ salt), with the user's number as 8 bytes, big endian. It binds a
// ticket to its user and does not name the user.
func (e Entry) Commitment() Hash {
	var in [8 + 16]byte
	binary.BigEndian.PutUint64(in[:8], uint64(e.UserID))
	copy(in[8:], e.Salt[:])
	return sha256.Sum256(in[:])
}

// Row returns the entry's row in the public list.
func (e Entry) Row() Row {
	var r Row
	commitment := e.Commitment()
	copy(r[:16], e.Ticket[:])
	copy(r[16:48], commitment[:])
	r[48] = byte(e.Weight)
	return r
}

// Row is an entry in the public list: ticket ‖ commitment ‖ weight.
type Row [RowSize]byte

// Ticket returns the row's ticket.
func (r *Row) Ticket() Ticket { return Ticket(r[:16]) }

// Weight returns the row's weight.
func (r *Row) Weight() int { return int(r[48]) }

// Leaf is the row's leaf in the tree of a drop: SHA-256(0x00 ‖ drop ‖ ticket ‖ commitment ‖
// weight), with the drop's number as 8 bytes, big endian.
func (r *Row) Leaf(drop int64) Hash {
	var in [1 + 8 + RowSize]byte
	binary.BigEndian.PutUint64(in[1:9], uint64(drop))
	copy(in[9:], r[:])
	return sha256.Sum256(in[:])
}

// ErrList is wrapped by errors about a public list that breaks the protocol's rules.
var ErrList = errors.New("the list of tickets is not valid")

// Rows reads rows from a chunk of the public list, or from several chunks in their order.
func Rows(chunks ...[]byte) ([]Row, error) {
	var rows []Row
	for i, chunk := range chunks {
		last := i == len(chunks)-1
		if len(chunk)%RowSize != 0 || len(chunk) > ChunkRows*RowSize || !last && len(chunk) < ChunkRows*RowSize {
			return nil, fmt.Errorf("%w: chunk %d has %d bytes", ErrList, i, len(chunk))
		}
		for at := 0; at < len(chunk); at += RowSize {
			rows = append(rows, Row(chunk[at:at+RowSize]))
		}
	}
	return rows, nil
}

// Chunks is the number of chunks of a list of n rows.
func Chunks(n int) int { return (n + ChunkRows - 1) / ChunkRows }

// Chunk returns chunk i of the public list, whose rows are sorted.
func Chunk(rows []Row, i int) []byte {
	rows = rows[i*ChunkRows : min((i+1)*ChunkRows, len(rows))]
	out := make([]byte, 0, len(rows)*RowSize)
	for i := range rows {
		out = append(out, rows[i][:]...)
	}
	return out
}

// SortRows sorts rows by their tickets and returns [ErrList] if two have the same ticket.
func SortRows(rows []Row) error {
	order := sorted(len(rows), func(i uint32) uint64 { return binary.BigEndian.Uint64(rows[i][:8]) },
		func(a, b uint32) int { return bytes.Compare(rows[a][:16], rows[b][:16]) })
	out := make([]Row, len(rows))
	share(len(rows), func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = rows[order[i]]
		}
	})
	copy(rows, out)
	return Valid(rows, MaxWeight)
}

// Valid returns [ErrList] unless the tickets rise strictly and all weights are between 1 and
// maxWeight.
func Valid(rows []Row, maxWeight int) error {
	if len(rows) > MaxEntries {
		return fmt.Errorf("%w: it has %d rows, and %d are allowed", ErrList, len(rows), MaxEntries)
	}
	for i := range rows {
		if w := rows[i].Weight(); w < 1 || w > maxWeight {
			return fmt.Errorf("%w: the ticket %v has the weight %d, and 1 to %d are allowed", ErrList, rows[i].Ticket(), w, maxWeight)
		}
		if i > 0 && bytes.Compare(rows[i-1][:16], rows[i][:16]) >= 0 {
			return fmt.Errorf("%w: the ticket %v at position %d does not follow the ticket before it", ErrList, rows[i].Ticket(), i)
		}
	}
	return nil
}

// Find returns the position of ticket in the sorted rows.
func Find(rows []Row, ticket Ticket) (int, bool) {
	low, high := 0, len(rows)
	for low < high {
		if mid := (low + high) / 2; bytes.Compare(rows[mid][:16], ticket[:]) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(rows) && rows[low].Ticket() == ticket
}
