package segment_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
)

// brokenTable is a table that cannot be opened, or read behind its rows.
type brokenTable struct {
	*file
	err error
}

func (s brokenTable) OpenTable(context.Context, int64, job.Reading, json.RawMessage) (job.Rows, error) {
	if len(s.rows) == 0 {
		return nil, s.err
	}
	return s, nil
}

func (s brokenTable) Next() (int64, []string, error) {
	line, cells, err := s.file.Next()
	if err == io.EOF {
		err = s.err
	}
	return line, cells, err
}

func tableOf(rows ...[]string) job.Tables { return &file{rows: rows} }

// TestAFileIsLookedAt: a file without ids is refused before anything is stored. A
// file with some ids is accepted, whatever errors later rows have.
func TestAFileIsLookedAt(t *testing.T) {
	many := slices.Repeat([][]string{{"Ann"}}, 30)
	tooLarge := fault.New(fault.Invalid, "sheet_too_large", "the file is too large")
	for name, c := range map[string]struct {
		file job.Tables
		want string
	}{
		"named":                   {tableOf([]string{"name", "User ID"}, []string{"Ann", "no id"}), ""},
		"no names":                {tableOf([]string{"7"}), ""},
		"a name nobody knows":     {tableOf([]string{"Kundennummer", "x"}, []string{"7", "y"}), ""},
		"a broken row among good": {tableOf([]string{"id"}, nil, []string{"7"}), ""},
		"broken further down":     {brokenTable{&file{rows: [][]string{{"id"}, {"7"}}}, tooLarge}, ""},
		"no table":                {brokenTable{&file{}, job.ErrUnreadable}, "use CSV in UTF-8 or XLSX"},
		"nothing":                 {tableOf(), "the file is empty"},
		"names only":              {tableOf([]string{"id"}), "the file is empty"},
		"no ids":                  {tableOf([]string{"name", "mail"}, []string{"Ann", "a@example.com"}), "no column of ids"},
		"no ids for long":         {tableOf(many...), "no column of ids"},
		"one broken row":          {tableOf([]string{"id"}, nil), "row is broken"},
		"broken at once":          {brokenTable{&file{rows: [][]string{nil}}, tooLarge}, "the file is too large"},
	} {
		store := &fakeStore{}
		s := &segment.Service{Store: store, Jobs: &fakeJobs{}, Tables: c.file}
		_, _, err := s.CreateList(t.Context(), marketer, "List", 5, "")
		fields, refused := errors.AsType[*fault.Fields](err)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!refused || fields.List[0].Name != "file" || !strings.Contains(fields.List[0].Message, c.want) || len(store.entries) != 0):
			t.Errorf("%s: %v, %d entries", name, err, len(store.entries))
		}
	}
	s := &segment.Service{Store: &fakeStore{}, Jobs: &fakeJobs{}, Tables: tableOf()}
	_, _, err := s.CreateList(t.Context(), marketer, "", 5, "")
	if fields, _ := errors.AsType[*fault.Fields](err); fields == nil || len(fields.List) != 2 {
		t.Errorf("a list without a name and with an empty file: %v", err)
	}
	list, _, err := s.CreateList(t.Context(), marketer, "List", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFile(t.Context(), marketer, list.ID, 5, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an empty file is added: %v", err)
	}
}
