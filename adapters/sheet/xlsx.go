package sheet

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"dropbell/domain/job"
)

const (
	// maxSheets bounds how many sheets are offered.
	maxSheets = 256
	// maxRelations is the largest number of relations of a workbook.
	maxRelations = 4 * maxMembers
)

// workbook yields the rows of one sheet while the sheet is unpacked. Neither the file nor the
// sheet is ever held as a whole: see the decision "Workbooks are read as a stream".
type workbook struct {
	files  archive
	names  []string
	chosen int // counted from 1
	sheet  *tokens
	texts  *texts
	limits Limits
	line   int64
	cells  []string
}

// openWorkbook opens the sheet with the number; 0 = the first sheet that is not hidden.
func openWorkbook(file, head io.Reader, l Limits, sheet int) (source, error) {
	content, size, err := random(file, head, l.Workbook)
	if err != nil {
		return nil, err
	}
	w := &workbook{limits: l}
	if w.files, err = openArchive(content, size, l); err != nil {
		return nil, err
	}
	if err := w.open(sheet); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// random returns the file so that any part of it can be read.
func random(file, head io.Reader, most int64) (io.ReaderAt, int64, error) {
	tooLarge := because(ErrTooLarge, "rule.file_workbook_size", "an XLSX file may have at most %d MiB; save it as CSV", most>>20)
	at, ok := file.(interface {
		io.ReaderAt
		io.Seeker
	})
	if ok {
		size, err := at.Seek(0, io.SeekEnd)
		if err == nil && size > most {
			err = tooLarge
		}
		return &pages{file: at, size: size}, size, err
	}
	raw, err := io.ReadAll(io.LimitReader(head, most+1))
	if err == nil && int64(len(raw)) > most {
		err = tooLarge
	}
	return bytes.NewReader(raw), int64(len(raw)), err
}

// damaged reports whether an error of unpacking is the file's own fault.
func damaged(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, io.ErrUnexpectedEOF)
}

// A relation is something that one part of a workbook refers to.
type relation struct{ kind, path string }

// relations returns the relations of the part, by id.
func (w *workbook) relations(part string) (map[string]relation, error) {
	list := map[string]relation{}
	dir, name := path.Split(part)
	err := w.each(dir+"_rels/"+name+".rels", "Relationship", func(a []xml.Attr) error {
		target := strings.ReplaceAll(attribute(a, "Target", false), `\`, "/")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(dir, target)
		}
		list[attribute(a, "Id", false)] = relation{path.Base(attribute(a, "Type", false)), strings.TrimPrefix(target, "/")}
		if len(list) > maxRelations {
			return errBroken()
		}
		return nil
	})
	return list, err
}

// each calls do with the elements of that name in a part, none if it is not there.
func (w *workbook) each(part, name string, do func([]xml.Attr) error) error {
	file, err := w.files.open(part)
	if file == nil || err != nil {
		return err
	}
	err = newTokens(file).each(name, do)
	_ = file.Close() // said already what was wrong
	return err
}

// open finds the sheets and begins to read one of them.
func (w *workbook) open(chosen int) error {
	book := "xl/workbook.xml"
	parts, err := w.relations("")
	if err != nil {
		return err
	}
	for _, r := range parts {
		if r.kind == "officeDocument" {
			book = r.path
		}
	}
	relations, err := w.relations(book)
	if err != nil {
		return err
	}
	paths, visible, err := w.sheets(book, relations)
	if err != nil {
		return err
	}
	if w.chosen = chosen; chosen == 0 {
		w.chosen = visible
	}
	if w.chosen < 1 || w.chosen > len(paths) {
		return because(ErrUnreadable, "rule.file_sheet", "the workbook has no sheet that can be read; save it as CSV")
	}
	sheet, err := w.files.open(paths[w.chosen-1])
	if err != nil {
		return err
	}
	w.sheet = newTokens(sheet)
	for _, r := range relations {
		if r.kind == "sharedStrings" {
			return w.openTexts(r.path)
		}
	}
	return w.openTexts("xl/sharedStrings.xml")
}

func (w *workbook) openTexts(part string) error {
	w.texts = &texts{most: w.limits.Cell}
	file, err := w.files.open(part)
	if file != nil {
		w.texts.xml = newTokens(file)
	}
	return err
}

// sheets stores the names of the existing sheets, and returns their paths and the number of the
// first sheet that is not hidden.
func (w *workbook) sheets(book string, relations map[string]relation) (paths []string, visible int, err error) {
	err = w.each(book, "sheet", func(a []xml.Attr) error {
		r := relations[attribute(a, "id", true)]
		if r.kind != "worksheet" || w.files[strings.ToLower(r.path)] == nil {
			return nil
		}
		if len(paths) == maxSheets {
			return errBroken()
		}
		paths, w.names = append(paths, r.path), append(w.names, cut(attribute(a, "name", false)))
		if state := attribute(a, "state", false); visible == 0 && (state == "" || state == "visible") {
			visible = len(paths)
		}
		return nil
	})
	if visible == 0 && len(paths) > 0 {
		visible = 1
	}
	return paths, visible, err
}

// cut shortens a sheet's name to the length that spreadsheet programs allow.
func cut(name string) string {
	if r := []rune(name); len(r) > 31 {
		return string(r[:31])
	}
	return name
}

func (w *workbook) format() job.Format { return job.Format{Sheets: w.names, Sheet: w.chosen} }

// next returns the next row of the sheet.
func (w *workbook) next() (line int64, cells []string, err error) {
	started, err := w.row()
	if err == nil && !started {
		err = io.EOF
	}
	if err != nil {
		return w.line + 1, nil, err
	}
	columns, err := w.columns()
	if err != nil {
		return w.line, nil, err
	}
	if columns > w.limits.Columns {
		return w.line, nil, because(ErrBadRow, "rule.row_columns", "the row has %d columns; at most %d are read", columns, w.limits.Columns)
	}
	return w.line, w.cells, nil
}

// row reads on to the beginning of the next row; false means that there is none.
func (w *workbook) row() (started bool, err error) {
	for {
		token, err := w.sheet.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "row" {
			continue
		}
		w.line++
		if n, err := strconv.ParseInt(attribute(start.Attr, "r", false), 10, 32); err == nil && n > w.line {
			w.line = n
		}
		return true, nil
	}
}

// columns reads the cells of the row and returns how many columns it has.
func (w *workbook) columns() (count int, err error) {
	w.cells = w.cells[:0]
	for at := 0; ; {
		token, err := w.sheet.next()
		if err != nil {
			return count, ended(err)
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "row" {
			return count, nil
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "c" {
			continue
		}
		at++
		if n := columnOf(attribute(start.Attr, "r", false)); n > 0 {
			at = n
		}
		value, err := w.value(attribute(start.Attr, "t", false))
		if err != nil {
			return count, err
		}
		if value == "" {
			continue
		}
		if count = max(count, at); at > w.limits.Columns {
			continue // counted, and not kept
		}
		for len(w.cells) < at {
			w.cells = append(w.cells, "")
		}
		w.cells[at-1] = value
	}
}

// columnOf returns the column number of a cell such as AB12; 0 = the cell has none.
func columnOf(cell string) (n int) {
	for _, c := range strings.ToUpper(cell) {
		if c < 'A' || c > 'Z' || n > 16384 {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	return n
}

// value reads to the end of the cell and returns the cell's value.
func (w *workbook) value(kind string) (value string, err error) {
	var b strings.Builder
	inside := false
	for {
		token, err := w.sheet.next()
		if err != nil {
			return "", ended(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if inside = e.Name.Local == "v"; e.Name.Local == "is" {
				text, err := w.sheet.text("is", w.limits.Cell)
				if err != nil {
					return "", err
				}
				value = wholeNumber(text)
			}
		case xml.EndElement:
			if inside = false; e.Name.Local != "c" {
				continue
			}
			if b.Len() > 0 {
				return w.meant(kind, b.String())
			}
			return value, nil
		case xml.CharData:
			if inside {
				b.Write(e[:min(len(e), w.limits.Cell+1-b.Len())])
			}
		}
	}
}

// meant returns the text of a cell of the kind, from its stored value.
func (w *workbook) meant(kind, stored string) (string, error) {
	switch kind {
	case "s":
		number, err := strconv.Atoi(strings.TrimSpace(stored))
		if err != nil {
			return "", errBroken()
		}
		text, err := w.texts.get(number)
		return wholeNumber(text), err
	case "b": // must not be taken for the number 1
		if strings.TrimSpace(stored) == "1" {
			return "TRUE", nil
		}
		return "FALSE", nil
	case "str":
		return wholeNumber(unescaped(stored)), nil
	}
	return wholeNumber(stored), nil
}

func (w *workbook) at() place { return place{Line: w.line, Sheet: w.chosen} }

func (w *workbook) skip(p place) error {
	for w.line < p.Line {
		started, err := w.row()
		if err != nil || !started {
			return err
		}
	}
	return nil
}

func (w *workbook) close() error {
	if w.sheet != nil {
		_ = w.sheet.file.Close() // says that it was not read to its end
	}
	if w.texts != nil {
		return w.texts.close()
	}
	return nil
}

// stored matches whole numbers that programs store in floating-point form. A number that was
// rounded for display, such as 1.29E+06, is text and does not match.
var stored = regexp.MustCompile(`^[1-9](\.[0-9]+)?E[0-9]{1,2}$|^[1-9][0-9]*\.0$`)

// wholeNumber writes a number such as 1.3800138E10 or 1001.0 as it was typed: programs store ids
// and phone numbers in this form. Beyond 2^53 the workbook itself has lost digits.
func wholeNumber(cell string) string {
	// Nearly no cell is such a number, and the pattern takes longer than reading a cell.
	if !strings.Contains(cell, "E") && !strings.HasSuffix(cell, ".0") || !stored.MatchString(cell) {
		return cell
	}
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || n != math.Trunc(n) || n > 1<<53 {
		return cell
	}
	return strconv.FormatInt(int64(n), 10)
}
