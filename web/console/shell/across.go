package shell

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	// Unread is [Deps.Unread] of the database.
	Unread func(ctx context.Context, m staff.Member) (int, error)
}

// CellParam is the parameter with the name of the database that a page is about; see [OfOne].
const CellParam = "cell"

// InCell returns the address of a page with the name of database n, if the page is about one database.
func (sh *Shell) InCell(r *http.Request, n int, address string) string {
	path, query, _ := strings.Cut(address, "?")
	if names := Frame(r).Cells; n < len(names) && sh.OfOne(http.MethodGet, path) {
		values, _ := url.ParseQuery(query)
		values.Set(CellParam, names[n])
		return path + "?" + values.Encode()
	}
	return address
}

// partWithin is how long a page waits for the rows of a further database.
const partWithin = 2 * time.Second

// ErrSilent says that a database of the installation does not answer. A change or a file that needs
// all databases is refused then.
var ErrSilent = fault.New(fault.Unavailable, "overloaded", "a database does not answer; try again once it does")

// Across calls read with the handlers of each database side by side. cells[0] are the handlers of the
// console's own database; further ones follow in the order of [Deps.Others]. The page names each
// further database that does not answer, and its result is nil. Every other error is returned.
func Across[H, T any](sh *Shell, r *http.Request, cells []H, read func(H, *http.Request) (T, error)) ([]*T, error) {
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
	sh.naming.Lock()
	defer sh.naming.Unlock()
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

// First returns what the first of the databases that has it returns, and the place of the database.
// read returns an error of the kind [fault.NotFound] in the other databases. If none has it the error
// is that of the console's own database, or [ErrSilent] while a database does not answer.
func First[H, T any](sh *Shell, r *http.Request, cells []H, read func(H, *http.Request) (T, error)) (v T, place int, err error) {
	if len(cells) == 1 {
		v, err = read(cells[0], r)
		return v, 0, err
	}
	type answer struct {
		v       T
		missing error
	}
	got, err := Across(sh, r, cells, func(h H, r *http.Request) (answer, error) {
		v, err := read(h, r)
		if fault.KindOf(err) == fault.NotFound {
			return answer{missing: err}, nil
		}
		return answer{v: v}, err
	})
	if err != nil {
		return v, 0, err
	}
	for n, a := range got {
		if a != nil && a.missing == nil {
			return a.v, n, nil
		}
	}
	if slices.Contains(got, nil) {
		return v, 0, ErrSilent
	}
	return v, 0, got[0].missing
}

// All returns the rows of all databases in the order of before, at most limit rows; 0 = all rows. Equal
// rows are one, of a shop that is moving. Rows of a single database stay in its order.
func All[H, Row any](sh *Shell, r *http.Request, cells []H, read func(H, *http.Request) ([]Row, error), before func(a, b Row) int, limit int) ([]Row, error) {
	if len(cells) == 1 {
		return read(cells[0], r)
	}
	got, err := Across(sh, r, cells, read)
	all := slices.CompactFunc(Merged(got, before, 0), func(a, b Row) bool { return before(a, b) == 0 })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, err
}

// CellOf returns the place of the database that has the shop with the number that was typed or chosen.
// Text that is no number, and a shop that no database has, is for the console's own one to refuse.
func (sh *Shell) CellOf(shop string) (place int, err error) {
	number, err := strconv.ParseInt(strings.TrimSpace(Narrow(shop)), 10, 64)
	if err != nil || len(sh.others) == 0 {
		return 0, nil
	}
	place, known := sh.shopCell(number)
	if !known {
		return 0, ErrSilent
	}
	return place, nil
}

// AtShop serves a form with the handlers of the database that has the shop in the field.
func AtShop[H any](sh *Shell, cells []H, field string, serve func(H, http.ResponseWriter, *http.Request) error) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		place, err := sh.CellOf(r.PostFormValue(field))
		if err != nil {
			return err
		}
		return serve(cells[place], w, r)
	}
}

// Settling calls do with the place of the database for a shop that may be new.
func (sh *Shell) Settling(r *http.Request, shop int64, do func(place int) error) error {
	if len(sh.others) == 0 {
		return do(0)
	}
	err, done := error(ErrSilent), false
	failed := sh.settle(r.Context(), shop, func(place int) { done, err = true, do(place) })
	if !done && r.Context().Err() != nil {
		err = failed
	}
	return err
}

// A Found is a row of a list with the number of its database.
type Found[Row any] struct {
	Row   Row
	Cell  int
	after string
}

// keyBetween separates the keys of several databases in an address.
const keyBetween = "~"

// JoinKeys returns the key of a place in the lists of several databases, "" for the beginning of all.
func JoinKeys(keys []string) string {
	if text := strings.Join(keys, keyBetween); strings.Trim(text, keyBetween) != "" {
		return text
	}
	return ""
}

// SplitKeys returns the keys of n databases that [JoinKeys] has joined.
func SplitKeys(key string, n int) []string {
	at := make([]string, n)
	copy(at, strings.Split(key, keyBetween))
	return at
}

// JoinedKeys are the keys of a list with the rows of n databases; keys are those of a database's own list.
func JoinedKeys[Key comparable](keys Keys[Key], n int) Keys[string] {
	return Keys[string]{Param: keys.Param, URL: keys.URL, Text: func(s string) string { return s }, Parse: func(s string) string {
		at := SplitKeys(s, n)
		for i := range at {
			at[i] = keys.joined(keys.Parse(at[i]))
		}
		return JoinKeys(at)
	}}
}

// joined returns the text of a key among the keys of several databases; "" is the beginning.
func (k Keys[Key]) joined(key Key) string {
	if key == *new(Key) {
		return ""
	}
	return k.Text(key)
}

// Numbers are the places of n databases.
func Numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Joined is the list with the rows of all databases. own returns the list of one database, whose rows
// stay in their order. before orders rows of different databases; equal rows are one, of a shop that is
// moving. The key of a row has the key of the last row of each database up to it, so that the rows of
// a database that was silent follow on a later page. A file needs all databases.
func Joined[H, Row any, Key comparable](sh *Shell, r *http.Request, cells []H, own func(H, *http.Request) List[Row, Key], before func(a, b Row) int) List[Found[Row], string] {
	first := own(cells[0], r)
	keys := first.Keys
	read := func(across func(*Shell, *http.Request, []int, func(int, *http.Request) ([]Row, error)) ([]*[]Row, error)) func(string, int) ([]Found[Row], error) {
		return func(after string, limit int) ([]Found[Row], error) {
			at := SplitKeys(after, len(cells))
			got, err := across(sh, r, Numbers(len(cells)), func(n int, r *http.Request) ([]Row, error) {
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
						at[n], *rows = keys.joined(first.KeyOf(row)), (*rows)[1:]
					}
				}
				page = append(page, Found[Row]{row, best, JoinKeys(at)})
			}
			return page, nil
		}
	}
	l := List[Found[Row], string]{Broken: first.Broken, KeyOf: func(f Found[Row]) string { return f.after },
		Read: read(Across[int, []Row]), Whole: read(AcrossAll[int, []Row]), Keys: JoinedKeys(keys, len(cells))}
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
	all, err := All(sh, r, lists, func(of ShopList, r *http.Request) ([]template.Shop, error) { return of.Shops(r.Context()) },
		func(a, b template.Shop) int { return cmp.Compare(a.Number, b.Number) }, 0)
	return slices.DeleteFunc(all, func(s template.Shop) bool { return !Actor(r).Can(staff.View, s.Number) }), err
}
