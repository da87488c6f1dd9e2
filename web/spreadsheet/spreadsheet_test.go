package spreadsheet

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// No cell begins with a character that makes a spreadsheet execute it, and no other cell is
// changed.
func TestCellsAreHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("=+-@\t\r\n '\"|%＝＋－＠ab1é长,;\u3000\u00A0")), 0, 8, -1).Draw(t, "text")
		got := harmless(s)
		if got != s && got != "'"+s {
			t.Fatalf("%q became %q", s, got)
		}
		if bare := strings.TrimLeft(got, " \u00A0\u3000"); strings.ContainsAny(first(bare), "=+-@\t\r\n|%＝＋－＠") {
			t.Fatalf("%q is written as %q", s, got)
		}
		// Removing one apostrophe returns the original text.
		if back, _ := strings.CutPrefix(got, "'"); back != s {
			t.Fatalf("%q cannot be told from another text: %q", s, got)
		}
		var b strings.Builder
		w := csv.NewWriter(&b)
		_ = w.Write([]string{got, "x"})
		w.Flush()
		if !strings.Contains(s, "\r") { // readers of CSV normalise line ends
			if row, err := csv.NewReader(strings.NewReader(b.String())).Read(); err != nil || row[0] != got || row[1] != "x" {
				t.Fatalf("%q is read as %q: %v", got, row, err)
			}
		}
	})
}

func TestCells(t *testing.T) {
	at := time.Date(2026, 11, 20, 20, 0, 0, 123456000, time.FixedZone("", 8*3600))
	var none *time.Time
	var nothing *int64
	for _, c := range []struct {
		in   any
		want string
	}{{int64(-5), "-5"}, {-5, "-5"}, {"-5", "'-5"}, {at, "2026-11-20T12:00:00.123456Z"}, {&at, "2026-11-20T12:00:00.123456Z"}, {none, ""}, {nothing, ""}, {new(int64(7)), "7"}, {time.Time{}, ""}, {nil, ""}, {true, "true"}} {
		if got := Cell(c.in); got != c.want {
			t.Errorf("%v is written as %q, want %q", c.in, got, c.want)
		}
	}
}
