package template

import (
	"time"

	"dropbell/domain/fault"
)

// OpeningMode is how the coupons of a drop are shared among the users who want one.
type OpeningMode string

// The modes. In a shuffled opening and in a draw users enter before opens_at, and a draw among all
// entries decides; see docs/fair.md.
const (
	FirstCome OpeningMode = "first_come"
	// Shuffled takes entries in the last minutes before the opening.
	Shuffled OpeningMode = "shuffled"
	// ByDraw takes entries for as long as staff decide, usually from the publication.
	ByDraw OpeningMode = "draw"
)

// Drawn reports whether a draw decides who gets the coupons.
func (m OpeningMode) Drawn() bool { return m == Shuffled || m == ByDraw }

// The sources of randomness that staff can choose; "" is the best source of the installation.
const (
	SourceDrand  = "drand"
	SourcePublic = "public"
	SourceCommit = "commit"
	SourceLocal  = "local"
)

// Opening is the part of a [Spec] about how coupons are shared. Entries of a draw close at opens_at.
type Opening struct {
	OpeningMode OpeningMode `field:"opening_mode,fixed"`
	// EntryMinutes is how many minutes before the opening entries are taken from; 0 = from the
	// publication, which a shuffled opening does not allow.
	EntryMinutes int `field:"entry_minutes,fixed"`
	// DrawSource is the source of randomness; "" = the best source of the installation.
	DrawSource string `field:"draw_source,fixed"`
	// DrawPublic names the public draw whose figures decide, with its day.
	DrawPublic string `field:"draw_public,max=200,fixed"`
	// AcceptHours is for how many hours winners may accept their coupon before the next ticket moves up;
	// 0 = winners get it at once, as always in a shuffled opening.
	AcceptHours int `field:"accept_hours,fixed"`
}

// Limits of an [Opening].
const (
	MaxShuffled     = 60
	MaxEntryMinutes = 525_600 // a year
	MaxDrawStock    = 10_000_000
	MaxAcceptHours  = 336 // two weeks
	// MaxAcceptStock bounds the stock of draws whose winners accept: the result names every ticket that lapsed.
	MaxAcceptStock = 1000
	maxPublic      = 200
)

// own returns o without the fields that do not belong to its mode and source.
func (o Opening) own() Opening {
	if o.OpeningMode == "" {
		o.OpeningMode = FirstCome
	}
	if o.OpeningMode == FirstCome {
		return Opening{OpeningMode: FirstCome}
	}
	if o.DrawSource != SourcePublic {
		o.DrawPublic = ""
	}
	return o
}

// checkOpening adds the broken rules of the opening to e.
func (s Spec) checkOpening(e *fault.Fields) {
	switch s.OpeningMode {
	case FirstCome, "":
		return
	case Shuffled:
		if s.EntryMinutes < 1 || s.EntryMinutes > MaxShuffled {
			e.Add("entry_minutes", "rule.entry_minutes_shuffled", "must be between 1 and %d", MaxShuffled)
		}
	case ByDraw:
		if s.EntryMinutes < 0 || s.EntryMinutes > MaxEntryMinutes {
			e.Add("entry_minutes", "rule.entry_minutes", "must be between 0 and %d", MaxEntryMinutes)
		}
	default:
		e.Add("opening_mode", "rule.opening_mode", "must be first_come, shuffled or draw")
		return
	}
	switch s.DrawSource {
	case "", SourceDrand, SourceCommit, SourceLocal:
	case SourcePublic:
		checkText(e, "draw_public", s.DrawPublic, 1, maxPublic)
	default:
		e.Add("draw_source", "rule.draw_source", "must be drand, public, commit or local")
	}
	if s.Obtain != ByClaim {
		e.Add("obtain", "rule.draw_obtain", "must be claim: the winners of a draw get their coupons without a code")
	}
	if s.ClaimMode != Durable {
		e.Add("claim_mode", "rule.draw_claim_mode", "must be durable: a draw has no rush")
	}
	if s.PerUserLimit != 1 {
		e.Add("per_user_limit", "rule.draw_limit", "must be 1: a user has one entry")
	}
	s.checkAccept(e)
	if s.Stock > MaxDrawStock {
		e.Add("stock", "rule.draw_stock", "must be at most %d for a draw", MaxDrawStock)
	}
}

func (s Spec) checkAccept(e *fault.Fields) {
	switch {
	case s.AcceptHours < 0 || s.AcceptHours > MaxAcceptHours:
		e.Add("accept_hours", "rule.accept_hours", "must be between 0 and %d", MaxAcceptHours)
	case s.AcceptHours > 0 && s.OpeningMode == Shuffled:
		e.Add("accept_hours", "rule.accept_shuffled", "must be 0: the winners of a shuffled opening get their coupons at once")
	case s.AcceptHours > 0 && s.Stock > MaxAcceptStock:
		e.Add("accept_hours", "rule.accept_stock", "must be 0 with more than %d coupons", MaxAcceptStock)
	case s.AcceptHours > 0 && s.OpensAt.Add(time.Duration(s.AcceptHours)*time.Hour).After(s.EndsAt()):
		e.Add("accept_hours", "rule.accept_ends", "must end before the drop ends")
	}
}

// EntriesFrom returns the first instant at which a drop that was published at the given instant takes
// entries. It is a whole second.
func (s Spec) EntriesFrom(published time.Time) time.Time {
	published = published.Truncate(time.Second)
	from := s.OpensAt.Add(-time.Duration(s.EntryMinutes) * time.Minute)
	if s.EntryMinutes == 0 || from.Before(published) {
		return published
	}
	return from
}

// checkDraw returns a [fault.Fields] if the installation cannot make the draw.
func (s *Service) checkDraw(o Opening) error {
	switch {
	case !o.OpeningMode.Drawn():
		return nil
	case s.Draws == nil:
		e := &fault.Fields{}
		e.Add("opening_mode", "rule.draws_off", "draws need DRAW_KEY; ask the operators of this server to set it")
		return e
	}
	return s.Draws(o)
}
