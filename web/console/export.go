package console

import (
	"encoding/csv"
	"net/http"

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
func (c *Console) export(w http.ResponseWriter, r *http.Request, name string, head []string, write func(*sheet) error) error {
	out := &download{w: w, name: name + ".csv"}
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
		return out.broken(c, r, err)
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
