package draw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Published is what an operator publishes about a draw, in JSON.
type Published struct {
	Protocol string `json:"protocol"`
	// Key is the public key that signs, as golang.org/x/mod/sumdb/note writes it.
	Key string `json:"key"`
	// Cards are all versions of the signed card, in their order.
	Cards []string `json:"cards"`
	// Seal and Result are signed texts, and empty before they exist.
	Seal   string `json:"seal,omitempty"`
	Result string `json:"result,omitempty"`
	// List are the chunks of the list in base64. A file has them; a server gives them one by one.
	List [][]byte `json:"list,omitempty"`
	// Inclusion proves that one ticket is in the list.
	Inclusion *Inclusion `json:"inclusion,omitempty"`
}

// Kept is what somebody kept who checks a draw. Empty fields are not compared.
type Kept struct {
	// Key is the operator's public key, from a source other than the published draw.
	Key string
	// Seal is the signed seal as it was shown before the random value existed.
	Seal string
	// Receipt is the signed receipt of an entry.
	Receipt string
	// Light leaves out the checks that need the list. The ticket of the receipt is looked for in the
	// published [Inclusion] alone.
	Light bool
}

// Finding is the outcome of one check, as a sentence.
type Finding struct {
	OK   bool
	Text string
}

// Report has the findings of all checks in their order.
type Report []Finding

// Sound reports whether every check found the draw as it must be.
func (r Report) Sound() bool { return !slices.ContainsFunc(r, func(f Finding) bool { return !f.OK }) }

func (r *Report) good(format string, args ...any) {
	*r = append(*r, Finding{true, fmt.Sprintf(format, args...)})
}

func (r *Report) bad(format string, args ...any) {
	*r = append(*r, Finding{false, fmt.Sprintf(format, args...)})
}

// NotProved says what no check of a draw can prove.
const NotProved = "This does not prove that the entrants are people, that each has one entry, or that the operator made no entries."

// verification is a running [Verify].
type verification struct {
	Report
	published Published
	key       note.Verifier
	judge     Judge
	rows      []Row
	card      Card
	seal      Seal
	result    Result
	light     bool
	own       *Row // of the inclusion
	decided   bool // the result was checked, as far as the caller wanted
}

// Verify recomputes a draw from what was published, from its list of tickets, and from what the
// caller kept. It stops at the first fault after which the following checks would mean nothing.
func Verify(p Published, rows []Row, kept Kept, judge Judge) Report {
	v := &verification{published: p, rows: rows, judge: judge, light: kept.Light}
	steps := []func() bool{
		func() bool { return v.signer(kept.Key) }, v.cards,
		func() bool { return v.sealed(kept.Seal) }, v.included, v.list,
		func() bool { return v.drawn() && v.winners() },
	}
	for _, step := range steps {
		if !step() {
			break
		}
	}
	if kept.Receipt != "" && v.card.Drop != 0 {
		v.receipt(kept.Receipt)
	}
	return v.Report
}

func (v *verification) signer(kept string) bool {
	if v.published.Protocol != Protocol {
		v.bad("The draw follows %.40q, and this program checks %s.", v.published.Protocol, Protocol)
		return false
	}
	if kept != "" && strings.TrimSpace(kept) != v.published.Key {
		v.bad("The draw is signed with the key %.200s, which is not the given key.", v.published.Key)
		return false
	}
	key, err := note.NewVerifier(v.published.Key)
	if err != nil {
		v.bad("The published key cannot be read: %v.", err)
		return false
	}
	v.key = key
	if kept == "" {
		v.good("The operator signs with the key %s. Give the key that you know, to be sure that it is the operator's.", v.published.Key)
	} else {
		v.good("The operator signs with the given key.")
	}
	return true
}

func (v *verification) cards() bool {
	if len(v.published.Cards) == 0 {
		v.bad("There is no card.")
		return false
	}
	for i, signed := range v.published.Cards {
		c, err := OpenCard(v.key, signed)
		if err != nil {
			v.bad("Version %d of the card: %v.", i+1, err)
			return false
		}
		if c.Version != i+1 || i > 0 && c.Drop != v.card.Drop {
			v.bad("Version %d of the card is version %d of the card of drop %d: a version is missing.", i+1, c.Version, c.Drop)
			return false
		}
		if i > 0 && (c.Source != v.card.Source || c.AcceptHours != v.card.AcceptHours || !slices.Equal(c.Doors, v.card.Doors)) {
			v.bad("Version %d of the card changes the source of randomness, the doors or the hours to accept, which the first version fixes.", i+1)
			return false
		}
		v.card = c
	}
	c := v.card
	if c.MaxWeight < 1 || c.MaxWeight > MaxWeight || c.Stock < 0 || !c.OpensAt.Before(c.ClosesAt) {
		v.bad("The card is not possible: it opens at %s, closes at %s and has a stock of %d and weights up to %d.", stamp(c.OpensAt), stamp(c.ClosesAt), c.Stock, c.MaxWeight)
		return false
	}
	if !c.consistent() {
		v.bad("The doors of the card do not fit its weights up to %d: %v.", c.MaxWeight, c.Doors)
		return false
	}
	if c.Source.Rounds() && c.Round != RoundOf(c.ClosesAt, c.ClosesAt) {
		v.bad("The card names round %d, and the first round a minute after the close is %d.", c.Round, RoundOf(c.ClosesAt, c.ClosesAt))
		return false
	}
	v.good("The card of drop %d is signed, in %d versions. Entries from %s to %s, %d to win.", c.Drop, c.Version, stamp(c.OpensAt), stamp(c.ClosesAt), c.Stock)
	for _, d := range c.Doors {
		v.good("Users of the door %q enter with the weight %d.", d.Name, d.Weight)
	}
	switch c.Source.Kind {
	case Local:
		v.good("The source of randomness is a local beacon, for development and tests: the operator could know its values before.")
	case Commit:
		v.good("The source of randomness is a secret of the operator. This is weaker than a public source: whoever knows the secret can add entries that win.")
	}
	return true
}

// consistent reports whether the greatest weight of the card is that of a door, and no door has a lesser weight than 1.
func (c Card) consistent() bool {
	greatest := 0
	for _, d := range c.Doors {
		if d.Weight < 1 {
			return false
		}
		greatest = max(greatest, d.Weight)
	}
	return len(c.Doors) == 0 || greatest == c.MaxWeight
}

func (v *verification) sealed(kept string) bool {
	if v.published.Seal == "" {
		v.good("There is no seal yet.")
		if v.published.Result != "" {
			v.bad("There is a result without a seal.")
		}
		return false
	}
	s, err := OpenSeal(v.key, v.published.Seal)
	if err != nil {
		v.bad("The seal: %v.", err)
		return false
	}
	v.seal = s
	if text, err := open(v.key, v.published.Cards[len(v.published.Cards)-1]); err != nil || s.Card != HashOf(text) || s.Drop != v.card.Drop {
		v.bad("The seal belongs to another card than the last one that was published.")
		return false
	}
	if s.SealedAt.Before(v.card.ClosesAt) {
		v.bad("The seal was made at %s, before the entries closed.", stamp(s.SealedAt))
		return false
	}
	if v.card.Source.Rounds() && s.Round != RoundOf(v.card.ClosesAt, s.SealedAt) {
		v.bad("The seal of %s names round %d, and the rule of the card gives round %d.", stamp(s.SealedAt), s.Round, RoundOf(v.card.ClosesAt, s.SealedAt))
		return false
	}
	if v.card.Source.Rounds() {
		v.good("The seal says that it was made at %s, before round %d, which appeared at %s.", stamp(s.SealedAt), s.Round, stamp(RoundTime(s.Round)))
	} else {
		v.good("The seal says that it was made at %s.", stamp(s.SealedAt))
	}
	if kept == "" {
		v.good("When the seal was first shown is proved by those who kept it. Give a kept seal to compare.")
		return true
	}
	old, err := OpenSeal(v.key, kept)
	switch {
	case err != nil:
		v.bad("The kept seal: %v.", err)
	case old.Drop != s.Drop:
		v.bad("The kept seal belongs to drop %d.", old.Drop)
	case old.Text() != s.Text():
		v.bad("The operator signed two different seals: the kept one of %s with root %v, and the published one of %s with root %v.", stamp(old.SealedAt), old.Root, stamp(s.SealedAt), s.Root)
	default:
		v.good("The kept seal is the published seal.")
		return true
	}
	return false
}

func (v *verification) list() bool {
	if v.light {
		v.good("The list was not read: whether the other tickets were sealed, and whether the cutoff is right, is not checked.")
		return true
	}
	if err := Valid(v.rows, v.card.MaxWeight); err != nil {
		v.bad("The list: %v.", err)
		return false
	}
	for i := range v.rows {
		if w := v.rows[i].Weight(); !v.card.Weights(w) {
			v.bad("The ticket %v has the weight %d, which no door of the card gives.", v.rows[i].Ticket(), w)
			return false
		}
	}
	if len(v.rows) != v.seal.Entries {
		v.bad("The list has %d tickets, and the seal names %d: tickets were added or left out after the seal.", len(v.rows), v.seal.Entries)
		return false
	}
	root, err := NewTree(v.card.Drop, v.rows).Root()
	if err != nil || root != v.seal.Root {
		v.bad("The root of the list is %v, and the sealed root is %v: the list was changed after the seal.", root, v.seal.Root)
		return false
	}
	v.good("The list has the %d tickets that were sealed, and their root is the sealed root %v.", len(v.rows), root)
	return true
}

func (v *verification) drawn() bool {
	if v.published.Result == "" {
		v.good("There is no result yet.")
		return false
	}
	r, err := OpenResult(v.key, v.published.Result)
	if err != nil {
		v.bad("The result: %v.", err)
		return false
	}
	v.result = r
	if r.Drop != v.card.Drop || r.Seal != HashOf(v.seal.Text()) {
		v.bad("The result belongs to another seal than the published one.")
		return false
	}
	randomness, err := v.card.Source.Randomness(v.judge, v.seal.Round, r.Evidence)
	if err != nil || randomness != r.Randomness {
		v.bad("The random value of %s is not proved: %v.", v.card.Source.Kind, errors.Join(err, ErrSource))
		return false
	}
	switch v.card.Source.Kind {
	case Drand:
		v.good("The random value is that of round %d of drand: its signature verifies with drand's public key.", v.seal.Round)
	case Local:
		v.good("The random value is that of round %d of the local beacon: its signature verifies with the key on the card.", v.seal.Round)
	case Commit:
		v.good("The secret is the one whose hash is on the card.")
	case Public:
		v.good("The random value is made of the figures %s. Compare them with %s.", r.Evidence, v.card.Source.Detail)
	}
	if seed := Seed(v.seal.Root, randomness[:]); seed != r.Seed {
		v.bad("The seed is %v, and the result names %v.", seed, r.Seed)
		return false
	}
	v.good("The seed follows from the root and the random value.")
	return true
}

func (v *verification) winners() bool {
	v.decided = true
	if v.light {
		return true
	}
	struck := map[Ticket]bool{}
	for _, s := range v.result.Struck {
		if _, found := Find(v.rows, s.Ticket); !found || struck[s.Ticket] {
			v.bad("The struck ticket %v is not in the list, or is struck twice.", s.Ticket)
			return false
		}
		struck[s.Ticket] = true
	}
	o := Pick(v.rows, Order(v.rows, v.result.Seed), v.result.Seed, v.card.Stock, func(t Ticket) bool { return struck[t] })
	if len(o.Winners) != v.result.Won || o.Cutoff != v.result.Cutoff {
		v.bad("By the scores %d tickets win, with the cutoff %v. The result names %d tickets and the cutoff %v.", len(o.Winners), o.Cutoff, v.result.Won, v.result.Cutoff)
		return false
	}
	v.good("%d tickets have a score up to the cutoff %v and win; %d were struck after the seal.", v.result.Won, o.Cutoff, len(struck))
	return true
}
