package upload

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
)

const (
	// sampleRows are how many rows the choice of columns shows.
	sampleRows = 5
	// previewSheets are of how many sheets of a workbook the beginning is kept.
	previewSheets = 20
	// previewCell is how many characters of a cell are kept.
	previewCell = 200
)

// ReadingOf is how the request wants a file to be read.
func ReadingOf(r *http.Request) job.Reading {
	how := job.Reading{Encoding: r.FormValue("encoding")}
	if !slices.Contains(job.Encodings(), how.Encoding) {
		how.Encoding = ""
	}
	if n, err := strconv.Atoi(r.FormValue("sheet")); err == nil && n > 0 {
		how.Sheet = n
	}
	return how
}

// KeepPreviews reads the beginning of a new file, or of each sheet of a workbook, and stores it, so
// that the file's page need not read the file.
func (f *Files) KeepPreviews(r *http.Request, upload int64) error {
	first, err := f.Sample(r, upload, job.Reading{})
	if err != nil && (!errors.Is(err, errEmptyFile) || len(first.Sheets) < 2) {
		return err
	}
	var list []job.Preview
	if err == nil {
		list = append(list, first)
	}
	for i := range min(len(first.Sheets), previewSheets) {
		if i+1 == first.Sheet {
			continue
		}
		p, err := f.Sample(r, upload, job.Reading{Sheet: i + 1})
		if err != nil && fault.KindOf(err) != fault.Invalid { // said to those who choose this sheet
			return err
		}
		if err == nil {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return errEmptyFile
	}
	return f.Uploads.SavePreviews(r.Context(), upload, list)
}

// Kept returns the beginning of the selected table, from the stored previews if it is there.
func (f *Files) Kept(r *http.Request, u job.Upload, how job.Reading) (job.Preview, error) {
	for i, p := range u.Previews {
		if how == (job.Reading{}) && i == 0 || how.Sheet != 0 && p.Sheet == how.Sheet || len(p.Sheets) == 0 && how.Sheet == 0 && p.Encoding == how.Encoding {
			return p, nil
		}
	}
	return f.Sample(r, u.ID, how)
}

// Sample reads the names of the columns and the first rows.
func (f *Files) Sample(r *http.Request, upload int64, how job.Reading) (job.Preview, error) {
	s := job.Preview{Bare: true}
	table, err := f.Tables.OpenTable(r.Context(), upload, how, nil)
	if err != nil {
		return s, err
	}
	defer func() { _ = table.Close() }()
	if t, ok := table.(job.Formatted); ok {
		s.Format = t.Format()
	}
	for len(s.Rows) < sampleRows {
		_, cells, err := table.Next()
		switch {
		case err == io.EOF && s.Header == nil:
			return s, errEmptyFile
		case err == io.EOF:
			return s, nil
		case err != nil && (s.Header == nil || table.Broken(err)):
			return s, err
		case err != nil: // the check will report it
			s.Bare = false
		case s.Header == nil:
			s.Header = shortened(cells)
		default:
			s.Rows, s.Bare = append(s.Rows, shortened(cells)), false
		}
	}
	return s, nil
}

// shortened copies the part of cells that a page shows.
func shortened(cells []string) []string {
	list := make([]string, len(cells))
	for i, c := range cells {
		if r := []rune(c); len(r) > previewCell {
			c = string(r[:previewCell])
		}
		list[i] = strings.Clone(c)
	}
	return list
}
