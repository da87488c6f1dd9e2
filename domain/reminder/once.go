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
	// Hash is the hash of everything that identifies the same request.
	Hash []byte
	// Reference is the id of this request, which refusals quote.
	Reference string
	// Terms is set by [Service.ReserveOnce]. The store keeps it with its decision, for [Recall].
	Terms []byte
}

// An Answer is the answer to a request to reserve. A repeated request gets the same answer.
type Answer struct {
	View    View
	Created bool
	// Refused is the reason why nothing was reserved; nil = everything was reserved.
	Refused error
	// Reference is the id of the request that was decided.
	Reference string
}

// ReserveOnce is [Service.Reserve] with an idempotency key. The key, the reservation and the data
// from which the answer is made are committed together. A refusal by the store is kept in the
// same way.
//
// decided is false if the key is known, or if the request is refused before it reaches the store;
// nothing was stored then, and the caller has to answer in another way. If err is set, nothing
// was stored either, except that with [fault.ErrOutcomeUnknown] everything may have been stored.
func (s *Service) ReserveOnce(ctx context.Context, r Request, once Once) (a Answer, decided bool, err error) {
	known, err := s.terms(ctx, r)
	if err != nil {
		return Answer{}, false, nil // told by the way that keeps refusals as text
	}
	known.reference = once.Reference
	once.Terms = known.encode()
	d, err := s.store(ctx, Change{TemplateID: r.TemplateID, UserID: r.UserID, Bits: BitmapOf(r.Reminders...), Once: &once, Door: known.door})
	if err != nil || d.Repeated {
		return Answer{}, false, err
	}
	return known.answer(r, d), true, nil
}

// Recall makes the first answer to r again from the data that the store kept for it: the encoded
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

// terms are the data of an answer that come neither from the request nor from the decision: the
// template as it was known, and the instant of the request.
type terms struct {
	name      string
	opensAt   time.Time
	at        time.Time
	reference string
	door      int // of the user; not kept, since opensAt is that of the door
}

// answer depends only on its receiver and parameters, so that a repetition gets the answer of the
// first request.
func (t terms) answer(r Request, d Decision) Answer {
	a := Answer{Reference: t.reference}
	if !d.Applied {
		a.Refused = d.reserveError(BitmapOf(r.Reminders...))
		return a
	}
	seen := template.Template{ID: r.TemplateID, Spec: template.Spec{ShopNumber: r.ShopNumber, Name: t.name, OpensAt: t.opensAt}}
	a.View = compose(t.at, seen, 0, Reservation{TemplateID: r.TemplateID, UserID: r.UserID, Slots: d.After}, nil)
	a.Created = d.Created
	return a
}

// termsFormat is the first byte of encoded terms. Each format must be readable until the
// idempotency keys of the last program that wrote it have expired.
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
	return terms{name: string(b[:size]), opensAt: time.UnixMicro(opens).UTC(), at: time.UnixMicro(at).UTC(), reference: string(b[size:])}, nil
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
