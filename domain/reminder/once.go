package reminder

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"dropbell/domain/template"
)

// A Once is the idempotency key of a request to reserve, which belongs to Actor.
type Once struct {
	Actor, Key string
	// Hash is of everything that makes it the same request.
	Hash []byte
	// Reference is the id of this request, which refusals quote.
	Reference string
	// Terms are filled in by [Service.ReserveOnce]. The store keeps them with its
	// decision, for [Recall].
	Terms []byte
}

// An Answer is what is said to a request to reserve, the first time and at every
// repetition.
type Answer struct {
	View    View
	Created bool
	// Refused is why nothing was reserved, nil if all was.
	Refused error
	// Reference is the id of the request that was decided.
	Reference string
}

// ReserveOnce is [Service.Reserve] with an idempotency key. Key, reservation and
// all that the answer follows from are committed together; a refusal by the
// store is kept likewise. decided is false if the request is none for this way:
// the key is known, or the request is refused before it reaches the store. Then
// nothing was stored. If err is set, nothing was stored either, or, with
// [fault.ErrOutcomeUnknown], all may be.
func (s *Service) ReserveOnce(ctx context.Context, r Request, once Once) (a Answer, decided bool, err error) {
	known, err := s.terms(ctx, r)
	if err != nil {
		return Answer{}, false, nil // told by the way that keeps refusals as text
	}
	known.reference = once.Reference
	once.Terms = known.encode()
	d, err := s.store(ctx, Change{TemplateID: r.TemplateID, UserID: r.UserID, Bits: BitmapOf(r.Reminders...), Once: &once})
	if err != nil || d.Repeated {
		return Answer{}, false, err
	}
	return known.answer(r, d), true, nil
}

// Recall makes the first answer to r again from what the store kept for it: the
// terms, and the numbers of its decision.
func Recall(r Request, encoded []byte, decision []int64) (Answer, error) {
	known, err := decodeTerms(encoded)
	if err != nil {
		return Answer{}, err
	}
	d, err := decisionOf(decision)
	if err != nil {
		return Answer{}, err
	}
	return known.answer(r, d), nil
}

// terms are what an answer follows from beside the request and the decision: the
// template as it was known, and the instant of the request.
type terms struct {
	name      string
	opensAt   time.Time
	at        time.Time
	reference string
}

// answer depends on nothing but its parameters, so that a repetition is answered
// as the first request was.
func (t terms) answer(r Request, d Decision) Answer {
	a := Answer{Reference: t.reference}
	if !d.Applied {
		a.Refused = d.reserveError(BitmapOf(r.Reminders...))
		return a
	}
	seen := template.Template{ID: r.TemplateID, Spec: template.Spec{ShopNumber: r.ShopNumber, Name: t.name, OpensAt: t.opensAt}}
	a.View = compose(t.at, seen, Reservation{TemplateID: r.TemplateID, UserID: r.UserID, Slots: d.After}, nil)
	a.Created = d.Created
	return a
}

// termsFormat is the first byte of encoded terms. Terms of a format are read for
// as long as idempotency keys live after the last program that wrote it.
const termsFormat = 1

var errTerms = errors.New("reminder: the stored terms of an answer cannot be read")

func (t terms) encode() []byte {
	b := make([]byte, 0, 32+len(t.name)+len(t.reference))
	b = append(b, termsFormat)
	b = binary.AppendVarint(b, t.opensAt.UnixMicro())
	b = binary.AppendVarint(b, t.at.UnixMicro())
	b = binary.AppendUvarint(b, uint64(len(t.name)))
	b = append(b, t.name...)
	return append(b, t.reference...)
}

func decodeTerms(b []byte) (terms, error) {
	if len(b) == 0 || b[0] != termsFormat {
		return terms{}, errTerms
	}
	b = b[1:]
	opens, n := binary.Varint(b)
	if n <= 0 {
		return terms{}, errTerms
	}
	b = b[n:]
	at, n := binary.Varint(b)
	if n <= 0 {
		return terms{}, errTerms
	}
	b = b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return terms{}, errTerms
	}
	b = b[n:]
	return terms{string(b[:size]), time.UnixMicro(opens).UTC(), time.UnixMicro(at).UTC(), string(b[size:])}, nil
}

// decisionOf reads a decision as stores keep it for [Recall]: flags (1 applied,
// 2 created, 4 opened), the row after, the row before, and the open reminders.
func decisionOf(n []int64) (Decision, error) {
	if len(n) != 4 {
		return Decision{}, errors.New("reminder: a stored decision cannot be read")
	}
	return Decision{Applied: n[0]&1 != 0, Created: n[0]&2 != 0, Opened: n[0]&4 != 0,
		After: StoredBitmap(n[1]), Before: StoredBitmap(n[2]), Open: StoredBitmap(n[3])}, nil
}
