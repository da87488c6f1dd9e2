package sheet

import (
	"bytes"
	"io"

	"golang.org/x/text/transform"
)

// decodeBytes is how much of a file is decoded at once.
const decodeBytes = 4 << 10

// decoding yields a text in UTF-8 and maps positions in the text back to the file. The mapping
// works for encodings whose characters do not depend on earlier characters.
type decoding struct {
	file    io.Reader
	decoder transform.Transformer
	raw     []byte // read and not decoded yet
	out     []byte // decoded and not taken yet
	spare   []byte
	err     error
	read    int64     // bytes of the file that were decoded
	written int64     // bytes they became
	marks   [8]marked // of the latest pieces, the last one first
}

// marked is a place between two characters: the number of bytes before it in the file and in the
// text.
type marked struct{ file, text int64 }

func newDecoding(file io.Reader, decoder transform.Transformer) *decoding {
	return &decoding{file: file, decoder: decoder, raw: make([]byte, 0, decodeBytes), spare: make([]byte, 3*decodeBytes)}
}

func (d *decoding) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.err != nil && len(d.raw) == 0 {
			return 0, d.err
		}
		if err := d.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// more decodes the next piece.
func (d *decoding) more() error {
	if d.err == nil {
		n, err := io.ReadFull(d.file, d.raw[len(d.raw):cap(d.raw)])
		d.raw = d.raw[:len(d.raw)+n]
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if d.err = err; err != nil && err != io.EOF {
			return err
		}
	}
	copy(d.marks[1:], d.marks[:])
	d.marks[0] = marked{d.read, d.written}
	written, read, err := d.decoder.Transform(d.spare, d.raw, d.err == io.EOF)
	if err != nil && err != transform.ErrShortSrc && err != transform.ErrShortDst {
		return err
	}
	d.out = d.spare[:written]
	d.raw = d.raw[:copy(d.raw[:cap(d.raw)], d.raw[read:])]
	d.read, d.written = d.read+int64(read), d.written+int64(written)
	return nil
}

// at returns a place in the file at or before the byte text of the decoded text. skip is how
// many bytes of decoded text lie between the place and the byte. The byte must be among the last
// 16 KiB.
func (d *decoding) at(text int64) (file, skip int64) {
	for _, m := range d.marks {
		if m.text <= text {
			return m.file, text - m.text
		}
	}
	return 0, text // the beginning
}

// carriages makes a line end of each carriage return.
type carriages struct{ io.Reader }

func (c carriages) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// onlyCarriages reports whether lines end with a carriage return alone, as in files of old
// Macintosh programs.
func onlyCarriages(start []byte) bool {
	if !bytes.ContainsRune(start, '\r') {
		return false
	}
	quoted := false
	for i, b := range start {
		switch {
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '\n', b == '\r' && i+1 < len(start) && start[i+1] == '\n':
			return false
		}
	}
	return true
}
