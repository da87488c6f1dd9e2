package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/domain/cell"
)

// places is a map that tests set.
type places struct {
	Map_ Map
	// later is what the cells say when they are asked again.
	later map[int64]cell.Number
}

func (p *places) Map() *Map { return &p.Map_ }

func (p *places) Settle(_ context.Context, shop int64, do func(cell.Number)) error {
	if p.later != nil {
		p.Map_.Shops = p.later
	}
	do(p.Map_.Shops[shop])
	return nil
}

// newFront returns the front of programs. Redeem codes begin with the number of their cell.
func newFront(p *places, programs ...http.Handler) *Front {
	var list []*Cell
	for i, h := range programs {
		list = append(list, &Cell{Name: string(rune('a' + i)), Handler: h})
	}
	return New(list, Options{Places: p, Now: time.Now, Lists: []Operation{
		{false, "coupons", List{Items: "coupons", At: "issued_at", ID: "coupon_id", Cursor: "before"}},
		{false, "inbox", List{Items: "items", At: "at", ID: "id", Cursor: "before", Pages: ByInstant, Counts: map[string]int{"unread": 100}, Latest: []string{"read_through"}}},
		{true, "users/{id}/data", List{}}, {true, "capacity", List{Sums: true}}},
		CodeCell: func(typed string) (cell.Number, bool) {
			n, err := strconv.Atoi(typed[:min(1, len(typed))])
			return cell.Number(n), err == nil
		},
		OfOne: func(_, path string) bool {
			return slices.Contains([]string{"/jobs", "/deliveries", "/users/7"}, path)
		},
		LinkDrop:     parse,
		LinkCampaign: parse,
	})
}

func get(h http.Handler, path string) (int, map[string]any, http.Header) {
	return call(h, "GET", path, "")
}

func call(h http.Handler, method, path, body string) (int, map[string]any, http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	var o map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &o)
	return w.Code, o, w.Header()
}

type coupon struct {
	ID int64     `json:"coupon_id,string"`
	At time.Time `json:"issued_at"`
}

// couponList answers GET /coupons as the API does: the newest first, by ids.
func couponList(all []coupon) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before, err := strconv.ParseInt(r.FormValue("before"), 10, 64)
		if err != nil {
			before = 1 << 62
		}
		limit, err := strconv.Atoi(r.FormValue("limit"))
		if err != nil {
			limit = usualLimit
		}
		page := []coupon{}
		for _, c := range slices.Backward(all) {
			if c.ID < before && len(page) < limit {
				page = append(page, c)
			}
		}
		o := map[string]any{"coupons": page}
		if len(page) == limit {
			o["next"] = fmt.Sprint(page[len(page)-1].ID)
		}
		_ = json.NewEncoder(w).Encode(o)
	})
}

// TestListsOfAllCellsAreOneList: the pages of a list over cells are the pages of one list, whatever the
// cells have and however long a page is.
func TestListsOfAllCellsAreOneList(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		cells := make([][]coupon, 1+random.IntN(4))
		var one []coupon
		for i := range random.IntN(60) {
			n := random.IntN(len(cells))
			c := coupon{int64(len(cells[n])*cell.Count + n + 1), time.Unix(int64(i/(1+random.IntN(3))), 0).UTC()}
			if len(cells[n]) > 0 && c.At.Before(cells[n][len(cells[n])-1].At) {
				c.At = cells[n][len(cells[n])-1].At
			}
			cells[n] = append(cells[n], c)
			one = append(one, c)
		}
		slices.SortFunc(one, func(a, b coupon) int {
			return item{at: a.At, id: fmt.Sprint(a.ID)}.after(item{at: b.At, id: fmt.Sprint(b.ID)})
		})
		var programs []http.Handler
		for _, c := range cells {
			programs = append(programs, couponList(c))
		}
		f, limit := newFront(&places{}, programs...), 1+random.IntN(9)
		var seen []int64
		for path, pages := fmt.Sprintf("/api/v1/coupons?limit=%d", limit), 0; ; pages++ {
			status, o, _ := get(f, path)
			list, _ := o["coupons"].([]any)
			if status != 200 || len(list) > limit || pages > 100 {
				t.Fatalf("seed %d: %d, %d items on page %d", seed, status, len(list), pages)
			}
			for _, c := range list {
				id, _ := strconv.ParseInt(c.(map[string]any)["coupon_id"].(string), 10, 64)
				seen = append(seen, id)
			}
			next, more := o["next"].(string)
			if !more {
				break
			}
			if len(list) < limit {
				t.Fatalf("seed %d: a page of %d before the last one", seed, len(list))
			}
			path = fmt.Sprintf("/api/v1/coupons?limit=%d&before=%s", limit, next)
		}
		var want []int64
		for _, c := range one {
			want = append(want, c.ID)
		}
		if !slices.Equal(seen, want) {
			t.Fatalf("seed %d: %v, want %v", seed, seen, want)
		}
	}
}

// TestAListWithoutACell: a cell that does not answer is named, its items are on a later page, and the
// next questions do not wait for it.
func TestAListWithoutACell(t *testing.T) {
	halted := true
	b := couponList([]coupon{{2, time.Unix(1, 0).UTC()}, {66, time.Unix(3, 0).UTC()}})
	f := newFront(&places{}, couponList([]coupon{{1, time.Unix(2, 0).UTC()}, {65, time.Unix(4, 0).UTC()}}),
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if halted {
				http.Error(w, "", http.StatusServiceUnavailable)
				return
			}
			b.ServeHTTP(w, r)
		}))
	_, o, h := get(f, "/api/v1/coupons?limit=1")
	if h.Get(MissingHeader) != "b" || len(o["coupons"].([]any)) != 1 {
		t.Errorf("%v %v", o, h)
	}
	halted = false
	_, o, h = get(f, "/api/v1/coupons?limit=10&before="+o["next"].(string))
	if h.Get(MissingHeader) != "" || fmt.Sprint(o["coupons"]) != "[map[coupon_id:66 issued_at:1970-01-01T00:00:03Z] map[coupon_id:1 issued_at:1970-01-01T00:00:02Z] map[coupon_id:2 issued_at:1970-01-01T00:00:01Z]]" {
		t.Errorf("%v %v", o, h)
	}
}

// TestWantedProcessesAreAdded: each cell tells what its own loads need.
func TestWantedProcessesAreAdded(t *testing.T) {
	program := func(body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	}
	f := newFront(&places{}, program(`{"web":2,"worker_roles":{"gate":2},"until":"2027","reasons":[1]}`), program(`{"web":3,"worker_roles":{"gate":4},"until":"2028","reasons":[2]}`))
	if _, o, _ := get(f, "/api/v1/admin/capacity"); fmt.Sprint(o) != "map[reasons:[1 2] until:2027 web:5 worker_roles:map[gate:6]]" {
		t.Error(o)
	}
}

// TestInboxesOfAllCells: messages are merged by their instants, those of one instant stay together, and
// unread ones are added.
func TestInboxesOfAllCells(t *testing.T) {
	inbox := func(unread int, read string, at ...int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before, err := time.Parse(time.RFC3339Nano, r.FormValue("before"))
			limit, _ := strconv.Atoi(r.FormValue("limit"))
			items := []map[string]any{}
			o := map[string]any{"unread": unread, "read_through": read}
			for _, s := range at {
				if i := time.Unix(int64(s), 0).UTC(); (err != nil || i.Before(before)) && (len(items) < limit || i.Equal(items[len(items)-1]["at"].(time.Time))) {
					items = append(items, map[string]any{"id": fmt.Sprint(s, unread), "at": i})
				}
			}
			if len(items) >= limit {
				o["next"] = items[len(items)-1]["at"]
			}
			o["items"] = items
			_ = json.NewEncoder(w).Encode(o)
		})
	}
	f := newFront(&places{}, inbox(40, "2027-01-01T00:00:00Z", 9, 7, 5, 1), inbox(70, "2027-01-02T00:00:00Z", 8, 7, 4, 3))
	var got []string
	path, pages := "/api/v1/inbox?limit=2", 0
	for ; ; pages++ {
		_, o, _ := get(f, path)
		if o["unread"] != 100.0 || o["read_through"] != "2027-01-02T00:00:00Z" {
			t.Fatal(o)
		}
		for _, m := range o["items"].([]any) {
			got = append(got, m.(map[string]any)["at"].(string)[17:19])
		}
		next, more := o["next"].(string)
		if !more || pages > 9 {
			break
		}
		path = "/api/v1/inbox?limit=2&before=" + next
	}
	if strings.Join(got, " ") != "09 08 07 07 05 04 03 01" {
		t.Error(got)
	}
}
