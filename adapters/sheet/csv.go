package sheet

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"dropbell/domain/job"
)

const (
	// sniffBytes is how much of a file is looked at to find out what it is.
	sniffBytes = 64 << 10
	// rowBytes bounds what one row may take from the file: without it a quote
	// that nobody closes would swallow the rest.
	rowBytes = 1 << 20
)

type csvRows struct {
	file  io.Reader
	comma rune
	meter *meter
	csv   *csv.Reader
	// from and lines are where in the file this reader began, end is the line
	// where the last row ended.
	from, lines, end int64
}

func openCSV(file io.Reader, r *bufio.Reader, start []byte) (source, error) {
	c := &csvRows{file: file}
	if bom := []byte{0xef, 0xbb, 0xbf}; bytes.HasPrefix(start, bom) {
		start, c.from = start[len(bom):], int64(len(bom))
		if _, err := r.Discard(len(bom)); err != nil {
			return nil, err
		}
	}
	c.comma = delimiter(start)
	c.read(r)
	return c, nil
}

func (c *csvRows) read(r io.Reader) {
	c.meter = &meter{r: r, left: rowBytes}
	c.csv = csv.NewReader(c.meter)
	c.csv.Comma, c.csv.FieldsPerRecord, c.csv.LazyQuotes, c.csv.ReuseRecord = c.comma, -1, true, true
}

func (c *csvRows) next() (int64, []string, error) {
	c.meter.left = rowBytes
	cells, err := c.csv.Read()
	if err == nil && c.meter.ended {
		last := len(cells) - 1
		if strings.Contains(cells[last], endMark) {
			if last == 0 && cells[last] == endMark {
				return 0, nil, io.EOF
			}
			line, _ := c.csv.FieldPos(last)
			c.end = c.lines + int64(line)
			return c.end, nil, because(ErrBadRow, job.ReadingEnded, "a quote is never closed; nothing behind it could be read")
		}
	}
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		c.end = c.lines + int64(wrong.Line)
		return c.lines + int64(wrong.StartLine), nil, because(ErrBadRow, "rule.quote_open", "a quote is never closed")
	}
	if errors.Is(err, ErrTooLarge) {
		return c.end + 1, nil, because(ErrTooLarge, "rule.row_size", "the row that begins on line %d is longer than %d bytes; is a quote missing?", c.end+1, rowBytes)
	}
	if err != nil {
		return 0, nil, err
	}
	first, _ := c.csv.FieldPos(0)
	line := c.lines + int64(first)
	c.end = line
	for _, cell := range cells { // a cell may hold line breaks
		c.end += int64(strings.Count(cell, "\n"))
	}
	return line, cells, nil
}

func (c *csvRows) at() place {
	return place{Offset: c.from + min(c.csv.InputOffset(), c.meter.size), Line: c.end} // not behind the end mark
}

func (c *csvRows) skip(p place) error {
	seeker := c.file.(io.Seeker) // Resume takes nothing else
	if _, err := seeker.Seek(p.Offset, io.SeekStart); err != nil {
		return err
	}
	c.from, c.lines, c.end = p.Offset, p.Line, p.Line
	c.read(c.file)
	return nil
}

func (c *csvRows) close() error { return nil }

// endMark follows a file as a row of its own. Where a quote was never closed,
// the reader takes it for a part of the last cell.
const endMark = "\x00end\x00"

// meter refuses to read on when one row takes too much, and marks the end.
type meter struct {
	r     io.Reader
	left  int
	size  int64 // what was read of the file
	ended bool
	tail  string // what is left of the mark
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, ErrTooLarge
	}
	if !m.ended {
		n, err := m.r.Read(p)
		m.left -= n
		m.size += int64(n)
		if err != io.EOF {
			return n, err
		}
		m.ended, m.tail = true, "\n"+endMark+"\n"
		if n > 0 {
			return n, nil
		}
	}
	n := copy(p, m.tail)
	if m.tail = m.tail[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
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
