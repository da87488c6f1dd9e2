package campaign

import (
	"slices"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// Limits of one message of ranges.
const (
	MaxMessageBytes  = 800 << 10
	MaxMessageRanges = 100
)

// ErrRangeTooLarge is returned for a range that does not fit into a message.
var ErrRangeTooLarge = fault.New(fault.Invalid, "range_too_large", "a range of users does not fit into a message")

// Ranges divides ascending users into ranges of at most size users each: as few as possible, none
// empty, however large the gaps between ids are.
func Ranges(users []user.ID, size int) [][]user.ID {
	return slices.Collect(slices.Chunk(users, size))
}

// Pack returns how many consecutive ranges go into each message. A message has at most limit
// bytes and most ranges; sizes are the encoded sizes of the ranges in bytes. Each range is in
// exactly one message. Pack returns [ErrRangeTooLarge] for a range that does not fit into any
// message.
func Pack(sizes []int, limit, most int) ([]int, error) {
	var counts []int
	n, bytes := 0, 0
	for i, size := range sizes {
		if size > limit {
			return nil, ErrRangeTooLarge.Because("range %d has %d bytes, the limit is %d", i, size, limit)
		}
		if n == most || bytes+size > limit {
			counts = append(counts, n)
			n, bytes = 0, 0
		}
		n, bytes = n+1, bytes+size
	}
	if n > 0 {
		counts = append(counts, n)
	}
	return counts, nil
}

// A Message is consecutive ranges that are stored together.
type Message struct {
	Seq      int // its number in the campaign
	From, To user.ID
	Users    int
	Ranges   []Range
	// Strangers are the users of the ranges of whom only the id is known.
	Strangers []user.ID
}

// A Range is the recipients of one batch.
type Range struct {
	From, To user.ID
	Users    int
	Set      []byte // the users as a compressed set
}

// messages packs the ranges of users, with their encoded sets, into messages numbered from seq.
func messages(seq int, users [][]user.ID, encode func([]user.ID) ([]byte, error)) ([]Message, error) {
	ranges, sizes := make([]Range, len(users)), make([]int, len(users))
	for i, ids := range users {
		set, err := encode(ids)
		if err != nil {
			return nil, err
		}
		ranges[i] = Range{From: ids[0], To: ids[len(ids)-1], Users: len(ids), Set: set}
		sizes[i] = len(set)
	}
	counts, err := Pack(sizes, MaxMessageBytes, MaxMessageRanges)
	if err != nil {
		return nil, err
	}
	var list []Message
	for _, n := range counts {
		list, ranges = append(list, messageOf(seq+len(list), ranges[:n])), ranges[n:]
	}
	return list, nil
}

func messageOf(seq int, ranges []Range) Message {
	m := Message{Seq: seq, From: ranges[0].From, To: ranges[len(ranges)-1].To, Ranges: ranges}
	for _, r := range ranges {
		m.Users += r.Users
	}
	return m
}
