package shell

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"dropbell/domain/fault"
)

// countdown is a list of the numbers from n to 1.
func countdown(n int64) List[int64, int64] {
	return List[int64, int64]{Keys: IDs(), Read: func(before int64, limit int) (list []int64, _ error) {
		if before == 0 {
			before = n + 1
		}
		for x := before - 1; x > 0 && len(list) < limit; x-- {
			list = append(list, x)
		}
		return list, nil
	}, KeyOf: func(x int64) int64 { return x }}
}

// The pages of a list follow one another, with the filter in their addresses.
func TestPagesOfAList(t *testing.T) {
	const n = 2*PageSize + 1
	l := countdown(n)
	l.File.Name = "numbers"
	url, read := "/numbers?q=x&state=", 0
	for page := range 3 {
		list, paged, err := l.Page(httptest.NewRequest("GET", url, nil))
		if err != nil {
			t.Fatal(err)
		}
		read += len(list)
		if first := page == 0; first != (paged.First == "") || !first && paged.First != "/numbers?q=x" || paged.Export != "/numbers.csv?q=x" || paged.Further {
			t.Errorf("page %d: %+v", page, paged)
		}
		want := "/numbers?before=" + strconv.FormatInt(list[len(list)-1], 10) + "&q=x"
		if page == 2 {
			want = ""
		}
		if paged.Next != want {
			t.Errorf("page %d continues at %q, want %q", page, paged.Next, want)
		}
		url = paged.Next
	}
	if read != n {
		t.Errorf("%d rows on three pages, want %d", read, n)
	}
}

// A list whose filter cannot be read has no rows, and reads none.
func TestListWithABrokenFilter(t *testing.T) {
	l := countdown(3)
	l.Broken = []fault.Field{{Name: "state"}}
	list, paged, err := l.Page(httptest.NewRequest("GET", "/numbers?state=x&before=2", nil))
	if err != nil || len(list) > 0 || len(paged.Errors) != 1 || paged.First+paged.Next+paged.Export != "" {
		t.Errorf("%v, %+v, %v", list, paged, err)
	}
}

// A list with addresses of its own for its pages.
func TestAddressesOfAList(t *testing.T) {
	l := countdown(PageSize + 2)
	l.URL = func(key string) string { return "/own?fingerprint=&before=" + key }
	_, paged, err := l.Page(httptest.NewRequest("GET", "/numbers?before="+strconv.Itoa(PageSize+2), nil))
	if err != nil || paged.First != "/own?fingerprint=&before=" || paged.Next != "/own?fingerprint=&before=2" {
		t.Errorf("%+v, %v", paged, err)
	}
}

// A key that no page has written is the beginning.
func TestKeysInAddresses(t *testing.T) {
	at := Place{time.Date(2026, 11, 20, 12, 0, 0, 123_000, time.UTC), 7}
	for _, separator := range []string{".", "-", "_"} {
		keys := Places(separator)
		if got := keys.Parse(keys.Text(at)); got != at {
			t.Errorf("%q is read as %v, want %v", keys.Text(at), got, at)
		}
		for _, text := range []string{"", "x", "0" + separator + "1", "-5" + separator + "1", "1" + separator, "9000000000000000000" + separator + "1"} {
			if got := keys.Parse(text); got != (Place{}) {
				t.Errorf("%q is read as %v", text, got)
			}
		}
	}
	for text, want := range map[string]int64{"": 0, "x": 0, "-3": 0, "9": 9} {
		if got := IDs().Parse(text); got != want {
			t.Errorf("%q is read as %d, want %d", text, got, want)
		}
	}
}
