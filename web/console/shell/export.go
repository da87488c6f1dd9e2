package shell

import (
	"encoding/csv"
	"net/http"
	"time"

	"dropbell/domain/user"
	"dropbell/web/spreadsheet"
)

// A Sheet is a CSV file that is sent to a browser row by row, so that a file of any length takes
// the same memory.
type Sheet struct {
	to    *csv.Writer
	cells []string
	// masked is set for staff who may not see contacts.
	masked bool
}

// Export sends a file with the header row head and the rows that write writes. Until the first byte
// is sent, an error can still be answered with a page.
func (sh *Shell) Export(w http.ResponseWriter, r *http.Request, name string, head []string, write func(*Sheet) error) error {
	out := NewDownload(w, name+".csv")
	t := &Sheet{to: csv.NewWriter(out), masked: !Actor(r).SeesContacts()}
	// Without this mark spreadsheets take a file for a file in an old encoding.
	err := t.to.Write(append([]string{"\uFEFF" + head[0]}, head[1:]...))
	if err == nil {
		err = write(t)
	}
	if err == nil {
		t.to.Flush()
		err = t.to.Error()
	}
	if err != nil {
		return out.Broken(sh, r, err)
	}
	return nil
}

// A File is a CSV file of the rows of a list.
type File[Row any] struct {
	Name string
	Head []string
	// Cells returns the values of a row, one for each name in Head; no values = the row is left
	// out.
	Cells func(Row) []any
}

// FileOf returns the file of that name.
func FileOf[Row any](name string, head []string, cells func(Row) []any) File[Row] {
	return File[Row]{name, head, cells}
}

// Send sends the file of the rows that each hands to write.
func (f File[Row]) Send(sh *Shell, w http.ResponseWriter, r *http.Request, each func(write func(Row) error) error) error {
	return sh.Export(w, r, f.Name, f.Head, func(s *Sheet) error {
		return each(func(row Row) error {
			if cells := f.Cells(row); cells != nil {
				return s.Row(cells...)
			}
			return nil
		})
	})
}

// Each hands the rows of a slice to write.
func Each[Row any](list []Row) func(write func(Row) error) error {
	return func(write func(Row) error) error {
		for _, row := range list {
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	}
}

// Row writes one row; see [spreadsheet.Cell].
func (t *Sheet) Row(values ...any) error {
	t.cells = t.cells[:0]
	for _, v := range values {
		if text, ok := v.(string); ok && t.masked {
			v = user.MaskText(text)
		}
		t.cells = append(t.cells, spreadsheet.Cell(v))
	}
	return t.to.Write(t.cells)
}

// A Download is a file being sent. Until the first byte is written, an error can still be answered
// with a page.
type Download struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

// NewDownload returns a file with that name. The answer begins with the first byte written to the
// file.
func NewDownload(w http.ResponseWriter, name string) *Download { return &Download{w: w, name: name} }

// Write implements [io.Writer]. The first byte sends the head of the file.
func (d *Download) Write(p []byte) (int, error) {
	if !d.begun {
		h := d.w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		d.begun = true
	}
	// A slow client may take long, but not without end.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Now().Add(3 * WriteTimeout)) // not every writer has one
	return d.w.Write(p)
}

// Broken returns err if it can still be answered. Otherwise it cuts the connection, so that the
// client does not take a part for the whole file.
func (d *Download) Broken(sh *Shell, r *http.Request, err error) error {
	if !d.begun {
		return err
	}
	if r.Context().Err() == nil {
		sh.Log.ErrorContext(r.Context(), "download broke off", "error", err, "request", requestID(r))
	}
	panic(http.ErrAbortHandler)
}
