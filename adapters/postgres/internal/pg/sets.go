package pg

import (
	"iter"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// EncodeSet returns ascending ids as a roaring bitmap (64 bit, portable format).
func EncodeSet(ids []user.ID) ([]byte, error) {
	set := roaring64.New()
	for _, id := range ids {
		set.Add(uint64(id))
	}
	set.RunOptimize()
	return set.ToBytes()
}

// DecodeSet returns the set that [EncodeSet] stored; nothing stored is an empty set.
func DecodeSet(b []byte) (*roaring64.Bitmap, error) {
	set := roaring64.New()
	if len(b) == 0 {
		return set, nil
	}
	return set, set.UnmarshalBinary(b)
}

// SetHolds reports whether a stored set contains the user, without decoding the
// set.
func SetHolds(b []byte, id user.ID) (bool, error) {
	if len(b) == 0 {
		return false, nil
	}
	set := roaring64.New()
	_, err := set.FromUnsafeBytes(b) // read only
	return err == nil && set.Contains(uint64(id)), err
}

// SetIDs returns the ids of set, ascending.
func SetIDs(set *roaring64.Bitmap) []user.ID {
	ids := make([]user.ID, 0, set.GetCardinality())
	for it := set.Iterator(); it.HasNext(); {
		ids = append(ids, user.ID(it.Next()))
	}
	return ids
}

// SetWithin returns the ids of set that lie in r, ascending.
func SetWithin(set *roaring64.Bitmap, r delivery.Range) (ids []user.ID) {
	it := set.Iterator()
	for it.AdvanceIfNeeded(uint64(r.From)); it.HasNext(); {
		id := user.ID(it.Next())
		if id > r.To {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// Uint64 reads a bigint from the wire.
func Uint64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}

// UsersAmong returns the condition for users with one of the ascending ids. Ids
// that lie close together, as in a popular drop, are read as one range. The range
// may contain other users.
func UsersAmong(ids []user.ID) (where string, args []any) {
	if CloseTogether(ids) {
		return `id between $1 and $2`, []any{ids[0], ids[len(ids)-1]}
	}
	return `id = any($1)`, []any{ids}
}

// CloseTogether reports whether the ascending ids lie so close together that
// reading their range is cheaper than looking up each id.
func CloseTogether(ids []user.ID) bool {
	return int64(ids[len(ids)-1]-ids[0]) < 4*int64(len(ids))
}

// WireIDs decodes an array of bigint without nulls from PostgreSQL's wire format
// (array_send): 20 bytes of header for one dimension, then for each number 4
// bytes of length and 8 bytes of value.
func WireIDs(raw []byte) iter.Seq[user.ID] {
	return func(yield func(user.ID) bool) {
		for raw = raw[min(20, len(raw)):]; len(raw) >= 12; raw = raw[12:] {
			if !yield(user.ID(Uint64(raw[4:]))) {
				return
			}
		}
	}
}
