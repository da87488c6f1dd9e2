package cells

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/cell"
)

// A List says how the answers of all cells to one operation become one answer. The zero List joins the
// arrays of the answers, without pages.
type List struct {
	// Items is the array of the answer that is merged by At, then ID, the greatest first. Other arrays are
	// joined.
	Items, At, ID string
	// Cursor is the parameter of the next page.
	Cursor string
	Pages  Pages
	// Ascending is whether order=asc puts the earliest first.
	Ascending bool
	// Counts are numbers that are added, up to a bound; Latest are instants of which the latest counts.
	Counts map[string]int
	Latest []string
	// Sums is whether all numbers are added, also those of objects within the answer.
	Sums bool
}

// Pages is what the cursor of a list means.
type Pages int

const (
	// ByItem: the cursor is the id of the last item.
	ByItem Pages = iota
	// ByInstant: the cursor is the instant of the last item, and items of one instant stay together.
	ByInstant
	// ByPage: the cursor is the program's own. A page has the pages of all cells.
	ByPage
)

// usualLimit is how many items a page has unless the request says otherwise.
const usualLimit = 50

// An Operation is an operation of the API, with the method GET, whose answer all cells have a part of.
// Path is below the base and the first part of addresses of staff; {name} is any part.
type Operation struct {
	Staff bool
	Path  string
	List
}

func (f *Front) listAt(method string, staff bool, part []string) (List, bool) {
	if method != http.MethodGet {
		return List{}, false
	}
	for _, o := range f.Lists {
		want := strings.Split(o.Path, "/")
		if o.Staff == staff && slices.EqualFunc(want, part, func(a, b string) bool { return strings.HasPrefix(a, "{") || a == b }) {
			return o.List, true
		}
	}
	return List{}, false
}

// object is an answer in JSON.
type object map[string]json.RawMessage

// item is one element of a list.
type item struct {
	at  time.Time
	id  string
	raw json.RawMessage
}

// after orders items: the latest first, then the greatest id.
func (a item) after(b item) int {
	return cmp.Or(b.at.Compare(a.at), cmp.Compare(len(b.id), len(a.id)), cmp.Compare(b.id, a.id))
}

// part is what one cell has of a list.
type part struct {
	cell  int
	items []item
	next  string
}

// serve answers the request with the parts of all cells.
func (l List) serve(f *Front, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	cursors := f.cursors(q.Get(l.Cursor))
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = usualLimit
	}
	var ask []int
	for n := range f.cells {
		if cursors[n] != ended {
			ask = append(ask, n)
		}
	}
	got := f.ask(r.Context(), ask, func(ctx context.Context, n int) *http.Request {
		c := again(ctx, r, nil)
		if l.Cursor != "" && q.Has(l.Cursor) {
			own := url.Values{}
			for name, values := range q {
				own[name] = values
			}
			if own.Set(l.Cursor, cursors[n]); cursors[n] == "" {
				own.Del(l.Cursor)
			}
			u := *r.URL
			u.RawQuery = own.Encode()
			c.URL, c.RequestURI = &u, u.RequestURI()
		}
		return c
	})
	answers := make([]*answer, len(f.cells))
	for range ask {
		a := <-got
		answers[a.from] = a.answer
	}
	joined, parts := object{}, []part(nil)
	for _, n := range ask {
		var o object
		if a := answers[n]; a.good() && json.Unmarshal(a.body.Bytes(), &o) == nil {
			l.join(joined, o)
			parts = append(parts, l.part(n, o))
		}
	}
	if len(parts) == 0 {
		f.refusal(w, r, of(answers, ask))
		return
	}
	if l.Items != "" {
		l.merge(joined, parts, limit, cursors, r.URL.Query().Get("order") == "asc" && l.Ascending)
	}
	header := w.Header()
	for _, n := range ask {
		if answers[n].good() {
			for name, values := range answers[n].header {
				header[name] = values
			}
			break
		}
	}
	header.Del("Content-Length")
	header.Del("ETag")
	f.nameOf(header, answers, ask)
	_ = json.NewEncoder(w).Encode(joined)
}

func of(answers []*answer, cells []int) (some []*answer) {
	for _, n := range cells {
		some = append(some, answers[n])
	}
	return some
}

// nameOf names the cells among those asked whose answers are missing.
func (f *Front) nameOf(h http.Header, answers []*answer, asked []int) {
	var names []string
	for _, n := range asked {
		if !answers[n].good() {
			names = append(names, f.cells[n].Name)
		}
	}
	if len(names) > 0 {
		h.Set(MissingHeader, strings.Join(names, ","))
	}
}

// part reads the items of one cell's answer.
func (l List) part(n int, o object) part {
	p := part{cell: n, next: text(o["next"])}
	var raws []json.RawMessage
	_ = json.Unmarshal(o[l.Items], &raws)
	for _, raw := range raws {
		var fields object
		_ = json.Unmarshal(raw, &fields)
		it := item{id: text(fields[l.ID]), raw: raw}
		it.at, _ = time.Parse(time.RFC3339Nano, text(fields[l.At]))
		p.items = append(p.items, it)
	}
	return p
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// join adds what an answer has beside the items.
func (l List) join(to, o object) {
	for name, raw := range o {
		old, has := to[name]
		switch {
		case name == l.Items || name == "next":
		case !has:
			to[name] = raw
		case l.Counts[name] > 0:
			var a, b int
			_, _ = json.Unmarshal(old, &a), json.Unmarshal(raw, &b)
			to[name], _ = json.Marshal(min(a+b, l.Counts[name]))
		case slices.Contains(l.Latest, name):
			to[name], _ = json.Marshal(later(text(old), text(raw)))
		case l.Sums && raw[0] != '[' && raw[0] != '"':
			to[name] = added(old, raw)
		case len(raw) > 0 && raw[0] == '[':
			var a, b []json.RawMessage
			_, _ = json.Unmarshal(old, &a), json.Unmarshal(raw, &b)
			to[name], _ = json.Marshal(append(a, b...))
		}
	}
}

// added returns the sum of two numbers, or of the numbers of two objects.
func added(a, b json.RawMessage) json.RawMessage {
	var own, other object
	if json.Unmarshal(a, &own) == nil && json.Unmarshal(b, &other) == nil && own != nil && other != nil {
		for name, raw := range other {
			own[name] = added(own[name], raw)
		}
		sum, _ := json.Marshal(own)
		return sum
	}
	var x, y float64
	_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y)
	sum, _ := json.Marshal(x + y)
	return sum
}

// merge adds a page of at most limit items, and the cursor of the next one. The cursor of a cell whose
// part is missing stays, so that a later page has its items.
func (l List) merge(to object, parts []part, limit int, cursors []string, ascending bool) {
	var page []item
	next := ""
	switch l.Pages {
	case ByItem:
		if l.Cursor == "" {
			for _, p := range parts {
				page = append(page, p.items...)
			}
			slices.SortStableFunc(page, func(a, b item) int { return b.after(a) }) // by number
			break
		}
		page = take(parts, limit, cursors)
		next = joinCursors(cursors)
	case ByInstant:
		more := false
		for _, p := range parts {
			page = append(page, p.items...)
			more = more || p.next != ""
		}
		slices.SortStableFunc(page, item.after)
		end := min(limit, len(page))
		for end > 0 && end < len(page) && page[end].at.Equal(page[end-1].at) {
			end++
		}
		if more = more || end < len(page); more && end > 0 {
			next = page[end-1].at.Format(time.RFC3339Nano)
		}
		page = page[:end]
	case ByPage:
		for _, p := range parts {
			page = append(page, p.items...)
			if cursors[p.cell] = p.next; p.next == "" {
				cursors[p.cell] = ended
			}
		}
		slices.SortStableFunc(page, func(a, b item) int {
			if ascending {
				return b.after(a)
			}
			return a.after(b)
		})
		next = joinCursors(cursors)
	}
	raws := make([]json.RawMessage, len(page))
	for i, it := range page {
		raws[i] = it.raw
	}
	to[l.Items], _ = json.Marshal(raws)
	if next != "" {
		to["next"], _ = json.Marshal(next)
	}
}

// take takes up to limit items from the heads of the parts, and moves the cursor of each part behind
// its last item that was taken. The order within a part stays.
func take(parts []part, limit int, cursors []string) (page []item) {
	for len(page) < limit {
		best := -1
		for i, p := range parts {
			if len(p.items) > 0 && (best < 0 || p.items[0].after(parts[best].items[0]) < 0) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		p := &parts[best]
		page, cursors[p.cell], p.items = append(page, p.items[0]), p.items[0].id, p.items[1:]
	}
	for _, p := range parts {
		if len(p.items) == 0 && p.next == "" {
			cursors[p.cell] = ended
		}
	}
	return page
}

// ended is the cursor of a cell that has no further items.
const ended = "-"

// cursorForm begins the text of cursors of several cells, with the version of the form.
const cursorForm = "c1-"

// joinCursors returns the cursors of the cells as one text, "" if all have ended.
func joinCursors(cursors []string) string {
	if !slices.ContainsFunc(cursors, func(c string) bool { return c != ended }) {
		return ""
	}
	return cursorForm + base64.RawURLEncoding.EncodeToString([]byte(strings.Join(cursors, "\x00")))
}

// cursors returns the cursors of the cells in a text that joinCursors has written. Any other text is
// the cursor of each cell.
func (f *Front) cursors(text string) []string {
	own := slices.Repeat([]string{text}, len(f.cells))
	rest, ok := strings.CutPrefix(text, cursorForm)
	if !ok {
		return own
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest)
	if list := strings.Split(string(raw), "\x00"); err == nil && len(list) <= len(own) {
		clear(own) // a cell that was added since begins at its newest item
		copy(own, list)
	}
	return own
}

// cellNamed returns the number of the cell called name.
func (f *Front) cellNamed(name string) (cell.Number, bool) {
	for n, c := range f.cells {
		if c.Name == name {
			return cell.Number(n), true
		}
	}
	return 0, false
}
