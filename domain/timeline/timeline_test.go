package timeline

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// both are the two sources, in memory.
type both struct {
	lines   []Line
	batches []delivery.BatchRow
	looks   int // batches that one read looks at; those of odd number are not the user's
}

func (s both) Timeline(_ context.Context, q Query) (list []Line, _ error) {
	for _, l := range s.lines {
		if (q.After.IsZero() || l.compare(q.After) > 0) && len(list) < q.Limit {
			list = append(list, l)
		}
	}
	return list, nil
}

func (s both) Batches(_ context.Context, _ staff.Actor, q delivery.BatchQuery) (p delivery.BatchPage, _ error) {
	seen := 0
	for _, b := range s.batches {
		if q.After.ID != 0 && (Cursor{b.DueAt, 0, b.ID}).compare(Cursor{q.After.DueAt, 0, q.After.ID}) <= 0 {
			continue
		}
		if seen == s.looks || len(p.List) == q.Limit {
			p.More = true
			break
		}
		seen++
		p.Next = delivery.BatchCursor{DueAt: b.DueAt, ID: b.ID}
		if b.ID%2 == 0 {
			p.List = append(p.List, b)
		}
	}
	return p, nil
}

// Paging through both sources shows each line once and in order, whatever the instants, sizes and
// bounds are.
func TestPagesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func() time.Time { return time.UnixMicro(1e15 + int64(rapid.IntRange(0, 9).Draw(t, "at"))).UTC() }
		s := both{looks: rapid.IntRange(1, 9).Draw(t, "looks")}
		var want []string
		for i := range rapid.IntRange(0, 25).Draw(t, "lines") {
			s.lines = append(s.lines, Line{Cursor: Cursor{at(), rapid.IntRange(1, 3).Draw(t, "rank"), int64(i + 1)}, Kind: Claimed})
		}
		var all []Cursor
		for i := range rapid.IntRange(0, 25).Draw(t, "batches") {
			b := delivery.BatchRow{ID: int64(i + 1), DueAt: at()}
			if s.batches = append(s.batches, b); b.ID%2 == 0 {
				all = append(all, Cursor{b.DueAt, 0, b.ID})
			}
		}
		slices.SortFunc(s.lines, func(a, b Line) int { return a.compare(b.Cursor) })
		slices.SortFunc(s.batches, func(a, b delivery.BatchRow) int {
			return Cursor{a.DueAt, 0, a.ID}.compare(Cursor{b.DueAt, 0, b.ID})
		})
		for _, l := range s.lines {
			all = append(all, l.Cursor)
		}
		slices.SortFunc(all, Cursor.compare)
		for _, c := range all {
			want = append(want, c.String())
		}
		var got []string
		q := Query{Limit: rapid.IntRange(1, 7).Draw(t, "limit")}
		for range 200 {
			p, err := (&Service{Store: s, Batches: s}).Page(context.Background(), staff.System(), q)
			if err != nil || len(p.Lines) > q.Limit {
				t.Fatalf("%d lines, %v", len(p.Lines), err)
			}
			for _, l := range p.Lines {
				got = append(got, l.Cursor.String())
			}
			if p.Next.IsZero() {
				break
			}
			q.After = ParseCursor(p.Next.String())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("listed %v, want %v", got, want)
		}
	})
}

func TestCursorOfAnyText(t *testing.T) {
	for _, text := range []string{"", "x", "1.2", "1.2.3.4", "-1.0.1", "1.-1.1", "9999999999999999.0.1", "1.100.1", "1.1.99999999999999999999"} {
		if c := ParseCursor(text); !c.IsZero() {
			t.Errorf("%q is %+v", text, c)
		}
	}
	c := Cursor{time.UnixMicro(1_700_000_000_123_456).UTC(), 3, -7}
	if got := ParseCursor(c.String()); got != c {
		t.Error(fmt.Sprint(got, " is not ", c))
	}
}
