package sheet_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"dropbell/adapters/sheet"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/musttest"
)

// all returns every row as "line:cells", and a bad row as "line!".
func all(t *testing.T, r *sheet.Reader) (list []string, end error) {
	t.Helper()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for {
		line, cells, err := r.Next()
		switch {
		case err == io.EOF:
			return list, nil
		case errors.Is(err, sheet.ErrBadRow):
			list = append(list, fmt.Sprintf("%d!", line))
		case err != nil:
			return list, err
		default:
			list = append(list, fmt.Sprintf("%d:%s", line, strings.Join(cells, "|")))
		}
	}
}

func TestCSV(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"commas":              {"id,name\n1,Ann\n2,\"Lee, Bob\"\n", "1:id|name 2:1|Ann 3:2|Lee, Bob"},
		"semicolons":          {"id;name;sum\r\n1;\"a,b,c,d\";2,5\r\n", "1:id|name|sum 2:1|a,b,c,d|2,5"},
		"tabs":                {"id\tname\n1\tx\n", "1:id|name 2:1|x"},
		"byte order mark":     {"\ufeffid,name\n1,x\n", "1:id|name 2:1|x"},
		"mark before a quote": {"\ufeff\"id\",name\n", "1:id|name"},
		"one column":          {"id\n1\n2", "1:id 2:1 3:2"},
		"blank lines":         {"\n\nid,name\n\n , \n1,x\n", "3:id|name 6:1|x"},
		"ragged":              {"a,b,c\n1\n1,2,3,4\n", "1:a|b|c 2:1 3:1|2|3|4"},
		"quotes inside":       {"a,b\n1,5\" disk\n2,x\n", "1:a|b 2:1|5\" disk 3:2|x"},
		"line break in cell":  {"a,b\n1,\"x\ny\"\n2,z\n", "1:a|b 2:1|x\ny 4:2|z"},
		"invalid UTF-8":       {"a,b\n1,\xff\n2,x\n", "1:a|b 2! 3:2|x"},
		"long cell":           {"a,b\n1," + strings.Repeat("x", 5000) + "\n2,x\n", "1:a|b 2! 3:2|x"},
		"many columns":        {"a,b\n" + strings.Repeat(",", 200) + "\n2,x\n", "1:a|b 2! 3:2|x"},
		"empty":               {"", ""},
		"spaces":              {"a , b\n 1 ,x\n", "1:a|b 2:1|x"},
	} {
		r, err := sheet.Open(strings.NewReader(c.file), sheet.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list, err := all(t, r)
		if got := strings.Join(list, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want error
		rule string
	}{
		"UTF-16":       {"\xff\xfei\x00d\x00", sheet.ErrUnreadable, "rule.file_encoding"},
		"a picture":    {"\x89PNG\r\n\x1a\n\x00\x00", sheet.ErrUnreadable, "rule.file_encoding"},
		"old XLS":      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", sheet.ErrUnreadable, "rule.file_xls"},
		"broken zip":   {"PK\x03\x04nonsense", sheet.ErrUnreadable, "rule.file_workbook"},
		"another zip":  {zipped(t, "readme.txt", "hello"), sheet.ErrUnreadable, ""},
		"zip bomb":     {zipped(t, "xl/worksheets/sheet1.xml", strings.Repeat("0", 3<<20)), sheet.ErrUnreadable, "rule.file_workbook"},
		"big workbook": {zipped(t, "xl/a", string(bytes.Repeat([]byte("PK\x01\x07"), 10))) + strings.Repeat("z", 2<<20), sheet.ErrTooLarge, "rule.file_workbook_size"},
	} {
		r, err := sheet.Open(strings.NewReader(c.file), sheet.Limits{Workbook: 1 << 20, Unpacked: 2 << 20})
		if err == nil {
			_, err = all(t, r)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		why, _ := errors.AsType[*fault.Fields](err)
		if c.rule != "" && (why == nil || why.List[0].Key != c.rule || why.List[0].Message != err.Error()) {
			t.Errorf("%s: %+v, want %s", name, why, c.rule)
		}
	}
}

func zipped(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An unclosed quote must end the reading, not fill the memory.
func TestUnclosedQuote(t *testing.T) {
	r, err := sheet.Open(io.MultiReader(strings.NewReader("a,b\n1,\"x\n"), &endless{left: 1 << 30}), sheet.Limits{})
	musttest.OK(t, err)
	list, err := all(t, r)
	if !errors.Is(err, sheet.ErrTooLarge) || !strings.Contains(err.Error(), "begins on line 2 ") || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	for file, want := range map[string]string{
		"a,b\n1,\"x\n2,y":                   "1:a|b 2!",
		"a,b\n1,\"x\n2,y\n":                 "1:a|b 2!",
		"a,b\n1,\"x\r\n2,y\r\n":             "1:a|b 2!",
		"a,b\n1,\"x\ny\",\"z\n2,y\n":        "1:a|b 3!",
		"a,b\n1,x\n2,\"":                    "1:a|b 2:1|x 3!",
		"a,b\n1,\"x\"\"":                    "1:a|b 2!",
		"a,b\n1,\"x\"":                      "1:a|b 2:1|x",
		"a,b\n1,\"x\n\"":                    "1:a|b 2:1|x",
		"a,b\n1,\"x\"\"\"\r\n":              "1:a|b 2:1|x\"",
		"a,b\n1,5\"":                        "1:a|b 2:1|5\"",
		"\"a":                               "1!",
		"a,b\n1," + strings.Repeat("\"", 3): "1:a|b 2!",
	} {
		if r, err = sheet.Open(strings.NewReader(file), sheet.Limits{}); err != nil {
			t.Fatal(err)
		}
		list, err := all(t, r)
		if got := strings.Join(list, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", file, got, err, want)
		}
	}
}

type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	e.left -= len(p)
	return len(p), nil
}

func TestTooManyRows(t *testing.T) {
	r, err := sheet.Open(strings.NewReader("a\n\n1\n2\n"), sheet.Limits{Rows: 2})
	musttest.OK(t, err)
	if list, err := all(t, r); !errors.Is(err, sheet.ErrTooLarge) || len(list) != 2 {
		t.Fatalf("%v %v", list, err)
	}
}

func book(t *testing.T, rows ...[]any) []byte {
	t.Helper()
	f := excelize.NewFile()
	for i, row := range rows {
		musttest.OK(t, f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row))
	}
	var b bytes.Buffer
	musttest.OK(t, f.Write(&b))
	return b.Bytes()
}

func TestWorkbook(t *testing.T) {
	raw := book(t, []any{"id", "phone", "name"}, []any{1001, 13800138000, "Ann"}, nil, []any{9007199254740991, 1.38e10, "李"}, []any{"12", true, 1.5}, []any{"1001.0", "1.29E+06", "2.50"})
	r, err := sheet.Open(bytes.NewReader(raw), sheet.Limits{})
	musttest.OK(t, err)
	list, err := all(t, r)
	want := "1:id|phone|name 2:1001|13800138000|Ann 4:9007199254740991|13800000000|李 5:12|TRUE|1.5 6:1001|1.29E+06|2.50"
	if got := strings.Join(list, " "); err != nil || got != want {
		t.Fatalf("%q %v, want %q", got, err, want)
	}
}

// Files that were cut off or altered are refused or read, never more.
func TestBrokenWorkbooks(t *testing.T) {
	raw := book(t, []any{"id", "name"}, []any{1, "Ann"}, []any{2, "Bob"})
	rapid.Check(t, func(rt *rapid.T) {
		b := bytes.Clone(raw)
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			b[rapid.IntRange(4, len(b)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		b = b[:rapid.IntRange(8, len(b)).Draw(rt, "length")]
		r, err := sheet.Open(bytes.NewReader(b), sheet.Limits{})
		for err == nil {
			_, _, err = r.Next()
			if errors.Is(err, sheet.ErrBadRow) {
				err = nil
			}
		}
		if err != io.EOF && !errors.Is(err, sheet.ErrUnreadable) && !errors.Is(err, sheet.ErrTooLarge) {
			rt.Fatalf("%v", err)
		}
	})
}

// The cells that a CSV writer writes are read unchanged with every delimiter.
func TestRoundTrip(t *testing.T) {
	cell := rapid.StringMatching(`[a-z0-9,;"\n\t äñ李]{0,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, 3, 3), 1, 20).Draw(rt, "rows")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Comma = rapid.SampledFrom([]rune{',', ';', '\t'}).Draw(rt, "comma")
		_ = w.Write([]string{"id", "name", "mail"})
		_ = w.WriteAll(rows)
		want := [][]string{{"id", "name", "mail"}}
		for _, row := range rows {
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			if strings.Join(row, "") != "" {
				want = append(want, row)
			}
		}
		r, err := sheet.Open(&b, sheet.Limits{})
		if err != nil {
			rt.Fatal(err)
		}
		for _, row := range want {
			_, got, err := r.Next()
			if err != nil || fmt.Sprint(got) != fmt.Sprint(row) {
				rt.Fatalf("%q %v, want %q", got, err, row)
			}
		}
		if _, _, err := r.Next(); err != io.EOF {
			rt.Fatalf("after the last row: %v", err)
		}
	})
}

// TestResume: reading from any position gives the same rows and lines as reading the whole file.
func TestResume(t *testing.T) {
	t.Run("csv", func(t *testing.T) {
		cell := rapid.StringMatching(`[a-z0-9,"\n\r äñ李]{0,8}`)
		rapid.Check(t, func(rt *rapid.T) {
			var b bytes.Buffer
			b.WriteString(rapid.SampledFrom([]string{"", "\ufeff"}).Draw(rt, "mark") + "id;name;mail\n")
			w := csv.NewWriter(&b)
			w.Comma, w.UseCRLF = ';', rapid.Bool().Draw(rt, "crlf")
			_ = w.WriteAll(rapid.SliceOfN(rapid.SliceOfN(cell, 3, 3), 1, 12).Draw(rt, "rows"))
			b.WriteString(rapid.SampledFrom([]string{"", "\n\n", "1;\xff\n", "9;\"open"}).Draw(rt, "end"))
			resumeAnywhere(rt, b.Bytes())
		})
	})
	t.Run("xlsx", func(t *testing.T) {
		rows := [][]any{{"id", "name"}}
		for i := range 5 {
			rows = append(rows, []any{i, "x"})
			resumeAnywhere(t, book(t, rows...))
		}
	})
	if _, err := sheet.Resume(strings.NewReader("a\n"), sheet.Limits{}, job.Reading{}, json.RawMessage(`"x"`)); err == nil {
		t.Error("nonsense is a position")
	}
}

// resumeAnywhere reads the file as a whole, and also from each row on with a new reader.
func resumeAnywhere(t interface{ Fatalf(string, ...any) }, raw []byte) {
	whole, err := sheet.Open(bytes.NewReader(raw), sheet.Limits{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	var position json.RawMessage
	for {
		line, cells, err := whole.Next()
		want := fmt.Sprint(line, cells, err)
		again, openErr := sheet.Resume(bytes.NewReader(raw), sheet.Limits{}, job.Reading{}, position)
		if openErr != nil {
			t.Fatalf("%v", openErr)
		}
		line, cells, err = again.Next()
		if got := fmt.Sprint(line, cells, err); got != want {
			t.Fatalf("after %s: %s, want %s", position, got, want)
		}
		if position = again.Position(); string(position) != string(whole.Position()) {
			t.Fatalf("stands at %s, want %s", position, whole.Position())
		}
		if err == io.EOF {
			return
		}
		_ = again.Close()
	}
}

// rowsRead are ten megabytes of rows, of which less than half may be held.
const rowsRead = 50_000

// Rows pass without being held.
func TestRowsAreNotHeld(t *testing.T) {
	pr, pw := io.Pipe()
	go func() {
		w := bufio.NewWriterSize(pw, 64<<10)
		row := strings.Repeat("id", 33) + "," + strings.Repeat("user", 17) + "," + strings.Repeat("u", 53) + "@example.com\n"
		for range rowsRead {
			if _, err := w.WriteString(row); err != nil {
				return
			}
		}
		_ = pw.CloseWithError(w.Flush())
	}()
	r, err := sheet.Open(pr, sheet.Limits{})
	musttest.OK(t, err)
	rows := 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for {
		if _, _, err = r.Next(); err != nil {
			break
		}
		rows++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != io.EOF || rows != rowsRead {
		t.Fatalf("%d rows, %v", rows, err)
	}
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Fatalf("the heap grew from %d to %d", before.HeapAlloc, after.HeapAlloc)
	}
}
