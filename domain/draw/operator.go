package draw

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Outdated is a template whose draw has no card yet, or has a card of an earlier version.
type Outdated struct {
	Template template.Template
	Draw     Draw // without cards if there is none
	Now      time.Time
}

// A CardChange is a new card of a draw. It is stored only if the template has the version that it was
// made of, and the draw the version of the template that Before names.
type CardChange struct {
	TemplateID, TemplateVersion int64
	Before                      int64 // 0 = the draw has no card
	Key, Signed                 string
	Card                        Card
}

// A Winner is an entry that won and has no coupon yet.
type Winner struct {
	UserID user.ID
	Rank   int
}

// A Forfeit is the coupon of a winner who was struck.
type Forfeit struct {
	UserID   user.ID
	CouponID int64
	Reason   string
}

// An Issued is what became of the coupon of a winner: its number, or why it was refused.
type Issued struct {
	UserID   user.ID
	CouponID int64
	Reason   string
}

// SealWork is what a seal is made of.
type SealWork struct {
	Draw   Draw
	Rows   []Row  // sorted by prepare
	Roots  []Hash // of the chunks, set by prepare
	Struck []Count
}

// DrawWork is what a result is made of.
type DrawWork struct {
	Draw   Draw
	Rows   []Row
	Struck []Strike
}

// Decision is a result to be stored.
type Decision struct {
	Evidence, Signed string
	// Winners are the tickets that won, with their ranks.
	Winners []Ticket
	Ranks   []int32
}

// OperatorStore is how an [Operator] reads and changes draws. All changes are guarded, so that of two
// workers one makes each of them.
type OperatorStore interface {
	// Outdated returns templates that need a card. Draws whose entries are closed need none.
	Outdated(ctx context.Context, limit int) ([]Outdated, error)
	SaveCard(ctx context.Context, c CardChange) error
	// KeepCard notes that the last card holds for a version of the template.
	KeepCard(ctx context.Context, templateID, version, before int64) error
	// Cancel ends the draws of templates that were cancelled.
	Cancel(ctx context.Context) error
	// CloseDue closes the draws whose entries end by now. It waits for entries that are being stored.
	CloseDue(ctx context.Context) error
	// Due returns the draws with a next step: closed draws, sealed draws whose random value can be
	// known by the database's clock, and drawn draws.
	Due(ctx context.Context) ([]Draw, error)
	// Seal reads the entries of a closed draw, calls prepare, stores the list, and stores the seal that
	// sign makes with the time of the database's clock. It does nothing if another worker is at the
	// draw or was faster.
	Seal(ctx context.Context, templateID int64, prepare func(*SealWork) error, sign func(*SealWork, time.Time) (signed string, s Seal, err error)) error
	// Decide reads the list of a sealed draw and stores the result that decide makes of it. It does
	// nothing if another worker is at the draw or was faster.
	Decide(ctx context.Context, templateID int64, decide func(DrawWork) (Decision, error)) error
	// Offer offers the coupons of winners who have no offer yet, for the hours of the card.
	Offer(ctx context.Context, templateID int64, hours int) error
	// Lapse ends the offers of a draw that were not accepted in time. As long as the drop gives coupons the draw
	// goes back to [Sealed], so that it is made again without these tickets.
	Lapse(ctx context.Context, templateID int64) error
	// Winners returns winners without coupons, in their order, whose offer needs no acceptance or was accepted.
	Winners(ctx context.Context, templateID int64, after, limit int) ([]Winner, error)
	// SaveIssued stores what became of winners.
	SaveIssued(ctx context.Context, templateID int64, list []Issued) error
	// Forfeited returns struck entries whose coupons are still to be returned to the stock, and Returned
	// notes that one was.
	Forfeited(ctx context.Context, templateID int64) ([]Forfeit, error)
	Returned(ctx context.Context, templateID int64, f Forfeit) error
	// Tell announces the result, over the channels that they chose, to winners who were not told yet, and once to the
	// users who did not win.
	Tell(ctx context.Context, templateID int64) error
	// TellLost announces up to limit entries that did not win to the server of the shop, if it wants to know
	// them. more reports whether there are further ones.
	TellLost(ctx context.Context, templateID int64, limit int) (more bool, err error)
	// WaitsFor returns the list of a drawn draw without open offers whose drop has a waitlist that entries which did
	// not win are still to join; waits is false for other draws.
	WaitsFor(ctx context.Context, templateID int64) (w DrawWork, waits bool, err error)
	// EnterWaiting puts up to limit entries that did not win on the waitlist, in one transaction. rank returns
	// the place of a ticket in the order of the draw, from 1; false for a ticket that is not in the sealed
	// list. more reports whether there are further entries.
	EnterWaiting(ctx context.Context, templateID int64, limit int, rank func(Ticket) (int64, bool)) (more bool, err error)
	// Finish ends a draw that has no winner without a coupon, or notes when the first open offer ends. Stock that is left
	// at the end is kept for users who wait.
	Finish(ctx context.Context, templateID int64) error
}

// Beacon fetches what a beacon signed for a round, in hexadecimal digits. It returns [ErrNoRound] if
// the round is not there yet. The caller verifies the answer.
type Beacon interface {
	Round(ctx context.Context, s Source, round int64) (string, error)
}

// MaxOffers is how often offers are made in one draw: at first, and after tickets that lapsed.
const MaxOffers = 20

// Operator takes the steps of draws: the card, the close, the seal, the draw and the coupons. Each
// step is stored once, whichever worker makes it, and a worker that dies leaves it to the next one.
type Operator struct {
	Store   OperatorStore
	Keys    Keys
	Sources Sources
	Beacon  Beacon
	Judge   Judge
	Gate    claim.Gate
	// Revoke revokes a coupon and returns it to the stock; a repetition changes nothing.
	Revoke func(ctx context.Context, couponID int64, reason string) error
	Random func() uint64
}

// outdatedAtOnce is how many cards one sweep makes.
const outdatedAtOnce = 100

// Sweep takes the next step of every draw that has one. A draw that fails does not keep others back.
func (o *Operator) Sweep(ctx context.Context) error {
	err := errors.Join(o.cards(ctx), o.Store.Cancel(ctx), o.Store.CloseDue(ctx))
	due, failed := o.Store.Due(ctx)
	if err = errors.Join(err, failed); failed != nil {
		return err
	}
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i, d := range due {
		all.Go(func() {
			if errs[i] = o.advance(ctx, d); errs[i] != nil {
				errs[i] = fmt.Errorf("draw of drop %d: %w", d.TemplateID, errs[i])
			}
		})
	}
	all.Wait()
	return errors.Join(err, errors.Join(errs...))
}

func (o *Operator) cards(ctx context.Context) error {
	list, err := o.Store.Outdated(ctx, outdatedAtOnce)
	for _, out := range list {
		if failed := o.card(ctx, out); failed != nil {
			err = errors.Join(err, fmt.Errorf("card of drop %d: %w", out.Template.ID, failed))
		}
	}
	return err
}

func (o *Operator) card(ctx context.Context, out Outdated) error {
	if len(o.Keys) == 0 {
		return ErrNoKey
	}
	t, k := out.Template, o.Keys[0]
	if out.Draw.Key != "" {
		var err error
		if k, err = o.Keys.Of(out.Draw.Key); err != nil {
			return err
		}
	}
	card, err := NewCard(t, out.Draw, o.Sources.Of(t.Opening, k, t.ID), out.Now)
	if err != nil {
		return err
	}
	if len(out.Draw.Cards) > 0 {
		last, err := out.Draw.Card()
		if err != nil {
			return err
		}
		if SameCard(last, card) {
			return o.Store.KeepCard(ctx, t.ID, t.Version, out.Draw.TemplateVersion)
		}
	}
	signed, err := k.Sign(card.Text())
	if err != nil {
		return err
	}
	return o.Store.SaveCard(ctx, CardChange{TemplateID: t.ID, TemplateVersion: t.Version, Before: out.Draw.TemplateVersion, Key: k.Public, Signed: signed, Card: card})
}

func (o *Operator) advance(ctx context.Context, d Draw) error {
	k, err := o.Keys.Of(d.Key)
	if err != nil {
		return err
	}
	switch d.State {
	case Closed:
		return o.seal(ctx, k, d.TemplateID)
	case Sealed:
		return o.draw(ctx, k, d)
	case Drawn:
		return o.issue(ctx, d)
	case Offered:
		return errors.Join(o.Store.Lapse(ctx, d.TemplateID), o.issueAccepted(ctx, d.TemplateID))
	}
	return nil
}

func (o *Operator) seal(ctx context.Context, k Key, templateID int64) error {
	var root Hash
	var card Card
	return o.Store.Seal(ctx, templateID, func(w *SealWork) (err error) {
		if card, err = w.Draw.Card(); err != nil {
			return err
		}
		if err = SortRows(w.Rows); err != nil {
			return err
		}
		tree := NewTree(card.Drop, w.Rows)
		if w.Roots, err = tree.ChunkRoots(); err == nil {
			root, err = tree.Root()
		}
		return err
	}, func(w *SealWork, now time.Time) (string, Seal, error) {
		s := SealOf(card, root, len(w.Rows), now, w.Struck)
		signed, err := k.Sign(s.Text())
		return signed, s, err
	})
}

func (o *Operator) draw(ctx context.Context, k Key, d Draw) error {
	card, err := d.Card()
	if err != nil {
		return err
	}
	evidence := d.Evidence
	switch {
	case evidence != "": // of an earlier draw, or the figures
	case card.Source.Kind == Commit:
		evidence = k.Commit(d.TemplateID).String()
	default:
		if evidence, err = o.Beacon.Round(ctx, card.Source, d.Round); err != nil {
			return err
		}
	}
	// A wrong answer of a relay is found before the list is read.
	if _, err := card.Source.Randomness(o.Judge, d.Round, evidence); err != nil {
		return err
	}
	return o.Store.Decide(ctx, d.TemplateID, func(w DrawWork) (Decision, error) {
		seal, err := w.Draw.Sealing()
		if err != nil {
			return Decision{}, err
		}
		result, order, outcome, err := NewResult(card, seal, w.Rows, evidence, w.Struck, o.Judge)
		if err != nil {
			return Decision{}, err
		}
		signed, err := k.Sign(result.Text())
		return decided(w.Rows, order, outcome, Decision{Evidence: evidence, Signed: signed}), err
	})
}

// decided adds the winners to d. A rank counts struck tickets, so that it stays when one is struck.
func decided(rows []Row, order []uint32, o Outcome, d Decision) Decision {
	next := 0
	for rank, i := range order {
		if next == len(o.Winners) {
			break
		}
		if i == o.Winners[next] {
			d.Winners, d.Ranks = append(d.Winners, rows[i].Ticket()), append(d.Ranks, int32(rank+1))
			next++
		}
	}
	return d
}
