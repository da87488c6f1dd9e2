package event_test

import (
	"reflect"
	"testing"
	"time"

	"dropbell/domain/event"
)

func TestSumReservationsByMinute(t *testing.T) {
	at := func(minute, second int) time.Time { return time.Date(2027, 1, 1, 12, minute, second, 0, time.UTC) }
	one := func(template, bits, users int64) []event.Booking {
		return []event.Booking{{TemplateID: template, Bits: bits, Users: users}}
	}
	got := event.SumReservations([]event.Reservations{
		{At: at(1, 59), Added: one(2, 1, 3)},
		{At: at(2, 0), Added: one(2, 1, 5)},
		{At: at(1, 7), Added: append(one(2, 1, 4), one(1, 8, 1)...), Removed: one(2, 1, 2)},
		{At: at(1, 8), Removed: one(2, 1, 1)},
	})
	want := []event.Reservations{
		{At: at(1, 59), Added: append(one(1, 8, 1), one(2, 1, 7)...), Removed: one(2, 1, 3)},
		{At: at(2, 0), Added: one(2, 1, 5)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if event.SumReservations(nil) != nil {
		t.Error("nothing has a sum")
	}
}
