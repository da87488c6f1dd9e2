package shell

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"dropbell/domain/fault"
	"dropbell/views/ui"
)

// row is at an instant; ids of a database are in the order of instants, and others have greater ones.
type row struct{ at, id int64 }

// TestJoinedLists: rows of all databases come in the order of time, each once, whatever the size of a
// page, also a row that two databases have. While a database is silent it is named, and its rows
// follow when it answers; a file is refused.
func TestJoinedLists(t *testing.T) {
	rows := [][]row{{{9, 3}, {7, 2}, {2, 1}}, {{8, 300}, {7, 250}, {6, 240}, {1, 200}}, {}, {{10, 370}, {8, 300}}}
	silent := map[int]bool{}
	sh := &Shell{}
	for n := range rows[1:] {
		sh.others = append(sh.others, Another{Name: string(rune('b' + n)), Answers: func() bool { return !silent[n+1] }})
	}
	list := func(r *http.Request, cells []int) List[Found[row], string] {
		return Joined(sh, r, cells, func(n int, _ *http.Request) List[row, int64] {
			return List[row, int64]{Keys: IDs(), Read: func(before int64, limit int) (page []row, _ error) {
				if n == 2 && silent[99] {
					return nil, fault.New(fault.Unavailable, "overloaded", "")
				}
				for _, one := range rows[n] {
					if (before == 0 || one.id < before) && len(page) < limit {
						page = append(page, one)
					}
				}
				return page, nil
			}, KeyOf: func(o row) int64 { return o.id }}
		}, func(a, b row) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id)) })
	}
	request := func(key string) *http.Request {
		r := httptest.NewRequest("GET", "/?before="+key, nil)
		return r.WithContext(ui.With(r.Context(), &ui.Frame{}))
	}
	all := []int{0, 1, 2, 3}
	for limit := 1; limit < 10; limit++ {
		var got []string
		for key := ""; ; {
			r := request(key)
			l := list(r, all)
			page, err := l.Read(l.In(r), limit)
			if err != nil || Frame(r).Silent != nil {
				t.Fatal(err, Frame(r).Silent)
			}
			for _, f := range page {
				got = append(got, fmt.Sprint(f.Row.id, "/", f.Cell))
			}
			if len(page) < limit {
				break
			}
			key = l.KeyOf(page[len(page)-1])
		}
		if strings.Join(got, " ") != "370/3 3/0 300/1 250/1 2/0 240/1 1/0 200/1" {
			t.Errorf("%d a page: %v", limit, got)
		}
	}
	r := request("")
	silent[1], silent[99] = true, true
	page, err := list(r, all).Read("", 2)
	if err != nil || len(page) != 2 || !slices.Equal(Frame(r).Silent, []string{"b", "c"}) {
		t.Errorf("%v %v, silent: %v", page, err, Frame(r).Silent)
	}
	if err := list(r, all).Pages(func([]Found[row]) error { return nil }); !errors.Is(err, ErrSilent) {
		t.Errorf("a file without a database: %v", err)
	}
	clear(silent)
	r = request(page[1].after)
	l := list(r, all)
	if page, _ := l.Read(l.In(r), 9); len(page) != 6 || page[0].Row.id != 300 {
		t.Errorf("the rows of a database that answers again: %v", page)
	}
	for key, want := range map[string]string{"x": "", "~~": "", "5~x~7": "5~~7~", "-1~3": "~3~~"} {
		if got := l.In(request(key)); got != want {
			t.Errorf("%q is the place %q, want %q", key, got, want)
		}
	}
	r = request("3")
	l = list(r, all[:1])
	if page, _ := l.Read(l.In(r), 9); len(page) != 2 || page[0].after != "2" {
		t.Errorf("one database: %v", page)
	}
}
