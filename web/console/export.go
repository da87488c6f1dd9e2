package console

import (
	"encoding/csv"
	"net/http"
	"time"

	"dropbell/domain/user"
	"dropbell/web/spreadsheet"
)

// A sheet is a CSV file on its way to a browser, row by row, so that a file
// of any length takes the same memory.
type sheet struct {
	to    *csv.Writer
	cells []string
	// masked is set for somebody who may not see contacts.
	masked bool
}

// export sends a file with the head given and the rows that write writes. As
// long as nothing was sent, an error can still be answered with a page.
func (sh *Shell) export(w http.ResponseWriter, r *http.Request, name string, head []string, write func(*sheet) error) error {
	out := newDownload(w, name+".csv")
	t := &sheet{to: csv.NewWriter(out), masked: !actor(r).SeesContacts()}
	// Spreadsheets take a file without this mark for one in an old encoding.
	err := t.to.Write(append([]string{"\uFEFF" + head[0]}, head[1:]...))
	if err == nil {
		err = write(t)
	}
	if err == nil {
		t.to.Flush()
		err = t.to.Error()
	}
	if err != nil {
		return out.broken(sh, r, err)
	}
	return nil
}

// inPages hands write every row of a list that is read by keyset: read returns
// the page behind the row given, or the first one for nil.
func inPages[T any](read func(last *T) ([]T, error), write func(T) error) error {
	for last := (*T)(nil); ; {
		list, err := read(last)
		if err != nil {
			return err
		}
		for _, x := range list {
			if err := write(x); err != nil {
				return err
			}
		}
		if len(list) < exportPage {
			return nil
		}
		last = &list[len(list)-1]
	}
}

// row writes one row; see [spreadsheet.Cell].
func (t *sheet) row(values ...any) error {
	t.cells = t.cells[:0]
	for _, v := range values {
		if text, ok := v.(string); ok && t.masked {
			v = user.MaskText(text)
		}
		t.cells = append(t.cells, spreadsheet.Cell(v))
	}
	return t.to.Write(t.cells)
}

// A download is a file on its way. As long as nothing was written, an error
// can still be answered with a page.
type download struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

// newDownload returns a file of that name, which begins with the first byte
// that is written to it.
func newDownload(w http.ResponseWriter, name string) *download { return &download{w: w, name: name} }

func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		h := d.w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		d.begun = true
	}
	// Whoever takes the file slowly may, but nobody holds it for ever.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Now().Add(3 * writeTimeout)) // not every writer has one
	return d.w.Write(p)
}

// broken returns err if it can be answered. Else it cuts the connection, so
// that nobody takes what came for the whole file.
func (d *download) broken(sh *Shell, r *http.Request, err error) error {
	if !d.begun {
		return err
	}
	if r.Context().Err() == nil {
		sh.Log.ErrorContext(r.Context(), "download broke off", "error", err, "request", requestID(r))
	}
	panic(http.ErrAbortHandler)
}
