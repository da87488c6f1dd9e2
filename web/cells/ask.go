package cells

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"dropbell/domain/cell"
)

// answer is what a cell answered. status 0 = the cell did not answer in time.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header is part of [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is part of [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write is part of [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// good reports whether the cell did what was asked.
func (a *answer) good() bool { return a != nil && a.status >= 200 && a.status < 300 }

// missing reports whether the cell said nothing about the matter: it did not answer, is busy, or does
// not have the caller's new key yet.
func (a *answer) missing() bool {
	return a == nil || a.status == 0 || a.status >= 500 || a.status == http.StatusUnauthorized
}

// code returns the code of a refusal.
func (a *answer) code() string {
	var of struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.body.Bytes(), &of)
	return of.Code
}

// write sends the answer to the client.
func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
}

// replied is the answer of one cell.
type replied struct {
	from int
	*answer
}

// ask calls the cells side by side, each with a request of its own, and sends their answers to the
// channel. A cell that does not answer within patience is sent with a nil answer, and is left out of
// further questions for a while. The channel has room for all answers.
func (f *Front) ask(ctx context.Context, cells []int, request func(context.Context, int) *http.Request) <-chan replied {
	got := make(chan replied, len(cells))
	for _, n := range cells {
		c := f.cells[n]
		if f.Now().UnixNano() < c.silent.Load() {
			got <- replied{n, nil}
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		done := make(chan *answer, 1)
		go func() {
			a := &answer{header: http.Header{}}
			c.Handler.ServeHTTP(a, request(ctx, n))
			a.WriteHeader(http.StatusOK)
			done <- a
		}()
		go func() {
			defer cancel()
			select {
			case a := <-done:
				got <- replied{n, a}
			case <-ctx.Done():
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					c.silent.Store(f.Now().Add(silentFor).UnixNano())
				}
				got <- replied{n, nil}
			}
		}()
	}
	return got
}

// all returns the numbers of all cells.
func (f *Front) all() []int {
	list := make([]int, len(f.cells))
	for i := range list {
		list[i] = i
	}
	return list
}

// askAll returns the answers of all cells, at their numbers.
func (f *Front) askAll(ctx context.Context, request func(context.Context, int) *http.Request) []*answer {
	answers := make([]*answer, len(f.cells))
	got := f.ask(ctx, f.all(), request)
	for range f.cells {
		a := <-got
		answers[a.from] = a.answer
	}
	return answers
}

// name names the cells whose answers are missing in a header.
func (f *Front) name(h http.Header, answers []*answer) {
	var names []string
	for i, a := range answers {
		if a.missing() {
			names = append(names, f.cells[i].Name)
		}
	}
	if len(names) > 0 {
		h.Set(MissingHeader, strings.Join(names, ","))
	}
}

// held is a writer that keeps an answer that the id's shop may have caused by moving, and passes
// every other one on.
type held struct {
	http.ResponseWriter
	kept   *answer
	passed bool
}

// WriteHeader is part of [http.ResponseWriter].
func (h *held) WriteHeader(status int) {
	switch {
	case h.passed || h.kept != nil:
	case status == http.StatusNotFound || status == http.StatusConflict || status == http.StatusUnprocessableEntity:
		h.kept = &answer{status: status, header: h.Header()}
	default:
		h.passed = true
		h.ResponseWriter.WriteHeader(status)
	}
}

// Write is part of [http.ResponseWriter].
func (h *held) Write(b []byte) (int, error) {
	if !h.passed && h.kept == nil {
		h.WriteHeader(http.StatusOK)
	}
	if h.kept != nil {
		return h.kept.Write(b)
	}
	return h.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// byID answers with the program that made the id, or with the one to which its shop has moved. No
// other cell is asked as long as no shop has moved.
func (f *Front) byID(w http.ResponseWriter, r *http.Request, n cell.Number, id int64) {
	moved := f.Places.Map().Moved
	if len(moved) == 0 {
		f.cells[n].Handler.ServeHTTP(w, r)
		return
	}
	order := []cell.Number{n}
	if to, ok := f.known.GetIfPresent(id); ok && id > 0 {
		order = []cell.Number{to}
	}
	for _, to := range moved {
		if !slices.Contains(order, to) && int(to) < len(f.cells) {
			order = append(order, to)
		}
	}
	if !slices.Contains(order, n) {
		order = append(order, n)
	}
	body, err := hold(r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	var first *answer
	for i, to := range order {
		h := &held{ResponseWriter: fresh{w, http.Header{}}}
		f.cells[to].Handler.ServeHTTP(h, again(r.Context(), r, body))
		if h.kept == nil || h.kept.status != http.StatusNotFound && !elsewhere(h.kept.code()) {
			if i > 0 && id > 0 {
				f.known.Set(id, to)
			}
			if h.kept != nil {
				h.kept.write(w)
			}
			return
		}
		if first == nil || first.code() == "shop_moved" {
			first = h.kept
		}
	}
	first.write(w)
}

// elsewhere reports whether another cell may know what a cell refused with the code.
func elsewhere(code string) bool { return code == "shop_moved" || code == "code_invalid" }

// fresh is a writer with a header of its own until the status is known.
type fresh struct {
	http.ResponseWriter
	header http.Header
}

// Header is part of [http.ResponseWriter].
func (f fresh) Header() http.Header { return f.header }

// WriteHeader is part of [http.ResponseWriter].
func (f fresh) WriteHeader(status int) {
	for name, values := range f.header {
		f.ResponseWriter.Header()[name] = values
	}
	f.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (f fresh) Unwrap() http.ResponseWriter { return f.ResponseWriter }

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

// refuse answers a request that no program can answer.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, code := http.StatusServiceUnavailable, "overloaded"
	if errors.Is(err, errTooLarge) {
		status, code = http.StatusRequestEntityTooLarge, "too_large"
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	refuseAs(w, r, status, code, "this cannot be answered right now; try again")
}

func refuseAs(w http.ResponseWriter, r *http.Request, status int, code, detail string) {
	if !strings.HasPrefix(r.URL.Path, base+"/") {
		http.Error(w, detail, status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "/docs#code-" + code, "title": http.StatusText(status), "status": status,
		"detail": detail, "code": code})
}

// later returns the later of two instants as texts; a text that is no instant is the earliest.
func later(a, b string) string {
	at, _ := time.Parse(time.RFC3339Nano, a)
	if bt, err := time.Parse(time.RFC3339Nano, b); err == nil && bt.After(at) {
		return b
	}
	return a
}
