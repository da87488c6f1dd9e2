package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// quick answers the common form of POST /reservations without the general
// machinery of schemas, which costs more than all the rest of the request.
// Whatever is not plainly a good request takes the general way, which finds
// out what is wrong; so there is one set of rules and one set of answers. It
// reports whether it has answered.
func (a *API) quick(w http.ResponseWriter, r *http.Request, body []byte) bool {
	wish, ok := scanWish(body)
	if !ok {
		return false
	}
	out, err := a.reserve(r.Context(), &struct{ Body ReservationWish }{wish})
	if err != nil {
		a.problem(r.Context(), err).write(w)
		return true
	}
	answer, err := json.Marshal(out.Body)
	if err != nil {
		a.problem(r.Context(), err).write(w)
		return true
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(answer) + 1)}
	w.WriteHeader(out.Status)
	_, _ = w.Write(append(answer, '\n'))
	return true
}

var jsonType = []string{"application/json"}

// plainJSON reports whether the body is said to be what a quick request has;
// the general way judges everything else.
func plainJSON(h http.Header) bool {
	kinds := h["Content-Type"]
	return len(kinds) == 1 && (kinds[0] == "application/json" || kinds[0] == "application/json; charset=utf-8")
}

// quickly is the whole life of a quick request after it was admitted.
func (a *API) quickly(w http.ResponseWriter, r *http.Request, t traits, next http.HandlerFunc) {
	b := bodies.Get().(*body)
	defer b.free()
	if err := b.read(w, r); err != nil {
		a.problem(r.Context(), err).write(w)
		return
	}
	r, cancel := a.timed(r, t)
	defer cancel()
	if len(r.Header[idempotencyHeader]) > 0 && !t.ownKeys {
		if err := t.judge(r, b.buf.Bytes()); err != nil {
			a.problem(r.Context(), err).write(w)
			return
		}
		a.once(w, r, b.buf.Bytes(), func(w http.ResponseWriter, r *http.Request) {
			if !t.quick(w, r, b.buf.Bytes()) {
				next(w, r)
			}
		})
		return
	}
	if t.quick(w, r, b.buf.Bytes()) {
		return
	}
	if err := t.judge(r, b.buf.Bytes()); err != nil {
		a.problem(r.Context(), err).write(w)
		return
	}
	next(w, r)
}

// scanWish reads a reservation that is written the plain way: known fields,
// each once, strings without escapes, whole minutes. ok is false for anything
// else, good or bad.
func scanWish(body []byte) (wish ReservationWish, ok bool) {
	s := scanner{rest: body}
	seen := 0
	ok = s.object(func(field string) bool {
		switch field {
		case "template_id":
			seen |= 1
			return wish.TemplateID == "" && s.id(&wish.TemplateID)
		case "shop_number":
			seen |= 2
			return wish.ShopNumber == "" && s.id(&wish.ShopNumber)
		case "reminders":
			seen |= 4
			return wish.Reminders == nil && s.reminders(&wish.Reminders)
		}
		return false
	})
	return wish, ok && seen == 7 && s.end()
}

// scanner reads a strict subset of JSON.
type scanner struct{ rest []byte }

func (s *scanner) space() { s.rest = bytes.TrimLeft(s.rest, " \t\r\n") }

// take consumes c, which may follow white space.
func (s *scanner) take(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) end() bool {
	s.space()
	return len(s.rest) == 0
}

// object calls field for each name, which must consume the value.
func (s *scanner) object(field func(name string) bool) bool {
	if !s.take('{') {
		return false
	}
	for {
		name, ok := s.text()
		if !ok || !s.take(':') || !field(name) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// text reads a string of printable ASCII without quotes or escapes inside.
func (s *scanner) text() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	for i, c := range s.rest {
		if c == '"' {
			text := string(s.rest[:i])
			s.rest = s.rest[i+1:]
			return text, true
		}
		if c < ' ' || c > '~' || c == '\\' {
			return "", false
		}
	}
	return "", false
}

// id reads a string that is a positive decimal number of at most 18 digits.
func (s *scanner) id(to *string) bool {
	text, ok := s.text()
	if !ok || len(text) == 0 || len(text) > 18 || text[0] == '0' {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	*to = text
	return true
}

func (s *scanner) reminders(to *[]ReminderWish) bool {
	if !s.take('[') {
		return false
	}
	for {
		var w ReminderWish
		if !s.reminder(&w) || len(*to) == 60 {
			return false
		}
		*to = append(*to, w)
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) reminder(w *ReminderWish) bool {
	ok := s.object(func(field string) (ok bool) {
		switch {
		case field == "channel" && w.Channel == "":
			w.Channel, ok = s.text()
			ok = ok && w.Channel != "" // else a second one would go unseen
		case field == "minutes" && w.Minutes == 0:
			w.Minutes, ok = s.minutes()
		}
		return ok
	})
	return ok && w.Channel != "" && w.Minutes%5 == 0 && w.Minutes >= 5 && w.Minutes <= 60
}

// minutes reads one or two digits that do not begin with 0.
func (s *scanner) minutes() (n int, ok bool) {
	s.space()
	digits := 0
	for digits < len(s.rest) && digits < 3 && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		n = 10*n + int(s.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 2 || s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[digits:]
	return n, true
}
