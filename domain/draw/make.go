package draw

import "time"

// NewSeal sorts rows and returns their seal under card, made at sealedAt. It returns [ErrList] if
// two entries have the same ticket.
func NewSeal(card Card, rows []Row, sealedAt time.Time, struck []Count) (Seal, error) {
	if err := SortRows(rows); err != nil {
		return Seal{}, err
	}
	root, err := NewTree(card.Drop, rows).Root()
	if err != nil {
		return Seal{}, err
	}
	return SealOf(card, root, len(rows), sealedAt, struck), nil
}

// SealOf returns the seal under card of a list with a root, made at sealedAt.
func SealOf(card Card, root Hash, entries int, sealedAt time.Time, struck []Count) Seal {
	sealedAt = sealedAt.Add(time.Second - 1).Truncate(time.Second)
	s := Seal{Drop: card.Drop, Card: HashOf(card.Text()), Entries: entries, Root: root, SealedAt: sealedAt, Struck: struck}
	if card.Source.Rounds() {
		s.Round = RoundOf(card.ClosesAt, sealedAt)
	}
	return s
}

// NewResult draws the sealed rows with the random value that evidence proves, without the tickets
// that were struck. It returns the order of all rows and the winners too, and [ErrSource] if evidence
// proves no random value.
func NewResult(card Card, seal Seal, rows []Row, evidence string, struck []Strike, judge Judge) (Result, []uint32, Outcome, error) {
	randomness, err := card.Source.Randomness(judge, seal.Round, evidence)
	if err != nil {
		return Result{}, nil, Outcome{}, err
	}
	without := map[Ticket]bool{}
	for _, s := range struck {
		without[s.Ticket] = true
	}
	seed := Seed(seal.Root, randomness[:])
	order := Order(rows, seed)
	o := Pick(rows, order, seed, card.Stock, func(t Ticket) bool { return without[t] })
	return Result{Drop: card.Drop, Seal: HashOf(seal.Text()), Evidence: evidence, Randomness: randomness, Seed: seed, Won: len(o.Winners),
		Cutoff: o.Cutoff, Struck: struck}, order, o, nil
}
