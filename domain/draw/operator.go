package draw

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
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
	Rows   []Row // sorted by Prepare
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
	// Winners returns winners without coupons, in their order.
	Winners(ctx context.Context, templateID int64, after, limit int) ([]Winner, error)
	// SaveIssued stores what became of winners.
	SaveIssued(ctx context.Context, templateID int64, list []Issued) error
	// Forfeited returns struck entries whose coupons are still to be returned to the stock, and Returned
	// notes that one was.
	Forfeited(ctx context.Context, templateID int64) ([]Forfeit, error)
	Returned(ctx context.Context, templateID int64, f Forfeit) error
	// TellLost announces up to limit entries that did not win to the server of the shop, if it wants to know
	// them. more reports whether there are further ones.
	TellLost(ctx context.Context, templateID int64, limit int) (more bool, err error)
	// WaitsFor returns the list of a drawn draw whose drop has a waitlist that entries which did not win are
	// still to join; waits is false for other draws.
	WaitsFor(ctx context.Context, templateID int64) (w DrawWork, waits bool, err error)
	// EnterWaiting puts up to limit entries that did not win on the waitlist, in one transaction. rank returns
	// the place of a ticket in the order of the draw, from 1; false for a ticket that is not in the sealed
	// list. more reports whether there are further entries.
	EnterWaiting(ctx context.Context, templateID int64, limit int, rank func(Ticket) (int64, bool)) (more bool, err error)
	// Finish ends a drawn draw that has no winner without a coupon. Stock that is left is kept for users who wait.
	Finish(ctx context.Context, templateID int64) error
}

// Beacon fetches what a beacon signed for a round, in hexadecimal digits. It returns [ErrNoRound] if
// the round is not there yet. The caller verifies the answer.
type Beacon interface {
	Round(ctx context.Context, s Source, round int64) (string, error)
}

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
		return o.issue(ctx, d.TemplateID)
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
		if err = SortRows(w.Rows); err == nil {
			root, err = NewTree(card.Drop, w.Rows).Root()
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

const (
	issueChunk  = 512
	issueAtOnce = 256
)

// issue gives the winners their coupons. The key of each coupon is the draw and the user, so a
// repetition gives nobody a second one. A refusal that may pass is tried again in the next sweep.
func (o *Operator) issue(ctx context.Context, templateID int64) error {
	if err := o.takeBack(ctx, templateID); err != nil {
		return err
	}
	for after := 0; ctx.Err() == nil; {
		list, err := o.Store.Winners(ctx, templateID, after, issueChunk)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return o.finish(ctx, templateID)
		}
		after = list[len(list)-1].Rank
		issued, err := o.give(ctx, templateID, list)
		if err = errors.Join(err, o.Store.SaveIssued(context.WithoutCancel(ctx), templateID, issued)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// finish ends the draw after the entries that did not win have joined the waitlist, if there is one, and were told.
func (o *Operator) finish(ctx context.Context, templateID int64) error {
	if err := o.wait(ctx, templateID); err != nil {
		return err
	}
	for {
		more, err := o.Store.TellLost(ctx, templateID, issueChunk)
		if err != nil {
			return err
		}
		if !more {
			return o.Store.Finish(ctx, templateID)
		}
	}
}

// takeBack returns the coupons of struck winners to the stock, for the winners who moved up.
func (o *Operator) takeBack(ctx context.Context, templateID int64) error {
	list, err := o.Store.Forfeited(ctx, templateID)
	for _, f := range list {
		failed := o.Revoke(ctx, f.CouponID, f.Reason)
		if failed == nil {
			failed = o.Store.Returned(ctx, templateID, f)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (o *Operator) give(ctx context.Context, templateID int64, list []Winner) ([]Issued, error) {
	answers, errs := make([]Issued, len(list)), make([]error, len(list))
	slots := make(chan struct{}, issueAtOnce)
	var all sync.WaitGroup
	for i, w := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			answers[i], errs[i] = o.one(ctx, templateID, w.UserID)
		})
	}
	all.Wait()
	var done []Issued
	for _, a := range answers {
		if a.CouponID != 0 || a.Reason != "" {
			done = append(done, a)
		}
	}
	return done, errors.Join(errs...)
}

func (o *Operator) one(ctx context.Context, templateID int64, to user.ID) (Issued, error) {
	c, err := o.Gate.Claim(ctx, claim.Request{ID: claim.NewID(o.Random(), templateID), TemplateID: templateID, UserID: to, Origin: claim.ByDraw,
		Key: CouponKey(templateID, to)})
	switch {
	case err == nil:
		return Issued{UserID: to, CouponID: c.CouponID}, nil
	case errors.Is(err, claim.ErrEnded), errors.Is(err, user.ErrErased), errors.Is(err, claim.ErrLimit):
		return Issued{UserID: to, Reason: fault.CodeOf(err)}, nil
	}
	return Issued{}, err // paused, sold out until the stock is raised, or a failure
}

// CouponKey is the key of the coupon that a user won.
func CouponKey(templateID int64, to user.ID) string {
	return strconv.FormatInt(templateID, 10) + ":" + to.String()
}
