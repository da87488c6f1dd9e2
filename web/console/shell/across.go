package shell

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Another is a further database of the installation, whose rows this console's lists have too.
type Another struct {
	Name  string
	Shops ShopList
	// Answers reports whether the database can be asked. Answers does not wait.
	Answers func() bool
}

// CellParam is the parameter with the name of the database that a page is about, for lists of one
// database.
const CellParam = "cell"

// partWithin is how long a page waits for the rows of a further database.
const partWithin = 2 * time.Second

// ErrSilent says that a database of the installation does not answer. A change or a file that needs
// all databases is refused then.
var ErrSilent = fault.New(fault.Unavailable, "overloaded", "a database does not answer; try again once it does")

// Across calls read with the handlers of each database side by side. cells[0] are the handlers of the
// console's own database; further ones follow in the order of [Deps.Others]. The page names each
// further database that does not answer, and its result is nil. Every other error is returned.
func Across[H, T any](sh *Shell, r *http.Request, cells []H, read func(H, *http.Request) (T, error)) ([]*T, error) {
	Frame(r).Joined = true
	got, reads := make([]*T, len(cells)), make([]func() error, len(cells))
	for n, h := range cells {
		reads[n] = func() error {
			own := r
			if n > 0 {
				if !sh.others[n-1].Answers() {
					return nil
				}
				ctx, cancel := context.WithTimeout(r.Context(), partWithin)
				defer cancel()
				own = r.WithContext(ctx)
			}
			v, err := read(h, own)
			switch {
			case err == nil:
				got[n] = &v
			case n > 0 && r.Context().Err() == nil && (own.Context().Err() != nil || fault.KindOf(err) == fault.Unavailable):
				return nil
			}
			return err
		}
	}
	err := Together(reads...)
	for n, v := range got {
		if v == nil && n > 0 && !slices.Contains(Frame(r).Silent, sh.others[n-1].Name) {
			Frame(r).Silent = append(Frame(r).Silent, sh.others[n-1].Name)
		}
	}
	return got, err
}

// AcrossAll is [Across] for changes and files, which need all databases: without the answer of one
// the error is [ErrSilent].
func AcrossAll[H, T any](sh *Shell, r *http.Request, cells []H, read func(H, *http.Request) (T, error)) ([]*T, error) {
	got, err := Across(sh, r, cells, read)
	if err == nil && slices.Contains(got, nil) {
		err = ErrSilent
	}
	return got, err
}

// A Found is a row of a list with the number of its database.
type Found[Row any] struct {
	Row   Row
	Cell  int
	after string
}

// keyBetween separates the keys of several databases in an address.
const keyBetween = "~"

// joinKeys returns the key of a place in the lists of several databases, "" for the beginning of all.
func joinKeys(keys []string) string {
	if text := strings.Join(keys, keyBetween); strings.Trim(text, keyBetween) != "" {
		return text
	}
	return ""
}

// Joined is the list with the rows of all databases. own returns the list of one database, whose rows
// stay in their order. before orders rows of different databases; equal rows are one, of a shop that is
// moving. The key of a row has the key of the last row of each database up to it, so that the rows of
// a database that was silent follow on a later page. A file needs all databases.
func Joined[H, Row any, Key comparable](sh *Shell, r *http.Request, cells []H, own func(H, *http.Request) List[Row, Key], before func(a, b Row) int) List[Found[Row], string] {
	first := own(cells[0], r)
	keys := first.Keys
	text := func(k Key) string {
		if k == *new(Key) {
			return ""
		}
		return keys.Text(k)
	}
	split := func(s string) []string {
		at := make([]string, len(cells))
		copy(at, strings.Split(s, keyBetween))
		return at
	}
	read := func(across func(*Shell, *http.Request, []int, func(int, *http.Request) ([]Row, error)) ([]*[]Row, error)) func(string, int) ([]Found[Row], error) {
		return func(after string, limit int) ([]Found[Row], error) {
			at, numbers := split(after), make([]int, len(cells))
			for n := range numbers {
				numbers[n] = n
			}
			got, err := across(sh, r, numbers, func(n int, r *http.Request) ([]Row, error) {
				var after Key
				if at[n] != "" {
					after = keys.Parse(at[n])
				}
				return own(cells[n], r).Read(after, limit)
			})
			if err != nil {
				return nil, err
			}
			var page []Found[Row]
			for len(page) < limit {
				best := -1
				for n, rows := range got {
					if rows != nil && len(*rows) > 0 && (best < 0 || before((*rows)[0], (*got[best])[0]) < 0) {
						best = n
					}
				}
				if best < 0 {
					break
				}
				row := (*got[best])[0]
				for n, rows := range got {
					if rows != nil && len(*rows) > 0 && before((*rows)[0], row) == 0 {
						at[n], *rows = text(first.KeyOf(row)), (*rows)[1:]
					}
				}
				page = append(page, Found[Row]{row, best, joinKeys(at)})
			}
			return page, nil
		}
	}
	l := List[Found[Row], string]{Broken: first.Broken, KeyOf: func(f Found[Row]) string { return f.after },
		Read: read(Across[int, []Row]), Whole: read(AcrossAll[int, []Row]),
		Keys: Keys[string]{Param: keys.Param, URL: keys.URL, Text: func(s string) string { return s }, Parse: func(s string) string {
			at := split(s)
			for n := range at {
				at[n] = text(keys.Parse(at[n]))
			}
			return joinKeys(at)
		}}}
	if first.File.Name != "" {
		l.File = FileOf(first.File.Name, first.File.Head, func(f Found[Row]) []any { return first.File.Cells(f.Row) })
	}
	return l
}

// Rows returns the rows without their databases.
func Rows[Row any](list []Found[Row]) []Row {
	rows := make([]Row, len(list))
	for i, f := range list {
		rows[i] = f.Row
	}
	return rows
}

// Merged returns the rows of the databases that answered as one list in the order of before, at most
// limit rows; 0 = all rows.
func Merged[Row any](got []*[]Row, before func(a, b Row) int, limit int) (all []Row) {
	for _, rows := range got {
		if rows != nil {
			all = append(all, *rows...)
		}
	}
	slices.SortStableFunc(all, before)
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all
}

// AllShopsOf lists the shops of all databases that the viewer is in charge of, by number.
func (sh *Shell) AllShopsOf(r *http.Request) ([]template.Shop, error) {
	lists := []ShopList{sh.shops}
	for _, o := range sh.others {
		lists = append(lists, o.Shops)
	}
	got, err := Across(sh, r, lists, func(of ShopList, r *http.Request) ([]template.Shop, error) { return of.Shops(r.Context()) })
	if err != nil {
		return nil, err
	}
	byNumber := func(a, b template.Shop) int { return cmp.Compare(a.Number, b.Number) }
	all := Merged(got, byNumber, 0)
	all = slices.CompactFunc(all, func(a, b template.Shop) bool { return a.Number == b.Number }) // while it moves
	return slices.DeleteFunc(all, func(s template.Shop) bool { return !Actor(r).Can(staff.View, s.Number) }), nil
}
