package drops_test

import (
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestTextSample: the sample has users who have reserved future SMS reminders,
// spread over all users, including users to whom no message can be sent. The days
// include the messages of all drops.
func TestTextSample(t *testing.T) {
	w := newFixture(t)
	one, other := w.Published(3*time.Hour), w.Published(3*time.Hour)
	w.Upsert(user.Change{ID: 1, Phone: new("+8613800138000"), Locale: new("zh-CN"), PhoneVerified: new(true)}, user.Change{ID: 2, Phone: new("+4915112345678"), OptOuts: new(uint8(4))},
		user.Change{ID: 3, Name: new("Cem"), Phone: new("+4915112345679")})
	w.Reserve(one, 1, pgtest.Reminders(delivery.SMS, 5, 60)...)
	w.Reserve(one, 2, pgtest.Reminders(delivery.SMS, 5)...)
	w.Reserve(one, 3, append(pgtest.Reminders(delivery.SMS, 10), pgtest.Reminders(delivery.App, 5, 30)...)...)
	w.Reserve(one, 4, pgtest.Reminders(delivery.SMS, 5)...) // of whom nothing is known
	w.Reserve(one, 5, pgtest.Reminders(delivery.App, 5)...)
	w.Reserve(other, 1, pgtest.Reminders(delivery.SMS, 5)...)
	w.RelayCounts()
	store := dropsdb.NewForecasts(w.DB)
	s, err := store.TextSample(t.Context(), one.ID, 2000)
	w.Must(err)
	var mine, all int64
	for _, d := range s.Days {
		mine, all = mine+d.Messages, all+d.All
		if d.Day.Hour() != 0 || d.Day.Location() != time.UTC {
			t.Errorf("a day begins at %v", d.Day)
		}
	}
	if mine != 5 || all != 6 || len(s.Readers) != 4 {
		t.Fatalf("%d of %d messages, %+v", mine, all, s)
	}
	for i, want := range []struct {
		phone    string
		messages int64
		verified bool
	}{{"+8613800138000", 2, true}, {"", 1, false}, {"+4915112345679", 1, false}, {"", 1, false}} {
		if r := s.Readers[i]; r.Phone != want.phone || r.Messages != want.messages || r.Verified != want.verified {
			t.Errorf("reader %d: %+v", i, r)
		}
	}
	if s.Readers[0].Locale != "zh-CN" || s.Readers[2].Name != "Cem" || time.Since(s.Today) > 48*time.Hour {
		t.Errorf("%+v", s)
	}
	pgtest.WithinOneDay()
	w.Exec(`insert into sms_spent (day, parts, micros) values ((now() at time zone 'utc')::date, 7, 9)`)
	w.Exec(`insert into sms_spent_drops (template_id, parts) values ($1, 3)`, one.ID)
	if s, err = store.TextSample(t.Context(), one.ID, 2000); err != nil || s.SpentToday != (delivery.BudgetSize{Parts: 7, Micros: 9}) || s.SpentDrop != 3 {
		t.Errorf("spent: %+v %v", s, err)
	}
	for id := user.ID(100); id < 200; id++ {
		w.Reserve(one, id, pgtest.Reminders(delivery.SMS, 5)...)
	}
	if s, err = store.TextSample(t.Context(), one.ID, 20); err != nil || len(s.Readers) < 10 || len(s.Readers) > 20 {
		t.Errorf("%d readers, %v", len(s.Readers), err)
	}
	// Of many reservations, few of which are by SMS, a limited number is read.
	many := w.Published(3 * time.Hour)
	w.Reserve(many, 1, pgtest.Reminders(delivery.App, 5)...)
	w.Exec(`insert into reservations (template_id, user_id, slots) select template_id, n, slots from reservations, generate_series(2, 1000) n where template_id = $1`, many.ID)
	w.Reserve(many, 20, pgtest.Reminders(delivery.SMS, 5)...)
	w.Reserve(many, 80, pgtest.Reminders(delivery.SMS, 5)...) // more than 50 behind the place before
	w.RelayCounts()
	if s, err = store.TextSample(t.Context(), many.ID, 20); err != nil || len(s.Days) != 1 || len(s.Readers) != 1 {
		t.Errorf("two of a thousand by SMS: %+v, %v", s, err)
	}
	if s, err = store.TextSample(t.Context(), many.ID+1, 20); err != nil || len(s.Days)+len(s.Readers) != 0 {
		t.Errorf("a drop that is not there: %+v %v", s, err)
	}
}
