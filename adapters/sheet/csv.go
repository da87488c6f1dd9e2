package sheet

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"dropbell/domain/job"
)

const (
	// sniffBytes is how much of a file is read to detect its format.
	sniffBytes = 64 << 10
	// rowBytes limits one row. Without the limit an unclosed quote would read the remaining file
	// into one cell.
	rowBytes = 1 << 20
)

type csvRows struct {
	file     io.Reader
	comma    rune
	encoding string
	// ambiguous: the encoding was guessed and may be another one.
	ambiguous bool
	// carriages: lines end with a carriage return alone.
	carriages bool
	meter     *meter
	csv       *csv.Reader
	text      *decoding // nil for UTF-8
	// from, lines and skipped say where in the file this reader began: after from bytes and
	// lines lines, plus skipped bytes of text after from. end is the line where the last row
	// ended.
	from, lines, skipped, end int64
}

// openCSV detects the format of the whole file. If the reader resumes at a position, openCSV
// takes the format that is stored in the position.
func openCSV(file io.Reader, head *bufio.Reader, start []byte, how job.Reading, from place) (source, error) {
	c := &csvRows{file: file, encoding: cmp.Or(from.Encoding, how.Encoding), ambiguous: from.Ambiguous}
	begin := start
	if bom := []byte("\ufeff"); bytes.HasPrefix(start, bom) {
		start, c.encoding = start[len(bom):], job.UTF8
	}
	var r io.Reader = head
	if c.encoding == "" {
		var err error
		if r, err = c.detect(file, head, begin); err != nil {
			return nil, err
		}
	}
	if _, known := encodingOf(c.encoding); !known {
		return nil, because(ErrUnreadable, "rule.encoding_unknown", "nothing is known of the encoding %q", c.encoding)
	}
	c.carriages = onlyCarriages(start)
	c.comma = delimiter(start)
	if sep, line := separator(start); sep != 0 { // Excel writes and reads it
		c.comma, start, c.lines = sep, start[line:], 1
	}
	c.from = int64(len(begin) - len(start))
	if _, err := io.CopyN(io.Discard, r, c.from); err != nil {
		return nil, err
	}
	c.read(r)
	return c, nil
}

// detect finds the encoding and returns the file from its beginning. If the file cannot be read
// twice, only its start is examined.
func (c *csvRows) detect(file io.Reader, head *bufio.Reader, start []byte) (r io.Reader, err error) {
	seeker, ok := file.(io.Seeker)
	if !ok {
		c.encoding, c.ambiguous, err = detect(bytes.NewReader(start))
		return head, err
	}
	if _, err = seeker.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if c.encoding, c.ambiguous, err = detect(file); err != nil {
		return nil, err
	}
	_, err = seeker.Seek(0, io.SeekStart)
	return file, err
}

func (c *csvRows) read(r io.Reader) {
	c.text = nil
	if e, _ := encodingOf(c.encoding); e != nil {
		c.text = newDecoding(r, e.NewDecoder())
		r = c.text
	}
	if c.carriages {
		r = carriages{r}
	}
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
	read := min(c.csv.InputOffset(), c.meter.size) // not behind the end mark
	p := place{Offset: c.from + read, Line: c.end, Encoding: c.encoding, Ambiguous: c.ambiguous}
	if c.text != nil {
		p.Offset, p.Skip = c.text.at(c.skipped + read)
		p.Offset += c.from
	}
	return p
}

func (c *csvRows) skip(p place) error {
	seeker := c.file.(io.Seeker) // Resume takes only an io.Seeker
	if _, err := seeker.Seek(p.Offset, io.SeekStart); err != nil {
		return err
	}
	c.from, c.lines, c.end, c.skipped = p.Offset, p.Line, p.Line, p.Skip
	c.read(c.file)
	if p.Skip == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, c.text, p.Skip); err != nil {
		return err
	}
	return nil
}

func (c *csvRows) format() job.Format {
	return job.Format{Encoding: c.encoding, Ambiguous: c.ambiguous}
}

func (c *csvRows) close() error { return nil }

// endMark is appended to a file as a row of its own. If a quote was never closed, endMark
// becomes a part of the last cell.
const endMark = "\x00end\x00"

// meter refuses to read on when one row takes too much, and marks the end.
type meter struct {
	r     io.Reader
	left  int
	size  int64 // the bytes read of the file
	ended bool
	tail  string // the part of the mark that is not read yet
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

// separator returns the delimiter that a first line such as "sep=;" names, and the length of
// this line in bytes.
func separator(start []byte) (comma rune, line int) {
	const name = "sep="
	if len(start) < len(name)+2 || !bytes.EqualFold(start[:len(name)], []byte(name)) {
		return 0, 0
	}
	sep, rest := start[len(name)], start[len(name)+1:]
	if sep < ' ' && sep != '\t' || sep == '"' || sep >= 0x80 {
		return 0, 0
	}
	for _, end := range []string{"\r\n", "\n", "\r"} {
		if bytes.HasPrefix(rest, []byte(end)) {
			return rune(sep), len(name) + 1 + len(end)
		}
	}
	return 0, 0
}

// delimiter returns the delimiter of the first line's cells: the candidate that occurs most
// often outside quotes. Spreadsheet programs write semicolons where the comma is the decimal
// sign.
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
