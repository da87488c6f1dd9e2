package sheet_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"dropbell/adapters/sheet"
	"dropbell/domain/job"
)

// stored is a file under the name that its sender gave it.
type stored struct {
	*strings.Reader
	name string
}

func (s stored) Name() string { return s.name }
func (s stored) Close() error { return nil }

func TestAFileThatIsNotWhatItIsCalled(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"fake.xlsx":  {"not a zip", sheet.ErrUnreadable},
		"Fake.XLSX":  {"id\n1\n2\n3\n", sheet.ErrUnreadable},
		"short.xlsx": {"x", sheet.ErrUnreadable},
		"void.xlsx":  {"", sheet.ErrUnreadable},
		"list.csv":   {"id\n1\n", nil},
		"list":       {"not a zip", nil},
	} {
		tables := sheet.Tables{Open: func(context.Context, int64) (io.ReadCloser, error) {
			return stored{strings.NewReader(c.content), name}, nil
		}}
		rows, err := tables.OpenTable(t.Context(), 1, job.Reading{}, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if line, cells, err := rows.Next(); line != 1 || len(cells) != 1 || err != nil {
			t.Errorf("%s: line %d, %q, %v", name, line, cells, err)
		}
	}
}
