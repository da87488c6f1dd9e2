package gate

import (
	"slices"
	"time"

	"dropbell/domain/template"
)

// PlanState is how far a gate is.
type PlanState string

// The states. A gate is built when its template is published, and again when its shards
// are gone or do not add up. It is retired when the template has ended and every claim is
// written.
const (
	Building PlanState = "building"
	Active   PlanState = "standing"
	Retired  PlanState = "retired"
)

// Part is the database's state of one shard in its present epoch.
type Part struct {
	// Epoch is the epoch in which the shard was built last, alone or with all others.
	Epoch int64
	Allot int64 // the shard's total allotment
	// Settled is the number of accepted claims that the database has decided for
	// good. It refused Refused of them.
	Settled, Refused int64
}

// A Plan is the database's state of a gate, read in one statement. Zero Shards
// means that there is no gate yet.
type Plan struct {
	Template template.Template
	Shards   int
	// Epoch counts how often the gate or one of its shards was built.
	Epoch int64
	State PlanState
	// Base is the number of coupons that were issued when the present epoch was
	// built, plus the coupons issued outside of this epoch since.
	Base    int64
	Parts   []Part
	Reason  string // why the gate was built last
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

// forTaps returns how many coupons of the stock are not kept for users who wait. Shards are given
// no others.
func (p Plan) forTaps() int64 { return p.Template.Stock - p.Template.Held }

// Sellable returns how many coupons may be issued by now: those for taps, or the shares of the
// doors that are open.
func (p Plan) Sellable() int64 { return min(p.forTaps(), p.Template.SellableAt(p.Now)) }

// Share returns the total allotment of each shard with which all coupons that may be
// issued are on sale. Share never reduces an allotment.
func (p Plan) Share() []int64 {
	parts := Split(max(0, p.Sellable()-p.Base-p.Allot()), p.Shards)
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

// The steps. If a gate needs several steps, Next returns the first; the next look
// finds the others.
const (
	Rest        Step = ""       // nothing to do
	Build       Step = "build"  // make all shards from what the database knows
	BuildShards Step = "shards" // make some shards, while the others go on
	SetTerms    Step = "tell"   // put the newest terms in force
	Fill        Step = "fill"   // hand out stock that no shard has yet
	Load        Step = "load"   // load counts and records of users whom the shards do not know yet
	Clear       Step = "clear"  // the template has ended: take the shards down
)

// A Need is the next step, with its reason and its shards.
type Need struct {
	Step   Step
	Reason string // for building
	Shards []int  // to be built alone
}

// Reasons for building.
const (
	ReasonNew        = "new"
	ReasonUnfinished = "unfinished"
	ReasonLost       = "lost"
	ReasonDifference = "difference"
	// ReasonExcess: a writer that held claims when a shard was lost stored them after the
	// shard was built anew, so the shard holds more than the stock. Claims of the excess
	// coupons would be refused when they are written.
	ReasonExcess = "excess"
	// ReasonRestored: the shards have a later epoch than the database, or accepted
	// claims that are neither in the database nor on a stream. The database was
	// restored from a backup or lost its newest transactions in a failover, or a shard
	// has lost its stream.
	ReasonRestored = "restored"
	ReasonEnded    = "ended" // to take it down
)

// Next returns the next step that the gate needs, judged by a look at its shards,
// and the reason if the gate or a shard has to be built.
func (p Plan) Next(shards []Shard) Need {
	switch {
	case p.State == Retired, p.Shards == 0 && !p.wanted():
		return Need{}
	case p.Shards == 0:
		return Need{Step: Build, Reason: ReasonNew}
	case p.State == Building && p.Reason == ReasonRestored:
		return Need{Step: Build, Reason: ReasonRestored} // what the shards remember may not be written yet
	case p.State == Building:
		return Need{Step: Build, Reason: ReasonUnfinished}
	}
	if slices.ContainsFunc(shards, p.older) {
		return Need{} // another keeper has built it since the plan was read
	}
	if p.forTaps() < p.Base+p.Allot() && !p.ended() {
		if p.Reason == ReasonExcess { // their allotments were not enough
			return Need{Step: Build, Reason: ReasonExcess}
		}
		return p.rebuild(p.latest(), ReasonExcess)
	}
	var lost []int
	reason := ReasonExcess
	tell, fill, load, idle := false, p.Sellable() > p.Base+p.Allot() || ShareDue(&p.Template, shards, p.Now), false, true
	for i, s := range shards {
		switch {
		case !p.standing(s):
			if lost = append(lost, i); reason != ReasonRestored {
				reason = ReasonLost
			}
			if p.Reason == ReasonRestored && s.Epoch > 0 { // it is there: its building was not finished
				reason = ReasonRestored
			}
		case s.Allot > p.Parts[i].Allot:
			lost = append(lost, i)
		}
		tell = tell || s.Version < p.Template.Version
		load = load || s.Filling
		fill = fill || s.Allot < p.Parts[i].Allot
		idle = idle && s.Waiting == 0
	}
	switch {
	case len(lost) > 0:
		return p.rebuild(lost, reason)
	case tell:
		return Need{Step: SetTerms}
	case p.ended() && idle && p.Ledger(shards).Writing == 0:
		return Need{Step: Clear}
	case p.ended():
		return Need{}
	case fill:
		return Need{Step: Fill}
	case load:
		return Need{Step: Load}
	}
	return Need{}
}

// rebuild returns the step that builds the bad shards alone, or all shards if none is
// good. The joint stock of the bad shards follows from the counters about them that
// the good shards keep.
func (p Plan) rebuild(bad []int, reason string) Need {
	if len(bad) > 0 && len(bad) < p.Shards {
		return Need{Step: BuildShards, Reason: reason, Shards: bad}
	}
	return Need{Step: Build, Reason: reason}
}

// latest returns the shards that were built last.
func (p Plan) latest() (list []int) {
	for i, part := range p.Parts {
		switch {
		case len(list) > 0 && part.Epoch < p.Parts[list[0]].Epoch:
		case len(list) > 0 && part.Epoch == p.Parts[list[0]].Epoch:
			list = append(list, i)
		default:
			list = []int{i}
		}
	}
	return list
}

// standing reports whether the shard is there, whole, open, and of its epoch.
func (p Plan) standing(s Shard) bool {
	return s.Epoch == p.Parts[s.Number].Epoch && s.Open && !s.Broken
}

// lags returns the shards that prove that the database has lost transactions: a
// shard of an epoch that the database has not begun, and a shard on which no claim
// waits to be written although not all its accepted claims are settled. The plan
// must have been read after the look at the shards.
func (p Plan) lags(shards []Shard) (list []int) {
	if p.State == Retired {
		return nil
	}
	for i, s := range shards {
		unsettled := p.State == Active && p.standing(s) && s.Waiting == 0 && s.Accepted-s.Returned > p.Parts[i].Settled-p.Parts[i].Refused
		if p.older(s) || unsettled {
			list = append(list, i)
		}
	}
	return list
}

// older reports whether the shard is of a later epoch than the plan says.
func (p Plan) older(s Shard) bool {
	if p.State == Building {
		return s.Epoch > p.Epoch
	}
	return s.Epoch > p.Parts[s.Number].Epoch
}

// recovery returns the step for shards that [Plan.lags] returned. A database that lacks
// an epoch does not know the allotments of that epoch, so all shards are built. All
// shards are also built if several shards lag: the database has lost transactions then,
// perhaps of other shards too.
func (p Plan) recovery(lagging []int, shards []Shard) Need {
	if slices.ContainsFunc(shards, p.older) || p.State != Active || len(lagging) > 1 {
		return Need{Step: Build, Reason: ReasonRestored}
	}
	return p.rebuild(lagging, ReasonRestored)
}

// newest returns the latest epoch of the shards.
func newest(shards []Shard) (epoch int64) {
	for _, s := range shards {
		epoch = max(epoch, s.Epoch)
	}
	return epoch
}

// clockDoubt is how far a shard's clock may be from the database's clock before it is set
// again. It is more than the difference below which [Shards] ignore a new time.
const clockDoubt = 250 * time.Millisecond

// ClockSkewed reports whether a shard judges the window by a clock that differs, or may
// differ, from the database's clock, as after a change of its server's clock or a move
// to another server. took is the time from the read of the plan to the end of the look
// at the shards.
func (p Plan) ClockSkewed(shards []Shard, took time.Duration) bool {
	for _, s := range shards {
		if p.standing(s) && (s.Moved || s.Clock.Before(p.Now.Add(-clockDoubt)) || s.Clock.After(p.Now.Add(took+clockDoubt))) {
			return true
		}
	}
	return false
}

// skew returns the largest difference of a standing shard's clock from the database's
// clock.
func (p Plan) skew(shards []Shard) (by time.Duration) {
	for _, s := range shards {
		if off := s.Clock.Sub(p.Now); p.standing(s) && off.Abs() > by.Abs() {
			by = off
		}
	}
	return by
}

// A Ledger says where every coupon of a stock is.
type Ledger struct {
	Total   int64
	OnSale  int64 // for sale, on its way between shards, or about to be handed to one
	Moving  int64 // of these, on their way between shards
	Writing int64 // accepted, not in the database yet
	Held    int64 // kept for users who wait
	Issued  int64
	// Difference is the number of coupons that do not add up; it must be 0.
	Difference int64
}

// Ledger adds up a plan and a look at its shards that was taken after the plan was
// read.
//
// The database and the shards are read one after the other while claims go on, and
// the sum is exact all the same. Each coupon that crosses from one side to the
// other is counted on both sides, so these counters cancel out at any instants.
// Three sums do not cancel out and are the proof: the counters of each shard must
// add up, the database's own counters must add up, and no more claims may be
// settled than were accepted.
func (p Plan) Ledger(shards []Shard) Ledger {
	l := Ledger{Total: p.Template.Stock, Held: p.Template.Held, Issued: p.Template.Issued}
	if p.State != Active || p.Shards != len(shards) {
		l.OnSale = l.Total - l.Held - l.Issued // nothing is accepted meanwhile
		return l
	}
	settled, refused := int64(0), int64(0)
	for i, s := range shards {
		part := p.Parts[i]
		settled += part.Settled
		refused += part.Refused
		if !p.standing(s) {
			continue // nothing is accepted there
		}
		l.OnSale += s.Stock + part.Allot - s.Allot
		l.Moving += s.Out - s.In
		l.Writing += s.Accepted - part.Settled + part.Refused - s.Returned
		l.Difference += p.own(s)
	}
	l.Difference += magnitude(p.Template.Issued - p.Base - settled + refused)
	if !p.of(shards) {
		// The stock of a missing shard follows from the stock of all others.
		l.Moving, l.OnSale = 0, l.Total-l.Held-l.Issued-l.Writing
		return l
	}
	l.OnSale += l.Moving + p.forTaps() - p.Base - p.Allot()
	l.Moving = max(0, l.Moving) // two looks may differ on what is on its way; the sum does not
	l.Difference += stray(shards)
	return l
}

// own returns by how many coupons the counters of one standing shard are off:
// coupons that the shard cannot account for, and settled claims that it never
// accepted.
func (p Plan) own(s Shard) int64 {
	return magnitude(s.Difference()) + max(0, p.Parts[s.Number].Settled-s.Accepted)
}

// repair returns the step against a difference. If the counters of single shards
// explain the whole difference, these shards are built alone; otherwise all shards
// are built.
func (p Plan) repair(shards []Shard) Need {
	var off []int
	var sum int64
	for i, s := range shards {
		if p.standing(s) && p.own(s) > 0 {
			off, sum = append(off, i), sum+p.own(s)
		}
	}
	if sum == p.Ledger(shards).Difference {
		return p.rebuild(off, ReasonDifference)
	}
	return Need{Step: Build, Reason: ReasonDifference}
}

// of reports whether all these shards of the plan stand.
func (p Plan) of(shards []Shard) bool {
	for _, s := range shards {
		if len(p.Parts) <= s.Number || !p.standing(s) {
			return false
		}
	}
	return p.State == Active && p.Shards == len(shards)
}

// stray returns how many coupons left a shard for another shard and did not arrive,
// although no move towards the other shard is or was under way.
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
