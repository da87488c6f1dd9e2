package pgtest

import (
	"github.com/RoaringBitmap/roaring/v2/roaring64"

	audiencedb "dropbell/adapters/postgres/audience"
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

// Listed reports whether a search for the outcome asked finds a recipient with
// outcome o: what was recovered was sent, what was discarded is dead, and what
// failed is in flight, too.
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
func (w *World) Upsert(changes ...user.Change) {
	w.Helper()
	w.Must(audiencedb.NewUsers(w.DB).Upsert(w.Context(), changes, staff.Entry{}))
}
