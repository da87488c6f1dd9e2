package pass

import (
	"context"
	"crypto/rand"
	"time"

	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Templates finds drops; its answers may be a second old.
type Templates interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
}

// A Verifier checks tokens of a service such as Turnstile or hCaptcha.
type Verifier interface {
	// Verify reports whether the service accepts the token. It returns [ErrUnreachable] without an
	// answer.
	Verify(ctx context.Context, token string) (bool, error)
}

// Phones checks codes that were sent to phones.
type Phones interface {
	// Confirm verifies the user's number by the code that was sent to it.
	Confirm(ctx context.Context, by user.ID, code string) (phone string, err error)
}

// Evidence is what a user sends to earn a pass. Fields that are empty were not sent.
type Evidence struct {
	Puzzle    string // the solution of a puzzle
	Token     string // of the service
	PhoneCode string
	// Attested says that the user's token carries an attestation of the shop.
	Attested bool
}

// An Answer is a pass or a puzzle.
type Answer struct {
	// Text is the pass, empty if the evidence was not enough.
	Text      string
	ExpiresAt time.Time
	// Ways are the ways in which this user can earn a pass now.
	Ways []Way
	// Challenge is set with [Puzzle] among Ways.
	Challenge *Challenge
}

// Passes issues passes.
type Passes struct {
	Keys      Keys
	Templates Templates
	// Verifier is nil without a service.
	Verifier Verifier
	Phones   Phones
	// Texts reports whether codes can be sent to phones.
	Texts func() bool
	Now   func() time.Time
}

// Get returns a pass for the evidence, or without evidence a puzzle and the ways that the drop
// accepts. A drop without protection needs none: the answer is empty. Get returns
// [template.ErrNotFound], [template.ErrNotOpen] after the end, [ErrOff], [ErrRefused],
// [ErrUnreachable], or the error of the code to the phone.
func (s *Passes) Get(ctx context.Context, by user.ID, templateID int64, e Evidence) (a Answer, err error) {
	t, err := s.Templates.Template(ctx, templateID)
	if err != nil {
		return a, err
	}
	now := s.Now()
	switch t.State(now) {
	case template.Draft:
		return a, template.ErrNotFound
	case template.Closed, template.Cancelled:
		return a, template.ErrNotOpen.Because("this drop is over; no pass is needed any more")
	}
	if !t.Protected() {
		return a, nil
	}
	if !s.Keys.Enabled() {
		return a, ErrOff
	}
	p, err := s.earn(ctx, by, &t, e)
	if err != nil {
		return a, err
	}
	if p.Way != 0 {
		now = s.Now() // a service may have taken long
		p.IssuedAt, p.ExpiresAt = now.Truncate(time.Millisecond), expiry(&t, now)
		return Answer{Text: s.Keys.Issue(p, by, templateID), ExpiresAt: p.ExpiresAt}, nil
	}
	return s.offer(&t, by, now), nil
}

// earn judges the evidence. The pass has no way if there is no evidence.
func (s *Passes) earn(ctx context.Context, by user.ID, t *template.Template, e Evidence) (p Pass, err error) {
	switch {
	case e.Attested:
		p.Way = Attested
	case e.Token != "":
		if s.Verifier == nil {
			return p, ErrRefused.Because("this server checks no tokens; earn the pass in another way")
		}
		ok, err := s.Verifier.Verify(ctx, e.Token)
		if err != nil {
			return p, err
		}
		if !ok {
			return p, ErrRefused.Because("the service does not accept the token; get a new one")
		}
		p.Way = Service
	case e.PhoneCode != "":
		if _, err := s.Phones.Confirm(ctx, by, e.PhoneCode); err != nil {
			return p, err
		}
		p.Way = Phone
	case e.Puzzle != "":
		now := s.Now()
		handedOut, err := s.Keys.Solved(e.Puzzle, by, t.ID, now)
		if err != nil {
			return p, err
		}
		p.Way, p.Opened = Puzzle, now.Sub(handedOut)
		if !p.Way.Enough(t.Protection) {
			return p, ErrRefused.Because("this drop needs more than a puzzle; send a token, an attestation or a code from the phone")
		}
	}
	return p, nil
}

func (s *Passes) offer(t *template.Template, by user.ID, now time.Time) (a Answer) {
	if Puzzle.Enough(t.Protection) {
		var random [32]byte
		_, _ = rand.Read(random[:]) // never fails
		c := s.Keys.Challenge(by, t.ID, now, random)
		a.Challenge, a.Ways = &c, append(a.Ways, Puzzle)
	}
	if s.Verifier != nil {
		a.Ways = append(a.Ways, Service)
	}
	a.Ways = append(a.Ways, Attested)
	if s.Texts() {
		a.Ways = append(a.Ways, Phone)
	}
	return a
}
