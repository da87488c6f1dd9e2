package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"dropbell/web/api/pipeline"
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
		a.Problem(r.Context(), err).Write(w)
		return true
	}
	answer, err := json.Marshal(out.Body)
	if err != nil {
		a.Problem(r.Context(), err).Write(w)
		return true
	}
	h := w.Header()
	h["Content-Type"] = pipeline.JSONType
	h["Content-Length"] = []string{strconv.Itoa(len(answer) + 1)}
	w.WriteHeader(out.Status)
	_, _ = w.Write(append(answer, '\n'))
	return true
}

// scanWish reads a reservation that is written the plain way: known fields,
// each once, strings without escapes, whole minutes. ok is false for anything
// else, good or bad.
func scanWish(body []byte) (wish ReservationWish, ok bool) {
	s := pipeline.NewScanner(body)
	seen := 0
	ok = s.Object(func(field string) bool {
		switch field {
		case "template_id":
			seen |= 1
			return wish.TemplateID == "" && s.ID(&wish.TemplateID)
		case "shop_number":
			seen |= 2
			return wish.ShopNumber == "" && s.ID(&wish.ShopNumber)
		case "reminders":
			seen |= 4
			return wish.Reminders == nil && scanReminders(s, &wish.Reminders)
		}
		return false
	})
	return wish, ok && seen == 7 && s.End()
}

func scanReminders(s *pipeline.Scanner, to *[]ReminderWish) bool {
	if !s.Take('[') {
		return false
	}
	for {
		var w ReminderWish
		if !scanReminder(s, &w) || len(*to) == 60 {
			return false
		}
		*to = append(*to, w)
		if s.Take(']') {
			return true
		}
		if !s.Take(',') {
			return false
		}
	}
}

func scanReminder(s *pipeline.Scanner, w *ReminderWish) bool {
	ok := s.Object(func(field string) (ok bool) {
		switch {
		case field == "channel" && w.Channel == "":
			w.Channel, ok = s.Text()
			ok = ok && w.Channel != "" // else a second one would go unseen
		case field == "minutes" && w.Minutes == 0:
			w.Minutes, ok = s.TwoDigits()
		}
		return ok
	})
	return ok && w.Channel != "" && w.Minutes%5 == 0 && w.Minutes >= 5 && w.Minutes <= 60
}
