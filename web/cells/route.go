package cells

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/cell"
)

// target is how a request is answered.
type target struct {
	// cell answers, unless all is set. id, if not 0, is what named the cell: if the shop of the id has
	// moved, another cell answers.
	cell cell.Number
	id   int64
	// reads is whether the body may name the cell.
	reads bool
	// form is whether the fields of the body may name the drop or the campaign.
	form bool
	// must is set if a request that names no cell is refused: its answer would be of home alone.
	must string
	// settles is whether the request may make the first row of a shop.
	settles bool
	shop    int64
	// all, if set, answers with the answers of all cells.
	all func(*Front, http.ResponseWriter, *http.Request)
}

func (t target) serve(f *Front, w http.ResponseWriter, r *http.Request) {
	switch {
	case t.must != "":
		refuseAs(w, r, http.StatusUnprocessableEntity, "invalid_request", t.must)
	case t.all != nil:
		t.all(f, w, r)
	case t.settles && t.shop > 0:
		f.settle(w, r, t.shop)
	case t.id != 0:
		f.byID(w, r, t.cell, t.id)
	default:
		f.cells[t.cell].Handler.ServeHTTP(w, r)
	}
}

// ofID returns the target of the program that made the id.
func (f *Front) ofID(id int64) target {
	n := cell.Of(id, 1)
	older := f.Places.Map().Older
	if int(n) >= len(f.cells) || int(n) < len(older) && id <= older[n] {
		n = 0
	}
	return target{cell: n, id: id}
}

// ofShop returns the target of the shop's program. A shop without a cell is unknown everywhere, and
// home says so.
func (f *Front) ofShop(number int64) target {
	m := f.Places.Map()
	if n, ok := m.Shops[number]; ok || m.Known {
		return target{cell: n}
	}
	return target{all: func(_ *Front, w http.ResponseWriter, r *http.Request) { refuse(w, r, errSilent) }}
}

// settle answers a request that may make the first row of a shop.
func (f *Front) settle(w http.ResponseWriter, r *http.Request, shop int64) {
	if n, ok := f.Places.Map().Shops[shop]; ok {
		f.ofKnown(w, r, n, shop)
		return
	}
	// Home refuses callers who may not make anything: they settle no shops.
	probe := r.Clone(r.Context())
	probe.Method, probe.Body, probe.ContentLength = http.MethodGet, http.NoBody, 0
	probe.URL = &url.URL{Path: base + "/admin/segment-fields"}
	probe.RequestURI = probe.URL.Path
	if a := (<-f.ask(r.Context(), []int{0}, func(ctx context.Context, _ int) *http.Request { return probe.WithContext(ctx) })).answer; !a.good() {
		f.cells[0].Handler.ServeHTTP(w, r)
		return
	}
	if err := f.settled(w, r, shop); err != nil {
		refuse(w, r, err)
	}
}

// settled answers with the shop's cell as all cells name it now. An error = nothing is answered yet.
func (f *Front) settled(w http.ResponseWriter, r *http.Request, shop int64) error {
	done := false
	err := f.Places.Settle(r.Context(), shop, func(n cell.Number) {
		done = true
		f.cells[n].Handler.ServeHTTP(w, r)
	})
	if done {
		return nil
	}
	return err
}

// ofKnown answers with the cell that the map names. If that cell says that the shop has moved, the map is
// older than the move, and the shop's present cell answers.
func (f *Front) ofKnown(w http.ResponseWriter, r *http.Request, n cell.Number, shop int64) {
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		f.cells[n].Handler.ServeHTTP(w, r)
		return
	}
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	h := &held{ResponseWriter: fresh{w, http.Header{}}}
	f.cells[n].Handler.ServeHTTP(h, again(r.Context(), r, body))
	switch {
	case h.kept == nil:
	case h.kept.code() != "shop_moved" || f.settled(w, again(r.Context(), r, body), shop) != nil:
		h.kept.write(w)
	}
}

const base = "/api/v1"

// route returns the target of the request as its path and query name it.
func (f *Front) route(r *http.Request) target {
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, base+"/"); ok {
		return f.ofAPI(r, strings.Split(rest, "/"))
	}
	part := strings.Split(strings.TrimPrefix(path, "/"), "/")
	next := func(i int) string {
		if i < len(part) {
			return part[i]
		}
		return ""
	}
	switch part[0] {
	case "callbacks":
		return target{all: (*Front).callback}
	case "d":
		if id, ok := f.LinkDrop(next(1)); ok {
			return f.ofID(id)
		}
	case "l":
		if id, ok := f.LinkCampaign(next(1)); ok {
			return f.ofID(id)
		}
	case "draw":
		return f.ofText(next(1))
	case "r", "pictures":
		return target{all: (*Front).anywhere}
	case "wallet":
		if next(2) == "devices" && r.Method == http.MethodGet {
			return target{all: (*Front).passes}
		}
		if next(2) == "devices" || next(1) == "passes" || next(2) == "passes" {
			return target{all: (*Front).anywhere}
		}
	case "u", "livez", "openapi.json", ".well-known":
	default:
		return f.ofConsole(r, path, r.URL.Query())
	}
	return target{}
}

// ofText returns the target of an id as text; other texts are for home to refuse.
func (f *Front) ofText(text string) target {
	if id, ok := parse(text); ok {
		return f.ofID(id)
	}
	return target{}
}

func parse(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}

// named are the collections of the API whose first id names a cell.
var named = []string{"templates", "reservations", "draws", "coupons", "passes", "waitlist", "campaigns", "reviews", "grants", "jobs", "webhooks", "series"}

// ofAPI returns the target of an operation; part is its path below the base, without the first slash.
func (f *Front) ofAPI(r *http.Request, part []string) target {
	staff := part[0] == "admin"
	if staff {
		part = part[1:]
	}
	if len(part) == 0 {
		return target{}
	}
	if l, ok := f.listAt(r.Method, staff, part); ok {
		if t, one := f.byQuery(r.URL.Query()); staff && one {
			return t
		}
		return target{all: l.serve}
	}
	if len(part) > 1 && slices.Contains(named, part[0]) {
		if id, ok := parse(part[1]); ok {
			return f.ofID(id)
		}
	}
	switch name := part[0]; {
	case name == "claims" && len(part) == 2:
		// The lowest bits of a claim's id are those of its drop's id.
		if id, ok := parse(part[1]); ok {
			return target{cell: f.ofID(id&(1<<16-1) | 1<<40).cell, id: id}
		}
	case name == "shops" && len(part) > 1:
		number, ok := parse(part[1])
		switch {
		case !ok:
			return target{}
		case r.Method == http.MethodGet:
			return f.ofShop(number)
		}
		return target{settles: true, shop: number}
	case name == "orders" && len(part) == 3 && part[2] == "release":
		return target{all: (*Front).release}
	case name == "orders" && len(part) == 3 && part[2] != "lock":
		return target{all: (*Front).anywhere}
	case name == "inbox" && len(part) == 2 && part[1] == "stream":
		return target{all: (*Front).stream}
	case r.Method == http.MethodPost && name == "inbox", r.Method == http.MethodPut && name == "preferences",
		staff && r.Method == http.MethodDelete && name == "users":
		return target{all: (*Front).everywhere}
	case name == "coupons" && len(part) == 2 && part[1] == "qualify", name == "orders" && len(part) == 3:
		return target{reads: true, must: "name coupons, or the shop of the order: this installation has several databases"}
	case name == "dead-letters" && r.Method == http.MethodPost:
		return target{reads: true, must: "name template_id or campaign_id: this installation has several databases"}
	case r.Method == http.MethodPost:
		return target{reads: true, settles: staff && len(part) == 1}
	}
	t, one := f.byQuery(r.URL.Query())
	if staff && part[0] == "money" && !one {
		t.must = "name a shop: this installation has several databases"
	}
	return t
}

// byDrop returns the target of the drop, the campaign or the job that a query or a form names.
func (f *Front) byDrop(q url.Values) (target, bool) {
	for _, name := range []string{"template_id", "template", "campaign_id", "campaign", "drop", "undo"} {
		if id, ok := parse(q.Get(name)); ok {
			return f.ofID(id), true
		}
	}
	return target{}, false
}

// byQuery returns the target that a query names.
func (f *Front) byQuery(q url.Values) (target, bool) {
	if t, ok := f.byDrop(q); ok {
		return t, true
	}
	for _, name := range []string{"shop_number", "shop"} {
		if number, ok := parse(q.Get(name)); ok {
			return f.ofShop(number), true
		}
	}
	return target{}, false
}

// ofCode stands for the id of a redeem code, which has none.
const ofCode = -1

// byBody returns the target that a body in JSON names, which is t for any other body.
func (f *Front) byBody(t target, body []byte) target {
	var of struct {
		TemplateID string   `json:"template_id"`
		CampaignID string   `json:"campaign_id"`
		ShopNumber string   `json:"shop_number"`
		Coupons    []string `json:"coupons"`
		Code       string   `json:"code"`
		Order      struct {
			ShopNumber string `json:"shop_number"`
		} `json:"order"`
		Filter struct {
			TemplateID string `json:"template_id"`
			CampaignID string `json:"campaign_id"`
		} `json:"filter"`
	}
	_ = json.Unmarshal(body, &of) // the program refuses what cannot be read
	for _, text := range append([]string{of.TemplateID, of.CampaignID, of.Filter.TemplateID, of.Filter.CampaignID}, of.Coupons...) {
		if id, ok := parse(text); ok {
			return f.ofID(id)
		}
	}
	for _, text := range []string{of.ShopNumber, of.Order.ShopNumber} {
		if number, ok := parse(text); ok {
			if t.settles {
				return target{settles: true, shop: number}
			}
			return f.ofShop(number)
		}
	}
	if n, ok := f.CodeCell(of.Code); ok && of.Code != "" {
		if int(n) >= len(f.cells) { // home gives serial numbers that are of no cell
			n = 0
		}
		return target{cell: n, id: ofCode}
	}
	return target{must: t.must}
}
