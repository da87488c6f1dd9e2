package campaign

import (
	"encoding/json"
	"slices"

	"dropbell/domain/event"
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

// A Message is ranges on their way to becoming batches.
type Message struct {
	CampaignID int64
	Seq        int
	From, To   user.ID
	Users      int
	Payload    []byte // the JSON of an [event.CampaignRanges]
	// Strangers are the users of the range of whom only the id is known.
	Strangers []user.ID
}

// envelope exceeds the size in bytes of the JSON around the ranges of an [event.CampaignRanges]:
// the names of its fields and two numbers of at most 20 digits.
const envelope = 128

// messages packs the ranges of users, with their encoded sets, into messages numbered from seq.
func messages(campaignID int64, seq int, users [][]user.ID, encode func([]user.ID) ([]byte, error)) ([]Message, error) {
	ranges, sizes := make([]event.CampaignRange, len(users)), make([]int, len(users))
	for i, ids := range users {
		set, err := encode(ids)
		if err != nil {
			return nil, err
		}
		ranges[i] = event.CampaignRange{From: int64(ids[0]), To: int64(ids[len(ids)-1]), Users: len(ids), Set: set}
		raw, err := json.Marshal(ranges[i])
		if err != nil {
			return nil, err
		}
		sizes[i] = len(raw) + 1 // the comma
	}
	counts, err := Pack(sizes, MaxMessageBytes-envelope, MaxMessageRanges)
	if err != nil {
		return nil, err
	}
	var list []Message
	for _, n := range counts {
		m, err := messageOf(campaignID, seq+len(list), ranges[:n])
		if err != nil {
			return nil, err
		}
		list, ranges = append(list, m), ranges[n:]
	}
	return list, nil
}

func messageOf(campaignID int64, seq int, ranges []event.CampaignRange) (Message, error) {
	m := Message{CampaignID: campaignID, Seq: seq, From: user.ID(ranges[0].From), To: user.ID(ranges[len(ranges)-1].To)}
	for _, r := range ranges {
		m.Users += r.Users
	}
	var err error
	m.Payload, err = json.Marshal(event.CampaignRanges{CampaignID: campaignID, Seq: seq, Ranges: ranges})
	if err == nil && len(m.Payload) > MaxMessageBytes {
		err = ErrRangeTooLarge.Because("message %d has %d bytes", seq, len(m.Payload))
	}
	return m, err
}
