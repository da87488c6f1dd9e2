package draw

import (
	"time"

	"golang.org/x/mod/sumdb/note"

	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// State is how far a draw is.
type State string

// The states, in their order. A ticket that is struck or lapses after the draw leads back to Sealed: the
// same draw is then made again without it.
const (
	Open      State = "open"    // entries are taken in their window
	Closed    State = "closed"  // no entry can be made or left any more
	Sealed    State = "sealed"  // the list is fixed; the random value is waited for
	Drawn     State = "drawn"   // the winners are known; their coupons are being issued, or offered
	Offered   State = "offered" // winners may accept their coupons
	Done      State = "done"    // every winner has the coupon, or a reason why not
	Cancelled State = "cancelled"
)

// EntryState is what became of an entry. An entry that did not win stays Entered.
type EntryState string

// The states of entries.
const (
	Entered EntryState = "entered"
	Won     EntryState = "won"
	Struck  EntryState = "struck"
	Lapsed  EntryState = "lapsed" // won, and was not accepted in time
)

// ReasonLapsed is the reason by which a result names the tickets that lapsed.
const ReasonLapsed = "not accepted in time"

// A Draw is the draw of a drop, as it is stored.
type Draw struct {
	TemplateID int64
	// TemplateVersion is the version of the template that the last card was made of.
	TemplateVersion int64
	State           State
	// Key is the public key that signs.
	Key string
	// Cards are all versions of the signed card.
	Cards []string
	// OpensAt and ClosesAt are the window of entries, as on the last card.
	OpensAt, ClosesAt time.Time
	Seal              string
	SealedAt          *time.Time
	// Round is the round that decides; 0 without a seal, and for sources without rounds.
	Round int64
	// Figures are the figures of a public draw as FiguresBy typed them; Evidence is what two
	// members typed alike, or what a beacon signed.
	Figures, FiguresBy string
	Evidence           string
	Result             string
	DrawnAt            *time.Time
	// Offers counts how often offers were made, and OffersUntil is when the first open offer ends.
	Offers      int
	OffersUntil *time.Time
	// GroupChanges counts how often staff changed the group of a door after the first card, until its members were frozen.
	GroupChanges int
	Counts
}

// Counts account for the entries of a draw: every entry was left again, was struck, won, lapsed, or
// waits. Winners whose offer is open have won.
type Counts struct{ Entered, Left, Won, Struck, Lapsed int64 }

// Waiting counts the entries that did not win and were neither struck nor left. Before the draw these
// are all entries.
func (c Counts) Waiting() int64 { return c.Entered - c.Left - c.Won - c.Struck - c.Lapsed }

// Taken counts the entries that were not left, also those that were struck.
func (c Counts) Taken() int64 { return c.Entered - c.Left }

// Entries counts the entries that can win: the entries of the sealed list, and before the seal the entries that were neither left nor struck.
func (d Draw) Entries() int64 {
	if d.Seal == "" {
		return d.Taken() - d.Struck
	}
	seal, err := d.Sealing()
	if err != nil {
		return d.Taken()
	}
	return int64(seal.Entries)
}

// Published is what everybody may know, without the list.
func (d Draw) Published() Published {
	return Published{Protocol: Protocol, Key: d.Key, Cards: d.Cards, Seal: d.Seal, Result: d.Result}
}

// Card returns the last card.
func (d Draw) Card() (Card, error) {
	key, err := note.NewVerifier(d.Key)
	if err != nil {
		return Card{}, err
	}
	return OpenCard(key, d.Cards[len(d.Cards)-1])
}

// DueAt returns when the round that decides appears: the round of the seal, before the seal the round of the card. It returns the
// zero time for sources without rounds.
func (d Draw) DueAt() time.Time {
	round := d.Round
	if round == 0 && d.Seal == "" {
		if card, err := d.Card(); err == nil {
			round = card.Round
		}
	}
	if round == 0 {
		return time.Time{}
	}
	return RoundTime(round)
}

// Sealing returns the seal.
func (d Draw) Sealing() (Seal, error) {
	key, err := note.NewVerifier(d.Key)
	if err != nil {
		return Seal{}, err
	}
	return OpenSeal(key, d.Seal)
}

// Outcome returns the result.
func (d Draw) Outcome() (Result, error) {
	key, err := note.NewVerifier(d.Key)
	if err != nil {
		return Result{}, err
	}
	return OpenResult(key, d.Result)
}

// A Record is an entry with what became of it.
type Record struct {
	Entry
	EnteredAt time.Time
	State     EntryState
	// Rank is a winner's place in the order of the scores, from 1.
	Rank int
	// CouponID is the winner's coupon; 0 until it is issued.
	CouponID int64
	// Door is the place of the door that the user entered through; 0 = the drop has no doors.
	Door int
	// OfferedUntil is the first instant at which the winner cannot accept the coupon any more; nil = it
	// needs no acceptance. AcceptedAt is when the winner accepted.
	OfferedUntil, AcceptedAt *time.Time
	// Listed is set for a struck or lapsed ticket that is in the sealed list. Reason is why it was struck, or
	// why a winner got no coupon.
	Listed bool
	Reason string
}

// Offered reports whether the coupon of a winner was offered and is still to be accepted or to lapse.
func (r Record) Offered() bool {
	return r.State == Won && r.OfferedUntil != nil && r.AcceptedAt == nil && r.CouponID == 0 && r.Reason == ""
}

// Faults of this package.
var (
	ErrNoDraw      = fault.New(fault.NotFound, "draw_not_found", "there is no draw of this drop; check its id, or claim its coupons with POST /claims")
	ErrClosed      = fault.New(fault.Conflict, "entries_closed", "entries are closed; the draw is made of the entries there are")
	ErrNotEntered  = fault.New(fault.NotFound, "not_entered", "you have no entry in this draw; enter with PUT /draws/{template}/entry")
	ErrNotListed   = fault.New(fault.NotFound, "ticket_not_found", "the sealed list of this draw does not have the ticket; check its 32 characters, or wait for the seal")
	ErrNotWon      = fault.New(fault.Conflict, "not_won", "your entry has not won; GET /draws/{id}/entry says when the coupon of another entry comes to it")
	ErrLapsed      = fault.New(fault.Conflict, "offer_lapsed", "the coupon was not accepted in time; it goes to the next ticket")
	ErrNoKey       = fault.New(fault.Unavailable, "overloaded", "the key that signs this draw is missing in DRAW_KEY; add it and restart web and worker")
	ErrNoRound     = fault.New(fault.Unavailable, "overloaded", "the round of the source of randomness is not there yet; it is asked for again")
	ErrNotSealed   = fault.New(fault.Conflict, "invalid_transition", "the list is not sealed yet; type the figures after the seal")
	ErrNotPublic   = fault.New(fault.Conflict, "invalid_transition", "the random value of this draw is not made of figures; only a public draw has some")
	ErrFiguresSame = fault.New(fault.Conflict, "invalid_transition", "these figures are stored; a second member must type the same")
	ErrFiguresOff  = fault.New(fault.Conflict, "figures_differ", "the figures differ from those that the first member typed; compare both with the public draw")
)

// Sources are the sources of randomness of an installation. A public draw and a commit are always
// possible.
type Sources struct {
	Drand bool
	// Local is the public key of the local beacon; "" = there is none.
	Local string
}

// best is the source that is taken without a choice of staff.
func (s Sources) best() string {
	switch {
	case s.Drand:
		return template.SourceDrand
	case s.Local != "":
		return template.SourceLocal
	}
	return template.SourceCommit
}

// Check adds an error to a [fault.Fields] if the installation does not have the source of o.
func (s Sources) Check(o template.Opening) error {
	e := &fault.Fields{}
	switch {
	case o.DrawSource == template.SourceDrand && !s.Drand:
		e.Add("draw_source", "rule.draw_source_drand", "drand needs DRAND_URLS; choose another source")
	case o.DrawSource == template.SourceLocal && s.Local == "":
		e.Add("draw_source", "rule.draw_source_local", "this installation has no local beacon, which is for development; choose another source")
	}
	return e.Err()
}

// Of returns the source that the card of a drop announces.
func (s Sources) Of(o template.Opening, k Key, drop int64) Source {
	kind := o.DrawSource
	if kind == "" {
		kind = s.best()
	}
	switch kind {
	case template.SourceDrand:
		return Source{Drand, QuicknetChain}
	case template.SourceLocal:
		return Source{Local, s.Local}
	case template.SourcePublic:
		return Source{Public, o.DrawPublic}
	}
	secret := k.Commit(drop)
	return Source{Commit, Hash(hashOf(secret[:])).String()}
}

// NewCard returns the card of a published template. before is the draw with its earlier cards, without
// any for the first card; its source stays. Once entries have opened their first instant stays, so that no
// receipt lies outside the window.
func NewCard(t template.Template, before Draw, source Source, now time.Time) (Card, error) {
	published := now
	if t.PublishedAt != nil {
		published = *t.PublishedAt
	}
	c := Card{Drop: t.ID, Version: len(before.Cards) + 1, OpensAt: t.EntriesFrom(published), ClosesAt: t.OpensAt, Stock: int(t.Stock), MaxWeight: 1, Source: source, AcceptHours: t.AcceptHours}
	for _, d := range t.Doors {
		c.Doors, c.MaxWeight = append(c.Doors, CardDoor{d.Chances(), d.Name}), max(c.MaxWeight, d.Chances())
	}
	if len(before.Cards) > 0 {
		last, err := before.Card()
		if err != nil {
			return c, err
		}
		if c.Source = last.Source; !last.OpensAt.After(now) && last.OpensAt.Before(c.OpensAt) {
			c.OpensAt = last.OpensAt
		}
	}
	if c.Source.Rounds() {
		c.Round = RoundOf(c.ClosesAt, c.ClosesAt)
	}
	return c, nil
}

// SameCard reports whether two cards announce the same.
func SameCard(a, b Card) bool {
	a.Version = b.Version
	return a.Text() == b.Text()
}
