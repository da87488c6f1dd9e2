package sheet

import (
	"bufio"
	"io"
	"math"
	"regexp"
	"strconv"

	"github.com/xuri/excelize/v2"
)

// inMemory is up to where the library unpacks a sheet in memory; larger ones
// go to temporary files.
const inMemory = 16 << 20

type workbook struct {
	file *excelize.File
	rows *excelize.Rows
	line int64
}

func openWorkbook(r *bufio.Reader, l Limits) (_ source, err error) {
	defer guard(&err)
	limited := &io.LimitedReader{R: r, N: l.Workbook + 1}
	file, err := excelize.OpenReader(limited, excelize.Options{UnzipSizeLimit: l.Unpacked, UnzipXMLSizeLimit: min(inMemory, l.Unpacked), RawCellValue: true})
	if limited.N <= 0 {
		if file != nil {
			_ = file.Close()
		}
		return nil, because(ErrTooLarge, "rule.file_workbook_size", "an XLSX file may have at most %d MiB; save it as CSV", l.Workbook>>20)
	}
	if err != nil {
		return nil, because(ErrUnreadable, "rule.file_workbook", "the file is not a readable XLSX workbook, or is too large when unpacked; save it as CSV")
	}
	sheets := file.GetSheetList()
	if len(sheets) == 0 {
		_ = file.Close()
		return nil, because(ErrUnreadable, "rule.file_sheet", "the workbook has no sheet that can be read; save it as CSV")
	}
	rows, err := file.Rows(sheets[0])
	if err != nil {
		_ = file.Close()
		return nil, because(ErrUnreadable, "rule.file_sheet", "the workbook has no sheet that can be read; save it as CSV")
	}
	return &workbook{file: file, rows: rows}, nil
}

func (w *workbook) next() (line int64, cells []string, err error) {
	defer guard(&err)
	if !w.rows.Next() {
		if w.rows.Error() != nil {
			return w.line + 1, nil, ErrUnreadable.Because("the sheet is broken after row %d", w.line)
		}
		return 0, nil, io.EOF
	}
	w.line++
	cells, err = w.rows.Columns()
	if err != nil {
		return w.line, nil, ErrUnreadable.Because("the sheet is broken at row %d", w.line)
	}
	for i, c := range cells {
		cells[i] = wholeNumber(c)
	}
	return w.line, cells, nil
}

func (w *workbook) at() place { return place{Line: w.line} }

func (w *workbook) skip(p place) (err error) {
	defer guard(&err)
	for w.line < p.Line && w.rows.Next() {
		w.line++
	}
	return nil
}

func (w *workbook) close() error {
	_ = w.rows.Close() // the file owns everything that is left
	return w.file.Close()
}

// stored is how programs store whole numbers as floating-point ones. A number
// that was rounded for showing, such as 1.29E+06, is text and not meant.
var stored = regexp.MustCompile(`^[1-9](\.[0-9]+)?E[0-9]{1,2}$|^[1-9][0-9]*\.0$`)

// wholeNumber writes a number such as 1.3800138E10 or 1001.0 as it was typed:
// ids and phone numbers are stored so. Beyond 2^53 the workbook itself has lost
// digits.
func wholeNumber(cell string) string {
	if !stored.MatchString(cell) {
		return cell
	}
	n, err := strconv.ParseFloat(cell, 64)
	if err != nil || n != math.Trunc(n) || n > 1<<53 {
		return cell
	}
	return strconv.FormatInt(int64(n), 10)
}
