package draw

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Card is what is announced before entries open. A card that changes gets a new version; every
// version stays public.
type Card struct {
	Drop    int64
	Version int
	// OpensAt and ClosesAt are the first instant of entries and the first instant without entries, in whole seconds.
	OpensAt, ClosesAt time.Time
	// Stock is the number of tickets that win.
	Stock int
	// MaxWeight is the greatest weight of an entry.
	MaxWeight int
	Source    Source
	// Doors are the groups of users who can enter, with the weights of their entries, in the order in
	// which they are tried. None = all users, with the weight 1.
	Doors []CardDoor
	// AcceptHours is for how many hours winners may accept their coupon before the next tickets move up;
	// 0 = winners get it at once.
	AcceptHours int
	// Round is the round of the source if the seal is made in time. It is 0 for sources without rounds.
	Round int64
}

// CardDoor is a door of a drop as its card names it.
type CardDoor struct {
	Weight int
	Name   string
}

// Weights reports whether entries can have the weight w.
func (c Card) Weights(w int) bool {
	if len(c.Doors) == 0 {
		return w >= 1 && w <= c.MaxWeight
	}
	return slices.ContainsFunc(c.Doors, func(d CardDoor) bool { return d.Weight == w })
}

// Seal is what is published after the close, before the random value exists.
type Seal struct {
	Drop int64
	// Card is the SHA-256 of the text of the card that entries were made under.
	Card    Hash
	Entries int
	Root    Hash
	// SealedAt is the instant of the seal by the operator's database, in whole seconds, rounded up.
	SealedAt time.Time
	// Round is the round that decides; see [RoundOf]. It is 0 for sources without rounds.
	Round int64
	// Struck counts the entries that were struck before the seal and are not in the list, by reason.
	Struck []Count
}

// Count is a number of struck entries with one reason.
type Count struct {
	Reason string
	N      int
}

// Result is what is published after the draw.
type Result struct {
	Drop int64
	// Seal is the SHA-256 of the text of the seal.
	Seal       Hash
	Evidence   string
	Randomness Hash
	Seed       Hash
	Won        int
	Cutoff     Hash
	// Struck are the tickets that were struck after the seal, in the order in which they were struck.
	Struck []Strike
}

// Strike is a ticket that was struck after the seal.
type Strike struct {
	Ticket Ticket
	Reason string
}

// Receipt is what an entrant gets. It is private, as it has the salt.
type Receipt struct {
	Drop      int64
	Entry     Entry
	EnteredAt time.Time
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func head(kind string, drop int64) string {
	return fmt.Sprintf("%s %s\ndrop %d\n", Protocol, kind, drop)
}

// Text is the card's text to be signed.
func (c Card) Text() string {
	text := head("card", c.Drop) + fmt.Sprintf("version %d\nopens %s\ncloses %s\nstock %d\nmax-weight %d\nsource %s\nround %d\n",
		c.Version, stamp(c.OpensAt), stamp(c.ClosesAt), c.Stock, c.MaxWeight, c.Source, c.Round)
	if c.AcceptHours > 0 {
		text += fmt.Sprintf("accept-hours %d\n", c.AcceptHours)
	}
	for _, d := range c.Doors {
		text += fmt.Sprintf("door %d %s\n", d.Weight, d.Name)
	}
	return text
}

// Text is the seal's text to be signed.
func (s Seal) Text() string {
	text := head("seal", s.Drop) + fmt.Sprintf("card %v\nentries %d\nroot %v\nsealed %s\nround %d\n", s.Card, s.Entries, s.Root, stamp(s.SealedAt), s.Round)
	for _, c := range s.Struck {
		text += fmt.Sprintf("struck %d %s\n", c.N, c.Reason)
	}
	return text
}

// Text is the result's text to be signed.
func (r Result) Text() string {
	text := head("result", r.Drop) + fmt.Sprintf("seal %v\nevidence %s\nrandomness %v\nseed %v\nwon %d\ncutoff %v\n",
		r.Seal, r.Evidence, r.Randomness, r.Seed, r.Won, r.Cutoff)
	for _, s := range r.Struck {
		text += fmt.Sprintf("struck %v %s\n", s.Ticket, s.Reason)
	}
	return text
}

// Text is the receipt's text to be signed.
func (r Receipt) Text() string {
	return head("receipt", r.Drop) + fmt.Sprintf("user %d\nticket %v\nsalt %v\nweight %d\nentered %s\n",
		r.Entry.UserID, r.Entry.Ticket, r.Entry.Salt, r.Entry.Weight, stamp(r.EnteredAt))
}

// HashOf is the SHA-256 of a signed text without its signature.
func HashOf(text string) Hash { return sha256.Sum256([]byte(text)) }

// ErrNote is wrapped by errors about a text that is not signed by the key, or not written as the protocol has it.
var ErrNote = errors.New("the signed text is not valid")

// Sign signs the text of a card, a seal, a result or a receipt.
func Sign(key note.Signer, text string) (string, error) {
	signed, err := note.Sign(&note.Note{Text: text}, key)
	return string(signed), err
}

// open returns the text of a signed note.
func open(key note.Verifier, signed string) (string, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(key))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNote, err)
	}
	return n.Text, nil
}

// lines reads a text line by line and keeps the first error.
type lines struct {
	left []string
	err  error
}

// take returns the value of the next line, which must have the key.
func (l *lines) take(key string) string {
	if l.err == nil && (len(l.left) == 0 || !strings.HasPrefix(l.left[0], key+" ")) {
		l.err = fmt.Errorf("%w: the line %q is missing", ErrNote, key)
	}
	if l.err != nil {
		return ""
	}
	value := l.left[0][len(key)+1:]
	l.left = l.left[1:]
	return value
}

// next reports whether the next line has the key.
func (l *lines) next(key string) bool {
	return l.err == nil && len(l.left) > 0 && strings.HasPrefix(l.left[0], key+" ")
}

// value reads the next line with parse.
func value[T any](l *lines, key string, parse func(string) (T, error)) T {
	text := l.take(key)
	var v T
	if l.err == nil {
		var err error
		if v, err = parse(text); err != nil {
			l.err = fmt.Errorf("%w: %s: %w", ErrNote, key, err)
		}
	}
	return v
}

func whole(text string) (int64, error)       { return strconv.ParseInt(text, 10, 64) }
func instant(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }
func plain(text string) (string, error)      { return text, nil }
func salt(text string) (s Salt, err error)   { return s, decodeHex(s[:], text) }

// reading opens a signed text of a kind, reads it, and requires that it is written exactly as Text writes it.
func reading[T interface{ Text() string }](key note.Verifier, signed, kind string, read func(*lines) T) (v T, err error) {
	text, err := open(key, signed)
	if err != nil {
		return v, err
	}
	l := &lines{left: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	if got := l.take(Protocol); l.err == nil && got != kind {
		l.err = fmt.Errorf("%w: it is a %q and not a %s", ErrNote, got, kind)
	}
	v = read(l)
	if l.err == nil && v.Text() != text {
		l.err = fmt.Errorf("%w: the %s has lines that the protocol does not have", ErrNote, kind)
	}
	return v, l.err
}

// OpenCard reads a signed card. It returns [ErrNote] unless key signed it.
func OpenCard(key note.Verifier, signed string) (Card, error) {
	return reading(key, signed, "card", func(l *lines) Card {
		c := Card{Drop: value(l, "drop", whole), Version: int(value(l, "version", whole)), OpensAt: value(l, "opens", instant),
			ClosesAt: value(l, "closes", instant), Stock: int(value(l, "stock", whole)), MaxWeight: int(value(l, "max-weight", whole)),
			Source: value(l, "source", ParseSource), Round: value(l, "round", whole)}
		if l.next("accept-hours") {
			c.AcceptHours = int(value(l, "accept-hours", whole))
		}
		for l.err == nil && len(l.left) > 0 {
			weight, name, _ := strings.Cut(l.take("door"), " ")
			w, _ := strconv.Atoi(weight)
			c.Doors = append(c.Doors, CardDoor{w, name})
		}
		return c
	})
}

// OpenSeal reads a signed seal. It returns [ErrNote] unless key signed it.
func OpenSeal(key note.Verifier, signed string) (Seal, error) {
	return reading(key, signed, "seal", func(l *lines) Seal {
		s := Seal{Drop: value(l, "drop", whole), Card: value(l, "card", ParseHash), Entries: int(value(l, "entries", whole)),
			Root: value(l, "root", ParseHash), SealedAt: value(l, "sealed", instant), Round: value(l, "round", whole)}
		for l.err == nil && len(l.left) > 0 {
			n, reason, _ := strings.Cut(l.take("struck"), " ")
			count, _ := strconv.Atoi(n)
			s.Struck = append(s.Struck, Count{reason, count})
		}
		return s
	})
}

// OpenResult reads a signed result. It returns [ErrNote] unless key signed it.
func OpenResult(key note.Verifier, signed string) (Result, error) {
	return reading(key, signed, "result", func(l *lines) Result {
		r := Result{Drop: value(l, "drop", whole), Seal: value(l, "seal", ParseHash), Evidence: value(l, "evidence", plain),
			Randomness: value(l, "randomness", ParseHash), Seed: value(l, "seed", ParseHash), Won: int(value(l, "won", whole)),
			Cutoff: value(l, "cutoff", ParseHash)}
		for l.err == nil && len(l.left) > 0 {
			ticket, reason, _ := strings.Cut(l.take("struck"), " ")
			t, err := ParseTicket(ticket)
			if err != nil {
				l.err = fmt.Errorf("%w: struck: %w", ErrNote, err)
			}
			r.Struck = append(r.Struck, Strike{t, reason})
		}
		return r
	})
}

// OpenReceipt reads a signed receipt. It returns [ErrNote] unless key signed it.
func OpenReceipt(key note.Verifier, signed string) (Receipt, error) {
	return reading(key, signed, "receipt", func(l *lines) Receipt {
		r := Receipt{Drop: value(l, "drop", whole)}
		r.Entry = Entry{UserID: value(l, "user", whole), Ticket: value(l, "ticket", ParseTicket), Salt: value(l, "salt", salt), Weight: int(value(l, "weight", whole))}
		r.EnteredAt = value(l, "entered", instant)
		return r
	})
}
