package gate

import (
	"time"

	"dropbell/domain/template"
)

// PlanState is how far a gate is.
type PlanState string

// The states. A gate is built when its template is published and again
// whenever its shards are gone or do not add up; it is retired when the
// template has ended and everything is written.
const (
	Building PlanState = "building"
	Active   PlanState = "standing"
	Retired  PlanState = "retired"
)

// Part is the database's state of one shard in the present epoch.
type Part struct {
	Allot int64 // what the shard is to be given in all
	// Settled accepted claims are decided for good, Refused of them were
	// refused by the database.
	Settled, Refused int64
}

// A Plan is the database's state of a gate, read in one statement. Without
// Shards there is no gate yet.
type Plan struct {
	Template template.Template
	Shards   int
	Epoch    int64
	State    PlanState
	// Base is how many coupons were issued when the present epoch was built,
	// or outside of it since.
	Base    int64
	Parts   []Part
	Reason  string // for which it was built last
	BuiltAt time.Time
	// Now is the database's clock when this was read.
	Now time.Time
}

// Allot returns how much was given to all shards.
func (p Plan) Allot() (sum int64) {
	for _, part := range p.Parts {
		sum += part.Allot
	}
	return sum
}

// Share returns the total allotment of each shard with which the whole stock is
// on sale. It never reduces an allotment.
func (p Plan) Share() []int64 {
	parts := Split(max(0, p.Template.Stock-p.Base-p.Allot()), p.Shards)
	for i := range parts {
		parts[i] += p.Parts[i].Allot
	}
	return parts
}

// ended reports whether nothing can be claimed any more.
func (p Plan) ended() bool {
	return p.Template.Stored == template.Closed || p.Template.Stored == template.Cancelled
}

// wanted reports whether the template is one for which a gate is built.
func (p Plan) wanted() bool {
	t := p.Template
	return t.ClaimMode == template.Gate && (t.Stored == template.Published || t.Stored == template.Paused)
}

// Step is what a gate needs next.
type Step string

// The steps. A gate that needs several gets the first; the next look finds
// the others.
const (
	Rest     Step = ""      // nothing to do
	Build    Step = "build" // create shards from the database
	SetTerms Step = "tell"  // put the newest terms in force
	Fill     Step = "fill"  // hand out stock that no shard has yet
	Clear    Step = "clear" // the template has ended: take the shards down
)

// Reasons for building.
const (
	ReasonNew        = "new"
	ReasonUnfinished = "unfinished"
	ReasonLost       = "lost"
	ReasonDifference = "difference"
	// ReasonExcess: a writer that held claims when Redis was emptied stored them
	// after the gate was built anew, so the shards hold more than the stock.
	// Claims of the excess would be refused when they are written.
	ReasonExcess = "excess"
	ReasonEnded  = "ended" // to take it down
)

// Next returns what the gate needs, judged by a look at its shards, and why
// if it has to be built.
func (p Plan) Next(shards []Shard) (Step, string) {
	switch {
	case p.State == Retired, p.Shards == 0 && !p.wanted():
		return Rest, ""
	case p.Shards == 0:
		return Build, ReasonNew
	case p.State == Building:
		return Build, ReasonUnfinished
	}
	for _, s := range shards {
		if s.Epoch > p.Epoch {
			return Rest, "" // another keeper has built it since the plan was read
		}
	}
	if p.Template.Stock < p.Base+p.Allot() && !p.ended() {
		return Build, ReasonExcess
	}
	tell, fill, idle := false, p.Template.Stock > p.Base+p.Allot(), true
	for i, s := range shards {
		if s.Epoch != p.Epoch || !s.Open || s.Allot > p.Parts[i].Allot {
			return Build, ReasonLost
		}
		tell = tell || s.Version < p.Template.Version
		fill = fill || s.Allot < p.Parts[i].Allot
		idle = idle && s.Waiting == 0
	}
	switch {
	case tell:
		return SetTerms, ""
	case p.ended() && idle && p.Ledger(shards).Writing == 0:
		return Clear, ""
	case p.ended():
		return Rest, ""
	case fill:
		return Fill, ""
	}
	return Rest, ""
}

// clockDoubt is how far a shard's clock may be from the database's before it is
// set again: more than the difference below which [Shards] ignore a new time.
const clockDoubt = 250 * time.Millisecond

// ClockSkewed reports whether a shard judges the window by a clock that is not the
// database's any more, as after the clock of its server was set. The look at
// the shards ended took after the plan was read.
func (p Plan) ClockSkewed(shards []Shard, took time.Duration) bool {
	for _, s := range shards {
		if s.Open && s.Epoch == p.Epoch && (s.Clock.Before(p.Now.Add(-clockDoubt)) || s.Clock.After(p.Now.Add(took+clockDoubt))) {
			return true
		}
	}
	return false
}

// A Ledger says where every coupon of a stock is.
type Ledger struct {
	Total   int64
	OnSale  int64 // for sale, on its way between shards, or about to be handed to one
	Moving  int64 // of these, on their way between shards
	Writing int64 // accepted, not in the database yet
	Issued  int64
	// Difference is what does not add up, 0 as it must be.
	Difference int64
}

// Ledger adds up a plan and a look at its shards that was taken after it.
//
// The database and the shards are read one after the other during claims, and
// yet the sum is exact: counters of what crossed from one side to the other are
// kept on both sides, and cancel out whatever the instants are. Three things do
// not cancel out and are the proof: every shard for itself must add up, the
// database's own counters must, and nothing may be settled that was never
// accepted.
func (p Plan) Ledger(shards []Shard) Ledger {
	l := Ledger{Total: p.Template.Stock, Issued: p.Template.Issued}
	if !p.of(shards) {
		l.OnSale = l.Total - l.Issued // nothing is accepted meanwhile
		return l
	}
	settled, refused := int64(0), int64(0)
	for i, s := range shards {
		part := p.Parts[i]
		l.OnSale += s.Stock + part.Allot - s.Allot
		l.Moving += s.Out - s.In
		writing := s.Accepted - part.Settled + part.Refused - s.Returned
		l.Writing += writing
		if unwritten := s.Accepted - part.Settled; unwritten < 0 {
			l.Difference -= unwritten
		}
		settled += part.Settled
		refused += part.Refused
		l.Difference += magnitude(s.Difference())
	}
	l.OnSale += l.Moving + p.Template.Stock - p.Base - p.Allot()
	l.Moving = max(0, l.Moving) // two looks may differ on what is on its way; the sum does not
	l.Difference += magnitude(p.Template.Issued-p.Base-settled+refused) + stray(shards)
	return l
}

// of reports whether these are the shards of a plan that stands.
func (p Plan) of(shards []Shard) bool {
	for _, s := range shards {
		if s.Epoch != p.Epoch || !s.Open {
			return false
		}
	}
	return p.State == Active && p.Shards == len(shards)
}

// stray returns how many coupons left a shard for another one and did not
// arrive although no move towards it is or was under way.
func stray(shards []Shard) (sum int64) {
	for _, to := range shards {
		if !to.Still {
			continue
		}
		arrived := to.In
		for _, from := range shards {
			arrived -= from.Gone[to.Number]
		}
		sum += magnitude(arrived)
	}
	return sum
}

func magnitude(n int64) int64 { return max(n, -n) }
