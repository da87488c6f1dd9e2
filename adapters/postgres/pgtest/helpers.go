package pgtest

import (
	"context"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// ErrOf returns the error of a call that answers something, too.
func ErrOf[T any](_ T, err error) error { return err }

// Bitmap is a set of users as it is stored.
func Bitmap(ids ...user.ID) []byte {
	set := roaring64.New()
	for _, id := range ids {
		set.Add(uint64(id))
	}
	raw, err := set.ToBytes()
	if err != nil {
		panic(err)
	}
	return raw
}

// AboutSegment is the record of an action on a segment.
func AboutSegment(action string) staff.Entry {
	return staff.Entry{Actor: staff.Actor{Label: "staff:14", Name: "Ada", Role: staff.Marketer}, Action: action, ObjectKind: "segment"}
}

// Listed reports whether a search for the outcome asked finds a recipient with outcome o: a
// recovered recipient is also found as sent, a discarded recipient as dead, and a failed
// recipient as in flight.
func Listed(o, asked delivery.Outcome) bool {
	switch o {
	case delivery.Recovered:
		o = delivery.Sent
	case delivery.Discarded:
		o = delivery.Dead
	}
	return o == asked || asked == delivery.InFlight && o == delivery.Failed
}

// Upsert stores changes of users.
func (w *Fixture) Upsert(changes ...user.Change) {
	w.Helper()
	w.Must(w.Users.Upsert(w.Context(), changes, staff.Entry{}))
}

// Relayed takes every event out of the outbox and returns the traces of the topic's events.
func Relayed(t *testing.T, db *postgres.DB, topic string) (traces []string) {
	t.Helper()
	for _, a := range Relay(t, db, topic) {
		traces = append(traces, a.Trace)
	}
	return traces
}

// Relay takes every event out of the outbox and returns the events of the topics.
func Relay(t *testing.T, db *postgres.DB, topics ...string) (list []workdb.Announcement) {
	t.Helper()
	_, err := workdb.NewOutbox(db).Relay(t.Context(), 1000, func(_ context.Context, all []workdb.Announcement) error {
		list = slices.DeleteFunc(all, func(a workdb.Announcement) bool { return !slices.Contains(topics, a.Topic) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Clean deletes the rows that are past the retention [KeepTen].
func (w *Fixture) Clean() {
	w.Helper()
	_, err := workdb.NewHousekeeping(w.DB).Clean(w.Context(), KeepTen, 0)
	w.Must(err)
}
