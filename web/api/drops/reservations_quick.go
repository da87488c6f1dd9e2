package drops

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// quick answers POST /reservations in the common form without huma's schemas, which cost more than
// all other work of the request. Any other request takes the general way, which finds the error; so
// there is one set of rules and one set of answers. quick reports whether it has answered.
func (h *handlers) quick(w http.ResponseWriter, r *http.Request, body []byte) bool {
	wish, ok := scanWish(body)
	if !ok {
		return false
	}
	out, err := h.reserve(r.Context(), &struct{ Body ReservationWish }{wish})
	if err != nil {
		h.Problem(r.Context(), err).Write(w)
		return true
	}
	h.write(w, out)
	return true
}

// write answers as the general way does.
func (h *handlers) write(w http.ResponseWriter, out *reservationAnswer) {
	answer := append(appendReservation(make([]byte, 0, 512), &out.Body), '\n')
	// A short answer gets its Content-Length from net/http, at less cost.
	w.Header()["Content-Type"] = pipeline.JSONType
	w.WriteHeader(out.Status)
	_, _ = w.Write(answer) // the client may be gone
}

// appendReservation appends the output of [json.Marshal] for r, in a third of the time.
func appendReservation(b []byte, r *Reservation) []byte {
	b = append(b, `{"template_id":"`...)
	b = append(b, r.TemplateID...)
	b = append(b, `","shop_number":"`...)
	b = append(b, r.ShopNumber...)
	b = append(b, `","template_name":`...)
	b = pipeline.AppendText(b, r.TemplateName)
	b = append(b, `,"opens_at":"`...)
	b = r.OpensAt.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","slots":"`...)
	b = append(b, r.Slots...)
	b = append(b, `","reminders":[`...)
	for i := range r.Reminders {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendReminder(b, &r.Reminders[i])
	}
	return append(b, `]}`...)
}

func appendReminder(b []byte, r *ReminderState) []byte {
	b = append(b, `{"channel":"`...)
	b = append(b, r.Channel...)
	b = append(b, `","minutes":`...)
	b = strconv.AppendInt(b, int64(r.Minutes), 10)
	b = append(b, `,"due_at":"`...)
	b = r.DueAt.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","state":`...)
	b = pipeline.AppendText(b, r.State)
	if r.Reason != "" {
		b = append(b, `,"reason":`...)
		b = pipeline.AppendText(b, r.Reason)
	}
	return append(b, '}')
}

// keyedReservations stores the idempotency key of a reservation in the statement that stores the
// reservation. The answer follows from the values stored with the key, so that a repetition gets
// the first answer, whatever has changed since.
type keyedReservations struct{ *handlers }

// Decide is part of [pipeline.Once].
func (a keyedReservations) Decide(w http.ResponseWriter, r *http.Request, body []byte, q workdb.IdempotencyRequest) bool {
	wanted, ok := a.wanted(r, body)
	if !ok {
		return false
	}
	answer, decided, err := a.Reminders.ReserveOnce(r.Context(), wanted, reminder.Once{Actor: q.Actor, Key: q.Key, Hash: q.Hash,
		Reference: middleware.From(r.Context()).ID})
	switch {
	case err != nil:
		a.Problem(r.Context(), err).Write(w)
	case decided:
		a.say(w, r, wanted, answer)
	}
	return err != nil || decided
}

// Repeat is part of [pipeline.Once].
func (a keyedReservations) Repeat(w http.ResponseWriter, r *http.Request, body, known []byte, found []int64) {
	wanted, ok := a.wanted(r, body)
	if !ok {
		a.Problem(r.Context(), errors.New("a request that was decided cannot be read again")).Write(w)
		return
	}
	answer, err := reminder.Recall(wanted, known, found)
	if err != nil {
		a.Problem(r.Context(), err).Write(w)
		return
	}
	a.say(w, r, wanted, answer)
}

// wanted returns the request if it is in the common form and can be understood.
func (a keyedReservations) wanted(r *http.Request, body []byte) (reminder.Request, bool) {
	wish, ok := scanWish(body)
	if !ok {
		return reminder.Request{}, false
	}
	wanted, err := a.reservationRequest(r.Context(), wish)
	return wanted, err == nil
}

func (a keyedReservations) say(w http.ResponseWriter, r *http.Request, wanted reminder.Request, answer reminder.Answer) {
	if answer.Refused != nil {
		p := blame(a.Problem(r.Context(), answer.Refused), answer.Refused, wanted.Reminders, inBody)
		p.About(answer.Reference)
		p.Write(w)
		return
	}
	a.write(w, reserved(answer.View, answer.Created))
}

// scanWish reads a reservation in the common form: known fields, each once, strings without
// escapes, whole minutes. ok is false for any other body, good or bad.
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
		if !scanReminder(s, &w) || len(*to) == reminder.Bits {
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
	_, known := template.SlotOfMinutes(w.Minutes)
	return ok && w.Channel != "" && known
}
