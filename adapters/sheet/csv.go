package sheet

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
)

const (
	// sniffBytes is how much of a file is looked at to find out what it is.
	sniffBytes = 64 << 10
	// rowBytes bounds what one row may take from the file: without it a quote
	// that nobody closes would swallow the rest.
	rowBytes = 1 << 20
)

type csvRows struct {
	meter *meter
	csv   *csv.Reader
}

func openCSV(r *bufio.Reader, start []byte) (source, error) {
	if bom := []byte{0xef, 0xbb, 0xbf}; bytes.HasPrefix(start, bom) {
		start = start[len(bom):]
		if _, err := r.Discard(len(bom)); err != nil {
			return nil, err
		}
	}
	m := &meter{r: r, left: rowBytes}
	c := csv.NewReader(m)
	c.Comma, c.FieldsPerRecord, c.LazyQuotes, c.ReuseRecord = delimiter(start), -1, true, true
	return &csvRows{m, c}, nil
}

func (c *csvRows) next() (int64, []string, error) {
	c.meter.left = rowBytes
	cells, err := c.csv.Read()
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return int64(wrong.StartLine), nil, ErrBadRow.Because("a quote is never closed")
	}
	if err != nil {
		return 0, nil, err
	}
	line, _ := c.csv.FieldPos(0)
	return int64(line), cells, nil
}

func (c *csvRows) close() error { return nil }

// meter refuses to read on when one row takes too much.
type meter struct {
	r    io.Reader
	left int
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, ErrTooLarge.Because("a row is longer than %d bytes; is a quote missing?", rowBytes)
	}
	n, err := m.r.Read(p)
	m.left -= n
	return n, err
}

// delimiter returns what separates the cells of the first line: the candidate
// that stands there most often outside quotes. Spreadsheets write semicolons
// where the comma is the decimal sign.
func delimiter(start []byte) rune {
	counts, quoted := map[byte]int{}, false
	for _, b := range start {
		if b == '"' {
			quoted = !quoted
		}
		if quoted {
			continue
		}
		if (b == '\n' || b == '\r') && len(counts) > 0 {
			break
		}
		if b == ',' || b == ';' || b == '\t' {
			counts[b]++
		}
	}
	best := byte(',')
	for _, b := range []byte{';', '\t'} {
		if counts[b] > counts[best] {
			best = b
		}
	}
	return rune(best)
}
