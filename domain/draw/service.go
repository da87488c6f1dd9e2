package draw

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func hashOf(b []byte) [32]byte { return sha256.Sum256(b) }

// An Attempt is a wish to enter the draw of a template.
type Attempt struct {
	TemplateID int64
	Entry
	Door     int // see [Record]
	Channels delivery.ChannelSet
}

// An Answer is what became of an [Attempt].
type Answer struct {
	// Record is the user's entry, of this attempt or of an earlier one; nil = there is none.
	Record  *Record
	Created bool
	// Window is set without a Record. It is nil if the draw has no card yet.
	Window *Window
}

// A Window says when entries are taken, by the database's clock.
type Window struct {
	State                  State
	OpensAt, ClosesAt, Now time.Time
}

// Store keeps entries and draws.
type Store interface {
	// Enter stores an entry if entries are open and the user has none. A repetition changes nothing.
	Enter(ctx context.Context, a Attempt) (Answer, error)
	// Entry returns [ErrNotEntered] if there is none.
	Entry(ctx context.Context, templateID int64, by user.ID) (Record, error)
	// Leave removes the user's entry. It returns [ErrNotEntered], or [ErrClosed].
	Leave(ctx context.Context, templateID int64, by user.ID) error
	// Accept notes that the user accepts the coupon that the entry won. A repetition changes nothing.
	// It returns [ErrNotEntered], [ErrNotWon] or [ErrLapsed].
	Accept(ctx context.Context, templateID int64, by user.ID) (Record, error)
	// SaveIssued stores what became of winners.
	SaveIssued(ctx context.Context, templateID int64, list []Issued) error
	// Draw returns [ErrNoDraw] before the first card.
	Draw(ctx context.Context, templateID int64) (Draw, error)
	// Chunk returns a chunk of the sealed list; it is empty if there is none.
	Chunk(ctx context.Context, templateID int64, n int) ([]byte, error)
	// ChunkWith returns the only chunk of the sealed list that can have a ticket, and its number; it is empty
	// if there is none.
	ChunkWith(ctx context.Context, templateID int64, t Ticket) (chunk []byte, n int, err error)
	// ChunkRoots returns the roots of all chunks of the sealed list.
	ChunkRoots(ctx context.Context, templateID int64) ([]Hash, error)
}

// Service holds the use cases of entrants, and of everybody who checks a draw.
type Service struct {
	Store     Store
	Templates claim.Lookup
	Keys      Keys
	// Members know the doors of drops.
	Members claim.Members
	// Admit judges the pass of an entry of a protected drop; see [claim.Prefilter].
	Admit func(t *template.Template, by user.ID, pass string) error
	// Channels are those over which users can be told of the result.
	Channels delivery.Available
	// Gate issues the coupons of winners who accept.
	Gate   claim.Gate
	Random func() uint64
	// Erased reports whether the user was erased.
	Erased func(user.ID) bool
}

// Mine is a user's part in a draw.
type Mine struct {
	Record
	// Receipt is the signed receipt.
	Receipt string
	Draw    Draw
	// Result is set once the draw was made, and Score with it.
	Result *Result
	Score  Hash
}

// A Wish is a request to enter.
type Wish struct {
	TemplateID int64
	UserID     user.ID
	// Pass is the text of the user's pass; drops without protection need none.
	Pass string
	// Channels say over which the user is told of the result; 0 = the app's inbox.
	Channels delivery.ChannelSet
}

// Enter enters the user once. created is false for a repetition, which gets the same receipt. Enter
// returns [template.ErrNotFound], [template.ErrNotOpen], [claim.ErrNotStarted], [ErrClosed],
// [user.ErrErased], [delivery.ErrChannelUnavailable], [claim.ErrNotEligible] for a user who comes through no
// door of the drop, or the refusal of the pass.
func (s *Service) Enter(ctx context.Context, w Wish) (m Mine, created bool, err error) {
	by, templateID := w.UserID, w.TemplateID
	a, err := s.attempt(ctx, w)
	if errors.Is(err, claim.ErrNotEligible) { // an entry stays when its user leaves the group of the door
		if r, unknown := s.Store.Entry(ctx, templateID, by); unknown == nil {
			m.Record, m.Draw.TemplateID = r, templateID
			m.Receipt, err = s.receipt(ctx, &m)
			return m, false, err
		}
	}
	if err != nil {
		return m, false, err
	}
	answer, err := s.Store.Enter(ctx, a)
	for err == nil && answer.Record == nil {
		if err := answer.Window.refusal(); err != nil {
			return m, false, err
		}
		// Another request of the user was committed while this one was being stored. If the user has left since, this
		// request is stored anew.
		r, missing := s.Store.Entry(ctx, templateID, by)
		switch {
		case missing == nil:
			answer.Record = &r
		case errors.Is(missing, ErrNotEntered):
			answer, err = s.Store.Enter(ctx, a)
		default:
			err = missing
		}
	}
	if err != nil {
		return m, false, err
	}
	m.Record = *answer.Record
	m.Draw.TemplateID = templateID
	m.Receipt, err = s.receipt(ctx, &m)
	return m, answer.Created, err
}

// attempt judges w by the drop, which may be a second old, and returns the entry to be stored with its weight.
func (s *Service) attempt(ctx context.Context, w Wish) (a Attempt, err error) {
	t, err := s.Templates.Template(ctx, w.TemplateID)
	switch {
	case err != nil:
		return a, err
	case t.Stored == template.Draft:
		return a, template.ErrNotFound
	case !t.OpeningMode.Drawn():
		return a, template.ErrNotOpen.Because("no draw decides about these coupons; claim them with POST /claims")
	case s.Erased != nil && s.Erased(w.UserID):
		return a, user.ErrErased
	case t.Stored == template.Closed || t.Stored == template.Cancelled:
		return a, ErrClosed
	case t.Stored == template.Paused:
		return a, claim.ErrPaused
	}
	a = Attempt{TemplateID: w.TemplateID, Entry: Entry{UserID: int64(w.UserID), Weight: 1}, Channels: w.Channels}
	if a.Channels == 0 {
		a.Channels = delivery.ChannelSetOf(delivery.App)
	} else if a.Channels&^s.Channels.Set() != 0 {
		return a, delivery.ErrChannelUnavailable
	}
	if s.Admit != nil {
		if err := s.Admit(&t, w.UserID, w.Pass); err != nil {
			return a, err
		}
	}
	if len(t.Doors) > 0 {
		if a.Door, err = s.Members.Door(ctx, &t, w.UserID); err != nil {
			return a, err
		}
		a.Weight = t.Doors[a.Door-1].Chances()
	}
	rand.Read(a.Ticket[:])
	rand.Read(a.Salt[:])
	return a, nil
}

// refusal returns why no entry was taken; nil = the window is open.
func (w *Window) refusal() error {
	switch {
	case w == nil:
		return claim.ErrNotStarted.Because("the card of this draw is being published; try again in a second")
	case w.State != Open || !w.Now.Before(w.ClosesAt):
		return ErrClosed
	case w.Now.Before(w.OpensAt):
		return claim.ErrNotStarted.Because("entries are taken from %s", w.OpensAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// receipt signs the receipt of m with the key of its draw. With one key no draw has to be read.
func (s *Service) receipt(ctx context.Context, m *Mine) (string, error) {
	if len(s.Keys) == 0 {
		return "", ErrNoKey
	}
	k := s.Keys[0]
	if m.Draw.Key == "" && len(s.Keys) > 1 {
		d, err := s.Store.Draw(ctx, m.Draw.TemplateID)
		if err != nil {
			return "", err
		}
		m.Draw = d
	}
	if m.Draw.Key != "" {
		var err error
		if k, err = s.Keys.Of(m.Draw.Key); err != nil {
			return "", err
		}
	}
	return k.Sign(Receipt{Drop: m.Draw.TemplateID, Entry: m.Entry, EnteredAt: m.EnteredAt}.Text())
}

// Mine returns the user's part in the draw, with its score once the draw was made. It returns
// [ErrNoDraw] or [ErrNotEntered].
func (s *Service) Mine(ctx context.Context, by user.ID, templateID int64) (m Mine, err error) {
	if m.Draw, err = s.Store.Draw(ctx, templateID); err != nil {
		return m, err
	}
	if m.Record, err = s.Store.Entry(ctx, templateID, by); err != nil {
		return m, err
	}
	if m.Receipt, err = s.receipt(ctx, &m); err != nil || m.Draw.Result == "" {
		return m, err
	}
	r, err := m.Draw.Outcome()
	m.Result, m.Score = &r, Score(r.Seed, m.Ticket, m.Weight)
	return m, err
}

// Accept gives the winner the coupon that was offered. A repetition gets the same answer. The acceptance is
// stored first, so a worker gives the coupon if this process dies before it did. Accept returns [ErrNoDraw], [ErrNotEntered],
// [ErrNotWon], [ErrLapsed], or why there is no coupon.
func (s *Service) Accept(ctx context.Context, by user.ID, templateID int64) (m Mine, err error) {
	r, err := s.Store.Accept(ctx, templateID, by)
	if errors.Is(err, ErrNotEntered) {
		if _, missing := s.Store.Draw(ctx, templateID); missing != nil {
			return m, missing
		}
	}
	if err != nil {
		return m, err
	}
	if r.CouponID == 0 && r.Reason == "" {
		issued, err := giveOne(ctx, s.Gate, s.Random(), templateID, by)
		if err == nil {
			err = s.Store.SaveIssued(context.WithoutCancel(ctx), templateID, []Issued{issued})
		}
		if err != nil {
			return m, err
		}
	}
	return s.Mine(ctx, by, templateID)
}

// Leave removes the user's entry before the close. It returns [ErrNotEntered], [ErrClosed] or
// [ErrNoDraw].
func (s *Service) Leave(ctx context.Context, by user.ID, templateID int64) error {
	err := s.Store.Leave(ctx, templateID, by)
	if errors.Is(err, ErrNotEntered) {
		if _, missing := s.Store.Draw(ctx, templateID); missing != nil {
			return missing
		}
	}
	return err
}

// Draw returns the draw of a template, or [ErrNoDraw].
func (s *Service) Draw(ctx context.Context, templateID int64) (Draw, error) {
	return s.Store.Draw(ctx, templateID)
}

// List returns a chunk of the sealed list. It is empty before the seal and after the last chunk.
func (s *Service) List(ctx context.Context, templateID int64, chunk int) ([]byte, error) {
	return s.Store.Chunk(ctx, templateID, chunk)
}

// Find returns a ticket's row in the sealed list.
func (s *Service) Find(ctx context.Context, templateID int64, t Ticket) (row Row, found bool, err error) {
	rows, at, _, err := s.find(ctx, templateID, t)
	if err != nil || rows == nil {
		return row, false, err
	}
	return rows[at], true, nil
}

// find returns the chunk with the ticket, and its place there; rows is nil if the list does not have it.
func (s *Service) find(ctx context.Context, templateID int64, t Ticket) (rows []Row, at, n int, err error) {
	chunk, n, err := s.Store.ChunkWith(ctx, templateID, t)
	if err != nil || len(chunk) == 0 {
		return nil, 0, 0, err
	}
	if rows, err = Rows(chunk); err != nil {
		return nil, 0, 0, err
	}
	at, found := Find(rows, t)
	if !found {
		return nil, 0, 0, nil
	}
	return rows, at, n, nil
}

// Inclusion proves that a ticket is in the sealed list. It returns [ErrNotListed] if it is not there.
func (s *Service) Inclusion(ctx context.Context, templateID int64, t Ticket) (Inclusion, error) {
	rows, at, n, err := s.find(ctx, templateID, t)
	if err == nil && rows == nil {
		err = ErrNotListed
	}
	if err != nil {
		return Inclusion{}, err
	}
	roots, err := s.Store.ChunkRoots(ctx, templateID)
	if err != nil {
		return Inclusion{}, err
	}
	return Include(templateID, rows, n, at, roots)
}
