package cells

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// anywhere asks all cells at once for something that one of them has, and sends the first answer of a
// cell that has it. Cells without it change nothing.
func (f *Front) anywhere(w http.ResponseWriter, r *http.Request) {
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	got := f.ask(r.Context(), f.all(), func(ctx context.Context, _ int) *http.Request { return again(ctx, r, body) })
	answers := make([]*answer, len(f.cells))
	for range f.cells {
		a := <-got
		if answers[a.from] = a.answer; a.good() || a.answer != nil && a.status/100 == 3 {
			a.write(w)
			return
		}
	}
	f.refusal(w, r, answers)
}

// refusal sends a refusal in which a cell that knows the matter comes before cells that do not, and a
// cell that did not answer before these: it may have it.
func (f *Front) refusal(w http.ResponseWriter, r *http.Request, answers []*answer) {
	var unknown *answer
	lost := false
	for _, a := range answers {
		switch {
		case a.missing() && (a == nil || a.status != http.StatusUnauthorized):
			lost = true
		case a.status == http.StatusNotFound || a.status == http.StatusUnauthorized:
			if unknown == nil {
				unknown = a
			}
		case a.good():
		default:
			a.write(w)
			return
		}
	}
	if lost || unknown == nil {
		f.name(w.Header(), answers)
		refuse(w, r, errSilent)
		return
	}
	unknown.write(w)
}

var errSilent = errors.New("a cell does not answer")

// everywhere asks all cells to make a change that each may make again, home first. The answer is
// home's; a change that another cell did not make reaches it as a copy of home's rows.
func (f *Front) everywhere(w http.ResponseWriter, r *http.Request) {
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	request := func(ctx context.Context, _ int) *http.Request { return again(ctx, r, body) }
	home := (<-f.ask(r.Context(), []int{0}, request)).answer
	if home.missing() && (home == nil || home.status != http.StatusUnauthorized) {
		f.name(w.Header(), []*answer{home})
		refuse(w, r, errSilent)
		return
	}
	if !home.good() {
		home.write(w)
		return
	}
	answers := []*answer{home}
	others := f.ask(context.WithoutCancel(r.Context()), f.all()[1:], request)
	for range f.cells[1:] {
		answers = append(answers, (<-others).answer)
	}
	home.write(w)
}

// release gives back the coupons of an order in the cell that has it. The other cells note that the
// order was released, which changes nothing: its lock comes to the cell of its coupons. Before its lock
// every cell must have noted it.
func (f *Front) release(w http.ResponseWriter, r *http.Request) {
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	got := f.ask(r.Context(), f.all(), func(ctx context.Context, _ int) *http.Request { return again(ctx, r, body) })
	answers := make([]*answer, len(f.cells))
	for range f.cells {
		a := <-got
		answers[a.from] = a.answer
		var order struct {
			Coupons []json.RawMessage `json:"coupons"`
		}
		if a.good() && json.Unmarshal(a.body.Bytes(), &order) == nil && len(order.Coupons) > 0 {
			a.write(w)
			return
		}
	}
	for _, a := range answers {
		if !a.good() {
			f.refusal(w, r, answers)
			return
		}
	}
	answers[0].write(w)
}

// passes answers which passes of a device have changed. Instants of changes are of one cell: the answer
// has the passes of all cells, and the device asks for those that changed with If-Modified-Since.
func (f *Front) passes(w http.ResponseWriter, r *http.Request) {
	answers := f.askAll(r.Context(), func(ctx context.Context, _ int) *http.Request {
		c := again(ctx, r, nil)
		u := *r.URL
		u.RawQuery = ""
		c.URL, c.RequestURI = &u, u.Path
		return c
	})
	all := struct {
		Serials []string `json:"serialNumbers"`
		Last    string   `json:"lastUpdated"`
	}{}
	for _, a := range answers {
		own := all
		own.Serials = nil
		switch {
		case a.missing():
			f.name(w.Header(), answers)
			refuse(w, r, errSilent) // the device would take a missing pass for a removed one
			return
		case a.good() && json.Unmarshal(a.body.Bytes(), &own) == nil:
			all.Serials, all.Last = append(all.Serials, own.Serials...), own.Last
		}
	}
	if len(all.Serials) == 0 {
		answers[0].write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all)
}

// callback gives the reports of a provider to all cells: each takes those of its own batches. The
// provider repeats the call unless all cells have taken it; repetitions change nothing.
func (f *Front) callback(w http.ResponseWriter, r *http.Request) {
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	answers := f.askAll(r.Context(), func(ctx context.Context, _ int) *http.Request { return again(ctx, r, body) })
	for _, a := range answers {
		if a == nil || a.status >= 500 {
			f.name(w.Header(), answers)
			refuse(w, r, errSilent)
			return
		}
	}
	answers[0].write(w)
}
