package gate

import (
	"slices"
	"time"

	"dropbell/domain/template"
)

// Terms are the conditions, besides the stock, by which a claim is judged, as of
// one version of the template. An older version never replaces a newer one.
type Terms struct {
	Version      int64
	Status       template.State // as stored
	Obtain       template.Obtain
	OpensAt      time.Time
	ClosesAt     time.Time
	PerUserLimit int
	// HouseholdLimit is how many coupons the users of one household may have, 0 = no limit.
	HouseholdLimit int
	// GoneAt is the instant from which a coupon given away could no longer be used;
	// zero = the instant depends on when the coupon is given.
	GoneAt time.Time
	// Over is set once staff have closed the drop before its time. Not even staff
	// can give coupons away then.
	Over bool
}

// TermsOf returns the terms of a template.
func TermsOf(t template.Template) Terms {
	terms := Terms{Version: t.Version, Status: t.Stored, Obtain: t.Obtain, OpensAt: t.OpensAt, ClosesAt: t.ClosesAt, PerUserLimit: t.PerUserLimit, HouseholdLimit: t.HouseholdLimit,
		Over: t.ClosedEarly()}
	if t.ValidUntil != nil {
		terms.GoneAt = *t.ValidUntil
	}
	return terms
}

// A Shard is one look at one part of a stock. All its numbers are of one instant. Counters
// start at 0 when the shard is filled.
type Shard struct {
	Number int
	// Epoch counts how often the gate was built; 0 = there is no shard.
	Epoch int64
	// Open is false while the shard is being built.
	Open bool
	// Filling is set while an open shard does not know all its users yet. The database
	// is asked before a claim of an unknown user is decided.
	Filling bool
	// Broken is set if the shard lacks the counts of its users, its accepted requests, or its
	// stream.
	Broken  bool
	Version int64 // of the terms in force
	Stock   int64 // left
	Allot   int64 // given by the gate in all
	// Shares is how many openings of doors the allotment takes into account; see [template.Template.SharesOpen].
	Shares int64
	// Accepted claims took one coupon each; Returned claims gave the coupon back.
	Accepted, Returned int64
	// In and Out are the coupons that came from and went to other shards.
	In, Out int64
	// Begun and Done are numbers of moves towards this shard: of the last move
	// begun, and of the last move that arrived.
	Begun, Done int64
	// Still is set if no move towards this shard was under way while all shards were read.
	Still bool
	// Gone is the number of coupons sent to each other shard, over all moves.
	Gone map[int]int64
	// Waiting is how many groups of claims are yet to be written.
	Waiting int64
	// Clock is the instant by which the shard judges whether the drop is open.
	Clock time.Time
	// Moved is set if the shard is on a server whose clock was not compared with the
	// database's clock, as after a failover or a restart.
	Moved bool
}

// Difference returns how many coupons appeared on the shard without a reason, or, if
// negative, vanished from it. It must be 0 at every instant.
func (s Shard) Difference() int64 {
	return s.Stock + s.Accepted - s.Returned - (s.Allot + s.In - s.Out)
}

// Taken returns how many accepted claims stand.
func (s Shard) Taken() int64 { return s.Accepted - s.Returned }

// ShareDue reports whether a door had opened by now whose share some shard has not been given yet.
func ShareDue(t *template.Template, seen []Shard, now time.Time) bool {
	open := int64(t.SharesOpen(now))
	return slices.ContainsFunc(seen, func(s Shard) bool { return s.Shares < open })
}

// SoldOut reports whether two looks prove that at one moment between them no coupon
// was left, neither on a shard nor on its way to another shard. The shards of one
// look are not read at the same instant, so empty shards alone would prove nothing:
// a coupon may move from a shard that is read later to a shard that was read
// before. The count of coupons taken only grows unless a coupon is given back, and
// Returned shows that.
func SoldOut(first, second []Shard) bool {
	if len(first) == 0 || len(first) != len(second) {
		return false
	}
	var taken, allot int64
	for i, s := range first {
		if s.Epoch == 0 || !s.Open || !second[i].Open || s.Epoch != second[i].Epoch || s.Returned != second[i].Returned || s.Allot != second[i].Allot {
			return false
		}
		taken += s.Taken()
		allot += s.Allot
	}
	return taken >= allot
}

// Left reports whether a look shows that coupons were left: an open shard had
// stock, or all shards were open and not all coupons were taken.
func Left(seen []Shard) bool {
	all := true
	var taken, allot int64
	for _, s := range seen {
		open := s.Open && s.Epoch != 0
		if open && s.Stock > 0 {
			return true
		}
		all = all && open
		taken += s.Taken()
		allot += s.Allot
	}
	return all && taken < allot
}
