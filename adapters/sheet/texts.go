package sheet

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxTexts bounds how many shared texts a workbook may have.
	maxTexts = 4_000_000
	// textsInMemory is how many bytes of shared strings are held in memory. If there are more,
	// all shared strings go to a temporary file.
	textsInMemory = 8 << 20
	// indexBlock is how many ends of texts are allocated at once.
	indexBlock = 64 << 10
)

// texts are the shared strings of a workbook. They are read only up to the highest index that is
// needed.
type texts struct {
	xml *tokens // nil after the last one
	// most is how many bytes of a text are kept.
	most int
	// ends are where each text ends among all of them.
	ends   [][]uint32
	count  int
	size   uint32
	memory []byte
	file   *os.File // holds all texts before memory's
	filed  uint32   // how many bytes of them
	// window is a part of file, which cells mostly ask for in its order.
	window   []byte
	windowAt uint32
}

// get returns the text with that number.
func (t *texts) get(number int) (string, error) {
	for number >= t.count && t.xml != nil {
		if err := t.more(); err != nil {
			return "", err
		}
	}
	if number < 0 || number >= t.count {
		return "", errBroken()
	}
	from := uint32(0)
	if number > 0 {
		from = t.end(number - 1)
	}
	return t.slice(from, t.end(number))
}

func (t *texts) end(number int) uint32 { return t.ends[number/indexBlock][number%indexBlock] }

// more reads the next text.
func (t *texts) more() error {
	for {
		token, err := t.xml.next()
		if err == io.EOF {
			err = t.xml.file.Close()
			t.xml = nil
			return err
		}
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "si" {
			text, err := t.xml.text("si", t.most)
			if err != nil {
				return err
			}
			return t.add(text)
		}
	}
}

func (t *texts) add(text string) error {
	if t.count == maxTexts {
		return errBroken()
	}
	if t.count%indexBlock == 0 {
		t.ends = append(t.ends, make([]uint32, indexBlock))
	}
	t.memory = append(t.memory, text...)
	t.size += uint32(len(text)) // all of them were unpacked from less than 4 GiB
	t.ends[t.count/indexBlock][t.count%indexBlock] = t.size
	t.count++
	if len(t.memory) < textsInMemory {
		return nil
	}
	return t.spill()
}

// spill moves the texts in memory to the temporary file.
func (t *texts) spill() (err error) {
	if t.file == nil {
		if t.file, err = os.CreateTemp("", "dropbell-workbook-"); err != nil {
			return err
		}
		// A removed file exists until it is closed, and its space is freed even if this process
		// is killed.
		if err := os.Remove(t.file.Name()); err != nil {
			return err
		}
		t.window = make([]byte, 0, 64<<10)
	}
	n, err := t.file.Write(t.memory)
	t.filed += uint32(n)
	t.memory = t.memory[:0]
	return err
}

func (t *texts) slice(from, to uint32) (string, error) {
	if from >= t.filed {
		return string(t.memory[from-t.filed : to-t.filed]), nil
	}
	if from >= t.windowAt && to <= t.windowAt+uint32(len(t.window)) {
		return string(t.window[from-t.windowAt : to-t.windowAt]), nil
	}
	if int(to-from) > cap(t.window) {
		return "", errBroken() // nothing that long is kept
	}
	n, err := t.file.ReadAt(t.window[:cap(t.window)], int64(from))
	if err != nil && err != io.EOF {
		return "", err
	}
	t.window, t.windowAt = t.window[:n], from
	return string(t.window[:to-from]), nil
}

func (t *texts) close() error {
	var errs []error
	if t.xml != nil {
		_ = t.xml.file.Close() // says that it was not read to its end
	}
	if t.file != nil {
		errs = append(errs, t.file.Close())
	}
	return errors.Join(errs...)
}

// text reads to the end of the element and returns the text of its t elements, without phonetic
// readings. Of a text longer than most bytes it returns most + 1 bytes.
func (t *tokens) text(element string, most int) (string, error) {
	var b strings.Builder
	inside, phonetic := false, 0
	for {
		token, err := t.next()
		if err != nil {
			return "", ended(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "t":
				inside = true
			case "rPh":
				phonetic++
			}
		case xml.EndElement:
			switch e.Name.Local {
			case element:
				return unescaped(b.String()), nil
			case "t":
				inside = false
			case "rPh":
				phonetic--
			}
		case xml.CharData:
			if inside && phonetic == 0 {
				b.Write(e[:min(len(e), most+1-b.Len())])
			}
		}
	}
}

// ended turns the end of a document within an element into an error: the document is damaged.
func ended(err error) error {
	if err == io.EOF {
		return errBroken()
	}
	return err
}

// escape is how characters are written that XML cannot hold.
var escape = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

func unescaped(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	return escape.ReplaceAllStringFunc(s, func(code string) string {
		n, _ := strconv.ParseUint(code[2:6], 16, 16) // the form says that it is one
		return string(rune(n))
	})
}
