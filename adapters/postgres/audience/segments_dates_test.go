package audience_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/segment"
)

// among returns which of the texts, as an attribute, satisfy the condition.
func (w *fixture) among(texts []string, op segment.Op, value string) (found []string) {
	w.Helper()
	w.Exec(`delete from users`)
	w.Exec(`insert into users (id, attributes) select n, jsonb_build_object('at', v) from unnest($1::text[]) with ordinality as t (v, n)`, texts)
	segments := audiencedb.NewSegments(w.DB)
	g := w.segment("dates", segment.Leaf(segment.Attribute, "at", op, value))
	ids, err := segments.Members(w.Context(), g.ID, 0, len(texts)+1)
	if err != nil {
		w.Fatalf("%s %s among %q: %v", op, value, texts, err)
	}
	for _, id := range ids {
		found = append(found, texts[id-1])
	}
	return found
}

func TestSegmentsCompareInstants(t *testing.T) {
	w := newFixture(t)
	for _, c := range []struct {
		op        segment.Op
		value     string
		yes, miss []string
	}{
		{segment.Before, "2026-01-16T00:00:00Z", []string{"2026-01-16T01:00:00+08:00", "2026-01-15", "2026-01-15T23:59:59.999Z", "1969-07-20"},
			[]string{"2026-01-15T23:30:00-08:00", "2026-01-16", "2026-01-16T00:00:00.001Z", "2026-01-14 foo", "2026-00-01"}},
		{segment.Before, "2026-01-16", []string{"2026-01-16T01:00:00+08:00"}, []string{"2026-01-15T23:30:00-08:00", "2026-01-16"}},
		{segment.Before, "2026-01-16T08:00:00.5+08:00", []string{"2026-01-16", "2026-01-16T00:00:00.499Z", "2026-01-16T00:00:00.4999999Z"}, []string{"2026-01-16T00:00:00.5Z"}},
		{segment.After, "2026-12-31", []string{"2027-01-01", "2026-12-31T23:00:00-08:00"},
			[]string{"2026-99-99 foo", "2026-12-31", "2026-12-31T23:59:59Z", "2027-01-01T07:00:00+08:00", "2027-13-01", "9999"}},
		{segment.After, "2026-02-01T00:00:00Z", []string{"2028-02-29", "2026-02-28", "2400-02-29"},
			[]string{"2026-02-30", "2027-02-29", "2100-02-29", "2026-04-31", "2026-03-01T24:00:00Z", "2026-03-01T10:00:60Z", "2026-03-01T10:00:00", "2026-03-01T10:00:00+24:00"}},
	} {
		if got := w.among(slices.Concat(c.yes, c.miss), c.op, c.value); !slices.Equal(got, c.yes) {
			t.Errorf("%s %s: %q, want %q", c.op, c.value, got, c.yes)
		}
	}
}

// TestNoTextIsTooStrangeToCompare: every text of an attribute is an instant or matches nothing,
// and never an error.
func TestNoTextIsTooStrangeToCompare(t *testing.T) {
	w := newFixture(t)
	part := rapid.SampledFrom([]string{"00", "01", "02", "04", "12", "13", "23", "24", "28", "29", "30", "31", "32", "59", "60", "99"})
	date := rapid.Custom(func(t *rapid.T) string {
		year := rapid.SampledFrom([]string{"2026", "2028", "2100", "2000", "0000", "0001", "9999", "1900"}).Draw(t, "year")
		return fmt.Sprintf("%s-%s-%s", year, part.Draw(t, "month"), part.Draw(t, "day"))
	})
	instants := rapid.Custom(func(t *rapid.T) string {
		fraction := rapid.SampledFrom([]string{"", ".", ".5", ".123456", ".000001", ".999999999", ",5"}).Draw(t, "fraction")
		offset := rapid.SampledFrom([]string{"", "Z", "z", "+08:00", "-15:59", "+16:00", "+24:00", "-12:60", "+0800"}).Draw(t, "offset")
		between := rapid.SampledFrom([]string{"T", "t", " "}).Draw(t, "between")
		return fmt.Sprintf("%s%s%s:%s:%s%s%s", date.Draw(t, "date"), between, part.Draw(t, "hour"), part.Draw(t, "minute"), part.Draw(t, "second"), fraction, offset)
	})
	junk := rapid.StringMatching(`[0-9-]{0,10}[T .:+Z0-9infinityepoch-]{0,20}`)
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(date, instants, junk, rapid.String()), 100, 100).Draw(rt, "texts")
		for i, s := range texts {
			texts[i] = strings.ReplaceAll(s, "\x00", "")
		}
		day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
		var before, after []string
		for _, s := range texts {
			at, ok := instant(s)
			if ok && at.Before(day) {
				before = append(before, s)
			} else if ok && !at.Before(day.AddDate(0, 0, 1)) {
				after = append(after, s)
			}
		}
		if got := w.among(texts, segment.Before, "2026-02-28"); !slices.Equal(got, before) {
			rt.Fatalf("before: %q, want %q", got, before)
		}
		if got := w.among(texts, segment.After, "2026-02-28"); !slices.Equal(got, after) {
			rt.Fatalf("after: %q, want %q", got, after)
		}
	})
}
