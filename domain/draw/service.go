package draw

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func hashOf(b []byte) [32]byte { return sha256.Sum256(b) }

// An Attempt is a wish to enter the draw of a template.
type Attempt struct {
	TemplateID int64
	Entry
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
	// Draw returns [ErrNoDraw] before the first card.
	Draw(ctx context.Context, templateID int64) (Draw, error)
	// Chunk returns a chunk of the sealed list; it is empty if there is none.
	Chunk(ctx context.Context, templateID int64, n int) ([]byte, error)
	// ChunkWith returns the only chunk of the sealed list that can have a ticket; it is empty if there is
	// none.
	ChunkWith(ctx context.Context, templateID int64, t Ticket) ([]byte, error)
}

// Service holds the use cases of entrants, and of everybody who checks a draw.
type Service struct {
	Store     Store
	Templates claim.Lookup
	Keys      Keys
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

// Enter enters the user once. created is false for a repetition, which gets the same receipt. Enter
// returns [template.ErrNotFound], [template.ErrNotOpen], [claim.ErrNotStarted], [ErrClosed] or
// [user.ErrErased].
func (s *Service) Enter(ctx context.Context, by user.ID, templateID int64) (m Mine, created bool, err error) {
	t, err := s.Templates.Template(ctx, templateID)
	switch {
	case err != nil:
		return m, false, err
	case t.Stored == template.Draft:
		return m, false, template.ErrNotFound
	case !t.OpeningMode.Drawn():
		return m, false, template.ErrNotOpen.Because("no draw decides about these coupons; claim them with POST /claims")
	case s.Erased != nil && s.Erased(by):
		return m, false, user.ErrErased
	case t.Stored == template.Closed || t.Stored == template.Cancelled:
		return m, false, ErrClosed
	case t.Stored == template.Paused:
		return m, false, claim.ErrPaused
	}
	a := Attempt{TemplateID: templateID, Entry: Entry{UserID: int64(by), Weight: 1}}
	rand.Read(a.Ticket[:])
	rand.Read(a.Salt[:])
	answer, err := s.Store.Enter(ctx, a)
	if err != nil {
		return m, false, err
	}
	if answer.Record == nil {
		if err := answer.Window.refusal(); err != nil {
			return m, false, err
		}
		// Another request of the user was committed while this one was being stored.
		r, err := s.Store.Entry(ctx, templateID, by)
		if err != nil {
			return m, false, err
		}
		answer.Record = &r
	}
	m.Record = *answer.Record
	m.Draw.TemplateID = templateID
	m.Receipt, err = s.receipt(ctx, &m)
	return m, answer.Created, err
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
	chunk, err := s.Store.ChunkWith(ctx, templateID, t)
	if err != nil || len(chunk) == 0 {
		return row, false, err
	}
	rows, err := Rows(chunk)
	if err != nil {
		return row, false, err
	}
	at, found := Find(rows, t)
	if found {
		row = rows[at]
	}
	return row, found, nil
}
