package user

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
)

// A part is the rows that are taken at once. They may be of the same users.
type part struct {
	rows  int64
	list  []person
	place map[ID]int
	again []repeat
}

// A person is one user of a part.
type person struct {
	first, merged Change
	line          int64 // of the first row
	last          CheckedRow
	// of the first row; the report
	// shows it
	digest int64
	shown  string
	// before is the last row of the user in front of the part.
	before *CheckedRow
}

// A repeat is a row of a user of whom the table had one before.
type repeat struct {
	line, after int64
	shown       string
	overwrites  bool
}

func newPart() *part { return &part{place: map[ID]int{}} }

func (p *part) add(c Change, line int64, cells []string, m Mapping) {
	p.rows++
	row := CheckedRow{ID: c.ID, Line: line, Digest: digest(cells, m)}
	at, twice := p.place[c.ID]
	if !twice {
		p.place[c.ID] = len(p.list)
		p.list = append(p.list, person{first: c, merged: c, line: line, last: row, digest: row.Digest, shown: shown(cells)})
		return
	}
	who := &p.list[at]
	p.again = append(p.again, repeat{line, who.last.Line, shown(cells), row.Digest != who.last.Digest})
	who.merged, who.last = who.merged.then(c), row
}

// follow marks a user's first row as a repeat if the table had a row of the user before
// the part.
func (p *part) follow(known []CheckedRow) {
	for _, k := range known {
		if at, ok := p.place[k.ID]; ok {
			who := &p.list[at]
			who.before = &k
			p.again = append(p.again, repeat{who.line, k.Line, who.shown, k.Digest != who.digest})
		}
	}
}

// first returns the changes of the first rows of users who have no row before the part.
func (p *part) first() (list []Change) {
	for _, who := range p.list {
		if who.before == nil {
			list = append(list, who.first)
		}
	}
	return list
}

// merged returns the changes of all rows, one per user.
func (p *part) merged() []Change {
	list := make([]Change, len(p.list))
	for i, who := range p.list {
		list[i] = who.merged
	}
	return list
}

func (p *part) lastRows() []CheckedRow {
	list := make([]CheckedRow, len(p.list))
	for i, who := range p.list {
		list[i] = who.last
	}
	return list
}

func (p *part) repeats() (all, overwrite int64) {
	for _, r := range p.again {
		if r.overwrites {
			overwrite++
		}
	}
	return int64(len(p.again)), overwrite
}

// repeatedID is the rule of the notes.
const repeatedID = "rule.repeated_id"

// IsNote reports whether the entry is only a note: the row is imported
// nevertheless.
func IsNote(e job.RowError) bool { return e.Breaks(repeatedID) }

// The values of [RowKind].
const (
	RowFailed = "failed"
	RowNoted  = "note"
)

// RowKind distinguishes a row that was refused from one that only has a note.
func RowKind(e job.RowError) string {
	if IsNote(e) {
		return RowNoted
	}
	return RowFailed
}

// notes returns a note for every repeated row; notes do not keep a row from
// being stored.
func (p *part) notes() []job.RowError {
	list := make([]job.RowError, len(p.again))
	for i, r := range p.again {
		e := &fault.Fields{}
		e.Add("", repeatedID, "the id of line %d appears again on line %d; the last one counts", r.after, r.line)
		list[i] = job.RowFailed(r.line, r.shown, e)
	}
	return list
}

// digest is equal for rows that say the same in the columns that are read.
func digest(cells []string, m Mapping) int64 {
	sum := sha256.New()
	for i, t := range m {
		if t != Ignored && i < len(cells) {
			_, _ = io.WriteString(sum, strings.TrimSpace(cells[i]))
		}
		_, _ = sum.Write([]byte{0})
	}
	return int64(binary.LittleEndian.Uint64(sum.Sum(nil)))
}
