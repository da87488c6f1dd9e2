package sheet_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"pgregory.net/rapid"

	"dropbell/adapters/sheet"
	"dropbell/domain/job"
)

func encoded(t interface{ Fatal(...any) }, e encoding.Encoding, text string) []byte {
	raw, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const (
	simplified  = "用户编号,姓名,城市\n1001,王小明,北京市朝阳区\n1002,李婷,上海\n1003,赵鑫磊,广州市天河区体育西路\n"
	traditional = "用戶編號,姓名,城市\n1001,王小明,台北市信義區\n1002,陳怡君,高雄市\n1003,張雅婷,新竹縣竹北市光明六路\n"
)

// TestEncodings: CSV files of spreadsheet programs in China and Taiwan are read completely, even
// if the first mebibyte does not show the encoding.
func TestEncodings(t *testing.T) {
	long := "id,name,city\n" + strings.Repeat("1000,Ann,Utrecht\n", 100_000)
	for name, c := range map[string]struct {
		raw       []byte
		encoding  string
		ambiguous bool
		want      string // the last row
	}{
		"UTF-8":          {[]byte(simplified), job.UTF8, false, "1003|赵鑫磊|广州市天河区体育西路"},
		"ASCII":          {[]byte("id,name,city\n1,Ann,x\n"), job.UTF8, false, "1|Ann|x"},
		"GBK":            {encoded(t, simplifiedchinese.GBK, simplified), job.GB18030, false, "1003|赵鑫磊|广州市天河区体育西路"},
		"GB18030":        {encoded(t, simplifiedchinese.GB18030, simplified+"1004,𠮷野,㐀\n"), job.GB18030, false, "1004|𠮷野|㐀"},
		"Big5":           {encoded(t, traditionalchinese.Big5, traditional), job.Big5, false, "1003|張雅婷|新竹縣竹北市光明六路"},
		"GBK late":       {append([]byte(long), encoded(t, simplifiedchinese.GBK, simplified[strings.Index(simplified, "\n")+1:])...), job.GB18030, false, "1003|赵鑫磊|广州市天河区体育西路"},
		"Big5 late":      {append([]byte(long), encoded(t, traditionalchinese.Big5, traditional[strings.Index(traditional, "\n")+1:])...), job.Big5, false, "1003|張雅婷|新竹縣竹北市光明六路"},
		"rare in GBK":    {encoded(t, simplifiedchinese.GBK, "id,name,city\n1,陳怡君張雅婷,囍囍囍\n"), job.GB18030, true, "1|陳怡君張雅婷|囍囍囍"},
		"Western Europe": {encoded(t, charmap.Windows1252, "id,name,city\n1,Jürgen Groß,Köln\n2,Zoë,x\n3,Ann,x\n"), job.UTF8, true, "3|Ann|x"},
		"a broken byte":  {[]byte(simplified + "5,\xff,x\n6,a,b\n"), job.UTF8, true, "6|a|b"},
	} {
		r, err := sheet.Open(bytes.NewReader(c.raw), sheet.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := r.Format(); got.Encoding != c.encoding || got.Ambiguous != c.ambiguous {
			t.Errorf("%s: %+v, want %s, ambiguous %t", name, got, c.encoding, c.ambiguous)
		}
		list, err := all(t, r)
		if err != nil || !strings.HasSuffix(list[len(list)-1], ":"+c.want) {
			t.Errorf("%s: %v, %q", name, err, list[max(0, len(list)-4):])
		}
		if want := bytes.Count(c.raw, []byte("\n")); len(list) != want {
			t.Errorf("%s: %d rows, want %d", name, len(list), want)
		}
	}
}

// TestChosenEncoding: every name is read in the encoding that staff choose. A row that is
// invalid in this encoding is reported and left out.
func TestChosenEncoding(t *testing.T) {
	for name, c := range map[string]struct {
		raw      []byte
		encoding string
		want     string
	}{
		"Western Europe":  {encoded(t, charmap.Windows1252, "id,name\n1,Jürgen Groß\n"), job.Windows1252, "[1:id|name 2:1|Jürgen Groß]"},
		"GBK":             {encoded(t, simplifiedchinese.GBK, "id,name\n1,陳\n"), job.GB18030, "[1:id|name 2:1|陳]"},
		"a broken row":    {append(encoded(t, simplifiedchinese.GBK, "id,name\n1,王\n2,x"), "\xff\n3,y\n"...), job.GB18030, "[1:id|name 2:1|王 3! 4:3|y]"},
		"the mark counts": {[]byte("\ufeffid,name\n1,王\n"), job.GB18030, "[1:id|name 2:1|王]"},
	} {
		r, err := sheet.Resume(bytes.NewReader(c.raw), sheet.Limits{}, job.Reading{Encoding: c.encoding}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if list, err := all(t, r); err != nil || fmt.Sprint(list) != c.want {
			t.Errorf("%s: %v %v, want %s", name, list, err, c.want)
		}
	}
	if _, err := sheet.Resume(strings.NewReader("id\n"), sheet.Limits{}, job.Reading{Encoding: "morse"}, nil); !errors.Is(err, sheet.ErrUnreadable) {
		t.Errorf("an encoding that nobody knows: %v", err)
	}
}

// The forms that Excel writes and old programs for the Macintosh wrote.
func TestLineEndsAndSeparators(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"sep":                    {"sep=;\r\nid;name\r\n1;a,b\r\n", "[2:id|name 3:1|a,b]"},
		"sep of one column":      {"SEP=,\nid\n1\n", "[2:id 3:1]"},
		"sep after a mark":       {"\ufeffsep=\t\nid\tname\n1\tx\n", "[2:id|name 3:1|x]"},
		"sep with a bar":         {"sep=|\nid|name\n1|x\n", "[2:id|name 3:1|x]"},
		"a name like it":         {"sep=;x\n1\n", "[1:sep=|x 2:1]"},
		"carriage returns":       {"id,name\r1,x\r2,\"y\rz\"\r", "[1:id|name 2:1|x 3:2|y\nz]"},
		"with sep":               {"sep=;\rid;name\r1;x\r", "[2:id|name 3:1|x]"},
		"quoted ends of another": {"id,name\r1,\"x\ny\"\r2,z\r", "[1:id|name 2:1|x\ny 4:2|z]"},
		"both":                   {"id,name\r\n1,\"x\ry\"\r\n2,z\r\n", "[1:id|name 2:1|x\ry 3:2|z]"},
	} {
		r, err := sheet.Open(strings.NewReader(c.file), sheet.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if list, err := all(t, r); err != nil || fmt.Sprint(list) != c.want {
			t.Errorf("%s: %q %v, want %q", name, fmt.Sprint(list), err, c.want)
		}
	}
}

// TestResumeDecoded: reading from any position in a text that needs decoding gives the same rows
// as reading the whole file. The encoding is decided once.
func TestResumeDecoded(t *testing.T) {
	cell := rapid.StringMatching(`[a-z0-9,"\n 李小明北京上海]{0,40}`)
	rapid.Check(t, func(rt *rapid.T) {
		var b bytes.Buffer
		b.WriteString(rapid.SampledFrom([]string{"", "sep=;\n"}).Draw(rt, "sep") + "编号;姓名\n")
		w := csv.NewWriter(&b)
		w.Comma = ';'
		_ = w.WriteAll(rapid.SliceOfN(rapid.SliceOfN(cell, 2, 2), 1, 150).Draw(rt, "rows"))
		raw := encoded(rt, simplifiedchinese.GBK, b.String())
		whole, err := sheet.Resume(bytes.NewReader(raw), sheet.Limits{}, job.Reading{Encoding: job.GB18030}, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var position json.RawMessage
		for {
			line, cells, err := whole.Next()
			want := fmt.Sprint(line, cells, err)
			again, openErr := sheet.Resume(bytes.NewReader(raw), sheet.Limits{}, job.Reading{Encoding: job.GB18030}, position)
			if openErr != nil {
				rt.Fatal(openErr)
			}
			line, cells, err = again.Next()
			if got := fmt.Sprint(line, cells, err); got != want {
				rt.Fatalf("after %s: %s, want %s", position, got, want)
			}
			position = whole.Position()
			if rapid.Bool().Draw(rt, "go on") {
				position = again.Position()
			}
			if err == io.EOF {
				return
			}
		}
	})
}
