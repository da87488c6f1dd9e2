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
		if !c.asked(f.Now()) {
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
			var a *answer
			select {
			case a = <-done:
			case <-ctx.Done():
			}
			switch err := ctx.Err(); {
			case err == nil:
				c.silent.Store(0)
			case errors.Is(err, context.DeadlineExceeded):
				c.silent.Store(f.Now().Add(silentFor).UnixNano())
			}
			got <- replied{n, a}
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
	if id == ofCode && n != 0 { // home may have given the serial number before there was the cell
		moved = append(slices.Clone(moved), 0)
	}
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
