// Package sheet reads uploaded tables, CSV or XLSX, row by row. A file of a million rows needs
// no more memory than a file of ten rows.
package sheet

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/job"
)

// Faults of files and of single rows.
var (
	// ErrUnreadable is the refusal of a file that is neither CSV nor XLSX, or is damaged.
	ErrUnreadable = job.ErrUnreadable
	// ErrTooLarge is the refusal of a file that is beyond the limits.
	ErrTooLarge = fault.New(fault.Invalid, "sheet_too_large", "the file is too large; divide it")
	// ErrBadRow is the error of one row; the next rows can be read.
	ErrBadRow = fault.New(fault.Invalid, "sheet_bad_row", "the row cannot be read")
)

// Limits bound the memory and the work that a file may cause. Zero means the default.
type Limits struct {
	Rows     int64 // rows, blank ones included; default 20,000,000
	Columns  int   // cells of a row; default 100
	Cell     int   // bytes of a cell; default 4 KiB
	Workbook int64 // bytes of an XLSX file; default 32 MiB
	Unpacked int64 // bytes of an XLSX file once unpacked; default 256 MiB
}

func (l Limits) withDefaults() Limits {
	set := func(v *int64, most int64) {
		if *v <= 0 {
			*v = most
		}
	}
	set(&l.Rows, 20_000_000)
	set(&l.Workbook, 32<<20)
	set(&l.Unpacked, 256<<20)
	if l.Columns <= 0 {
		l.Columns = 100
	}
	if l.Cell <= 0 {
		l.Cell = 4 << 10
	}
	return l
}

// The first bytes of a workbook (xlsx) and of an old workbook (xls).
const (
	zipStart = "PK\x03\x04"
	xlsStart = "\xd0\xcf\x11\xe0"
)

// A source yields the raw rows of one kind of file.
type source interface {
	// next returns the row's line or number, counted from 1, and its cells, which are valid
	// until the next call. It returns [io.EOF] after the last row. After [ErrBadRow] the next
	// row can be read.
	next() (line int64, cells []string, err error)
	// skip continues after the position of another reader of the file.
	skip(p place) error
	// at is the place behind the last row.
	at() place
	format() job.Format
	close() error
}

// place is a position at which reading can resume.
type place struct {
	Offset int64 `json:"offset,omitempty"` // bytes; 0 if that means nothing
	Line   int64 `json:"line"`             // of the last row's end
	Rows   int64 `json:"rows"`
	// Skip is how many bytes of text lie between Offset and the place.
	Skip int64 `json:"skip,omitempty"`
	// Encoding, Ambiguous and Sheet are the decisions at the beginning of the file.
	Encoding  string `json:"encoding,omitempty"`
	Ambiguous bool   `json:"ambiguous,omitempty"`
	Sheet     int    `json:"sheet,omitempty"`
}

// A Reader yields the rows of one file. It is not safe for concurrent use.
type Reader struct {
	rows   source
	limits Limits
	count  int64
	// decoded: the text was in another encoding than UTF-8.
	decoded bool
}

// Open detects the format of the file; see [Resume].
func Open(r io.Reader, l Limits) (*Reader, error) { return open(r, l, job.Reading{}, place{}) }

func open(r io.Reader, l Limits, how job.Reading, from place) (*Reader, error) {
	l = l.withDefaults()
	head := bufio.NewReaderSize(r, sniffBytes)
	start, err := head.Peek(sniffBytes)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var rows source
	switch {
	case bytes.HasPrefix(start, []byte(zipStart)):
		rows, err = openWorkbook(r, head, l, cmp.Or(from.Sheet, how.Sheet))
	case bytes.HasPrefix(start, []byte(xlsStart)):
		return nil, because(ErrUnreadable, "rule.file_xls", "this is an old XLS file or has a password; save it as XLSX or CSV")
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}), bytes.HasPrefix(start, []byte{0xfe, 0xff}), bytes.IndexByte(start, 0) >= 0:
		return nil, because(ErrUnreadable, "rule.file_encoding", "the file is not text in UTF-8; save it as “CSV UTF-8” or XLSX")
	default:
		rows, err = openCSV(r, head, start, how, from)
	}
	if err != nil {
		return nil, err
	}
	encoding := rows.format().Encoding
	return &Reader{rows: rows, limits: l, decoded: encoding != "" && encoding != job.UTF8}, nil
}

// Resume opens the file, read as how says, and continues after a position of [Reader.Position];
// an empty position is the beginning. Continuing a CSV file costs nothing; an XLSX file is read
// again up to the position. Resume returns [ErrUnreadable], [ErrTooLarge] or an error of r. It
// does not close r.
func Resume(r io.ReadSeeker, l Limits, how job.Reading, position json.RawMessage) (*Reader, error) {
	var p place
	if len(position) > 0 {
		if err := json.Unmarshal(position, &p); err != nil {
			return nil, fmt.Errorf("position in a table: %w", err)
		}
	}
	s, err := open(r, l, how, p)
	if err != nil || len(position) == 0 {
		return s, err
	}
	if err := s.rows.skip(p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.count = p.Rows
	return s, nil
}

// Format returns the detected format of the file; see [job.Formatted].
func (r *Reader) Format() job.Format { return r.rows.format() }

// Position is where [Resume] continues: after the last row that Next returned.
func (r *Reader) Position() json.RawMessage {
	p := r.rows.at()
	p.Rows = r.count
	raw, _ := json.Marshal(p) // numbers and a name
	return raw
}

// Broken reports whether nothing can be read after err.
func (r *Reader) Broken(err error) bool { return err != nil && !errors.Is(err, ErrBadRow) }

// Next returns the next row that is not blank: its line in the file, counted from 1, and its
// cells without surrounding white space. The cells are valid until the next call. After the last
// row Next returns [io.EOF]. After an [ErrBadRow] the next row can be read. No row follows
// [ErrTooLarge], [ErrUnreadable] and errors of the underlying reader.
func (r *Reader) Next() (line int64, cells []string, err error) {
	for {
		line, cells, err = r.rows.next()
		if err == io.EOF {
			return 0, nil, err
		}
		if r.count++; r.count > r.limits.Rows {
			return line, nil, because(ErrTooLarge, "rule.file_rows", "the file has more than %d rows; divide it into several", r.limits.Rows)
		}
		if err != nil {
			return line, nil, err
		}
		if err := r.check(cells); err != nil {
			return line, nil, err
		}
		if !blank(cells) {
			return line, cells, nil
		}
	}
}

// Close frees the resources of reading, such as temporary files.
func (r *Reader) Close() error { return r.rows.close() }

// check tidies the cells and returns [ErrBadRow] if one of them cannot be used.
func (r *Reader) check(cells []string) error {
	if len(cells) > r.limits.Columns {
		return because(ErrBadRow, "rule.row_columns", "the row has %d columns; at most %d are read", len(cells), r.limits.Columns)
	}
	for i, c := range cells {
		switch {
		case len(c) > r.limits.Cell:
			return because(ErrBadRow, "rule.cell_size", "column %d is longer than %d bytes; shorten it", i+1, r.limits.Cell)
		case r.decoded && strings.ContainsRune(c, utf8.RuneError):
			return because(ErrBadRow, "rule.cell_decoding", "column %d is not text in the file's encoding; choose another one, or save the file as “CSV UTF-8” or XLSX", i+1)
		case !utf8.ValidString(c) || strings.IndexByte(c, 0) >= 0:
			return because(ErrBadRow, "rule.cell_encoding", "column %d is not text in UTF-8; save the file as “CSV UTF-8” or XLSX", i+1)
		}
		cells[i] = strings.TrimSpace(c)
	}
	return nil
}

func blank(cells []string) bool {
	for _, c := range cells {
		if c != "" {
			return false
		}
	}
	return true
}
