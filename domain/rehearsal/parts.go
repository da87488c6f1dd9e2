package rehearsal

import "slices"

// PartKind is a part of an opening that is more than claims of coupons.
type PartKind string

// The parts.
const (
	// OfGate is the claim gate in Redis. Came customers were told that they get a coupon, and Got of their coupons were stored.
	OfGate PartKind = "gate"
	// OfDoor is a door: Came customers came through it, at its opening.
	OfDoor PartKind = "door"
	// OfStrangers are customers who come through no door. All of them must be refused.
	OfStrangers PartKind = "strangers"
	// OfDraw is a draw: Came customers entered, and Got of them won a coupon.
	OfDraw PartKind = "draw"
	// OfWaitlist is a waitlist: Came customers waited, and Got of them got one of the Back coupons that came back.
	OfWaitlist PartKind = "waitlist"
	// OfPass is the protection of the drop. Came customers came without a pass; all of them must be refused. Took is how long a puzzle took, 0 = the
	// drop accepts none.
	OfPass PartKind = "pass"
	// OfEarly are the reminders of doors that open earlier: Came were due, and Got were sent.
	OfEarly PartKind = "early"
	// OfResult are the messages about the result of a draw: Came customers entered, and Got of them were told.
	OfResult PartKind = "result"
)

// A Part is how one part of the opening went.
type Part struct {
	Kind PartKind `json:"kind"`
	// Name is that of the door.
	Name string `json:"name,omitempty"`
	// Came customers came, of whom Got got a coupon and Refused were refused. Parts that are messages count messages.
	Came    int64 `json:"came"`
	Got     int64 `json:"got"`
	Refused int64 `json:"refused,omitempty"`
	Back    int64 `json:"back,omitempty"`
	// Took is how long it took from the last customer to the last coupon, in milliseconds, unless the kind says otherwise.
	Took int64 `json:"took,omitempty"`
	// Off are the coupons that were given wrongly, or not given; it must be 0.
	Off int64 `json:"off,omitempty"`
}

// add adds the part, and what is off in it, to the report.
func (r *Report) add(p Part) {
	r.Parts = append(r.Parts, p)
	r.Off += p.Off
}

// AddGate adds the claim gate: accepted claims, of which stored have their coupons, took milliseconds after the last claim.
func (r *Report) AddGate(accepted, stored, took int64) {
	r.add(Part{Kind: OfGate, Came: accepted, Got: stored, Refused: max(0, accepted-stored), Took: took, Off: max(0, stored-accepted)})
}

// AddDoor adds what became of the customers of a door.
func (r *Report) AddDoor(name string, came Result) {
	r.add(Part{Kind: OfDoor, Name: name, Came: came.Came(), Got: came.Issued + came.Again, Refused: came.Refused})
}

// AddStrangers adds what became of the customers without a door. A coupon for one of them is off.
func (r *Report) AddStrangers(came Result) {
	r.add(Part{Kind: OfStrangers, Came: came.Came(), Got: came.Issued + came.Again, Refused: came.Refused, Off: came.Issued + came.Again})
}

// AddPasses adds what became of the customers who came without a pass. A customer who was not refused is off.
func (r *Report) AddPasses(came, refused, puzzle int64) {
	r.add(Part{Kind: OfPass, Came: came, Refused: refused, Took: puzzle, Off: came - refused})
}

// AddEarly adds the reminders of doors that open earlier.
func (r *Report) AddEarly(due, sent int64) { r.add(Part{Kind: OfEarly, Came: due, Got: sent}) }

// AddResult adds the messages about the result of a draw. Each entry must have a message that was due, of which sent were sent.
func (r *Report) AddResult(entered, due, sent int64) {
	off := entered - due
	r.add(Part{Kind: OfResult, Came: entered, Got: sent, Off: max(off, -off)})
}

// AddDraw adds a draw with its entries and coupons, made took milliseconds after the entries closed. Each entry wins while there are coupons.
func (r *Report) AddDraw(entered, won, took int64) {
	off := min(entered, r.Stock) - won
	r.add(Part{Kind: OfDraw, Came: entered, Got: won, Took: took, Off: max(off, -off)})
}

// AddWaitlist adds a waitlist to whose users back coupons came back. The last of them got theirs after took milliseconds.
func (r *Report) AddWaitlist(waited, got, back, took int64) {
	off := min(waited, back) - got
	r.add(Part{Kind: OfWaitlist, Came: waited, Got: got, Back: back, Took: took, Off: max(off, -off)})
}

// Part returns the first part of the kind; false if there is none.
func (r Report) Part(k PartKind) (Part, bool) {
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Kind == k })
	if i < 0 {
		return Part{}, false
	}
	return r.Parts[i], true
}
