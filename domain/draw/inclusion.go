package draw

import (
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Inclusion proves that a row is in the sealed list, without the list: an audit path of RFC 6962, section 2.1.1.
type Inclusion struct {
	Ticket     string `json:"ticket"`
	Commitment string `json:"commitment"`
	Weight     int    `json:"weight"`
	// Position is the row's place in the list, from 0.
	Position int `json:"position"`
	// Path are the hashes from the leaf to the root, the lowest first.
	Path []string `json:"path"`
}

// Include returns the inclusion of the row at position at in chunk n, whose rows and the roots of all chunks are given.
func Include(drop int64, rows []Row, n, at int, roots []Hash) (Inclusion, error) {
	path, err := NewTree(drop, rows).Path(at)
	if err != nil {
		return Inclusion{}, err
	}
	tops := make([]tlog.Hash, len(roots))
	for i, r := range roots {
		tops[i] = tlog.Hash(r)
	}
	above, err := treeOf(tops).Path(n)
	if err != nil {
		return Inclusion{}, err
	}
	row := rows[at]
	in := Inclusion{Ticket: row.Ticket().String(), Commitment: hex.EncodeToString(row[16:48]), Weight: row.Weight(), Position: n*ChunkRows + at}
	for _, h := range append(path, above...) {
		in.Path = append(in.Path, h.String())
	}
	return in, nil
}

// Row returns the row that the inclusion is about.
func (in Inclusion) Row() (r Row, err error) {
	ticket, err := ParseTicket(in.Ticket)
	if err != nil {
		return r, err
	}
	commitment, err := ParseHash(in.Commitment)
	if err != nil {
		return r, err
	}
	if in.Weight < 1 || in.Weight > MaxWeight {
		return r, fmt.Errorf("the weight %d is not possible", in.Weight)
	}
	copy(r[:16], ticket[:])
	copy(r[16:48], commitment[:])
	r[48] = byte(in.Weight)
	return r, nil
}

// included checks the published inclusion against the sealed root, and keeps its row.
func (v *verification) included() bool {
	in := v.published.Inclusion
	if in == nil {
		return true
	}
	row, err := in.Row()
	path := make([]Hash, len(in.Path))
	for i := range path {
		if err == nil {
			path[i], err = ParseHash(in.Path[i])
		}
	}
	if err != nil || !Included(path, v.seal.Entries, in.Position, v.seal.Root, row.Leaf(v.card.Drop)) {
		v.bad("The path of the ticket %.32s does not lead to the sealed root.", in.Ticket)
		return false
	}
	v.own = &row
	v.good("The ticket %s is in the sealed list at position %d: its path leads to the sealed root.", in.Ticket, in.Position)
	return true
}
