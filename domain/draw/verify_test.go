package draw_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"dropbell/domain/draw"
)

// believer accepts every signature that begins with the round's number.
type believer struct{}

func (believer) Verify(_ string, round int64, signature []byte) error {
	if len(signature) < 8 || int64(binary.BigEndian.Uint64(signature)) != round {
		return errors.New("it is the signature of another round")
	}
	return nil
}

// signer is a key that follows from a number.
func signer(t testing.TB, n byte) (note.Signer, string) {
	t.Helper()
	seed := sha256.Sum256([]byte{n})
	public := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	verifier, err := note.NewEd25519VerifierKey("shop.example", public)
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Split(verifier, "+")[1]
	key, err := note.NewSigner("PRIVATE+KEY+shop.example+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed[:]...)))
	if err != nil {
		t.Fatal(err)
	}
	return key, verifier
}

// operator makes a draw, and can make it dishonestly.
type operator struct {
	t     testing.TB
	key   note.Signer
	card  draw.Card
	seal  draw.Seal
	rows  []draw.Row
	shown draw.Published
}

func (o *operator) sign(text string) string {
	signed, err := draw.Sign(o.key, text)
	if err != nil {
		o.t.Fatal(err)
	}
	return signed
}

// operate returns an operator after the close of a draw with 1,000 entries, of which 100 win.
func operate(t testing.TB) *operator {
	key, public := signer(t, 1)
	closes := draw.RoundTime(1000).Add(-draw.RoundAfter)
	o := &operator{t: t, key: key, rows: rows(t, 1000, 1, 2)}
	o.card = draw.Card{Drop: 42, Version: 1, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Stock: 100, MaxWeight: 2,
		Source: draw.Source{Kind: draw.Drand, Detail: draw.QuicknetChain}, Round: 1000}
	o.shown = draw.Published{Protocol: draw.Protocol, Key: public, Cards: []string{o.sign(o.card.Text())}}
	return o
}

func (o *operator) makeSeal(after time.Duration) {
	seal, err := draw.NewSeal(o.card, o.rows, o.card.ClosesAt.Add(after), []draw.Count{{Reason: "erased", N: 2}})
	if err != nil {
		o.t.Fatal(err)
	}
	o.seal, o.shown.Seal = seal, o.sign(seal.Text())
}

func (o *operator) makeResult(struck ...draw.Strike) draw.Outcome {
	evidence := strings.Repeat("0", 16-len(hex(o.seal.Round))) + hex(o.seal.Round)
	result, _, outcome, err := draw.NewResult(o.card, o.seal, o.rows, evidence, struck, believer{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.shown.Result = o.sign(result.Text())
	return outcome
}

func hex(n int64) string {
	return strings.TrimLeft(draw.Hash(append(make([]byte, 24), binary.BigEndian.AppendUint64(nil, uint64(n))...)).String(), "0")
}

func (o *operator) receipt(i, weight int) string {
	return o.sign(draw.Receipt{Drop: 42, Entry: entry(i, weight), EnteredAt: o.card.OpensAt.Add(time.Minute)}.Text())
}

// finds requires a report with exactly one fault, which says what.
func finds(t *testing.T, r draw.Report, what string) {
	t.Helper()
	var faults []string
	for _, f := range r {
		if !f.OK {
			faults = append(faults, f.Text)
		}
	}
	if len(faults) != 1 || !strings.Contains(faults[0], what) {
		t.Errorf("the faults are %q, want one with %q", faults, what)
	}
}

func TestAnHonestDraw(t *testing.T) {
	o := operate(t)
	kept := draw.Kept{Key: o.shown.Key, Receipt: o.receipt(3, 2)}
	for step, make := range []func(){func() {}, func() { o.makeSeal(time.Second); kept.Seal = o.shown.Seal }, func() { o.makeResult() }} {
		if r := draw.Verify(o.shown, o.rows, kept, believer{}); !r.Sound() {
			t.Errorf("step %d: %v", step, r)
		}
		make()
	}
	r := draw.Verify(o.shown, o.rows, kept, believer{})
	if last := r[len(r)-1].Text; !r.Sound() || !strings.Contains(last, "it won") && !strings.Contains(last, "it did not win") {
		t.Errorf("the report is %v", r)
	}
}

func TestReceiptsOfWinnersAndStruckTickets(t *testing.T) {
	o := operate(t)
	o.makeSeal(time.Second)
	first := o.rows[o.makeResult().Winners[0]].Ticket()
	after := o.makeResult(draw.Strike{Ticket: first, Reason: "two accounts of one person"})
	next := o.rows[after.Winners[0]].Ticket()
	for i := range 1000 {
		e := entry(i, 1+i%2)
		for ticket, want := range map[draw.Ticket]string{first: "struck after the seal: two accounts of one person", next: "it won"} {
			if e.Ticket == ticket {
				r := draw.Verify(o.shown, o.rows, draw.Kept{Receipt: o.receipt(i, 1+i%2)}, believer{})
				if !r.Sound() || !strings.Contains(r[len(r)-1].Text, want) {
					t.Errorf("want %q in %v", want, r)
				}
			}
		}
	}
}

// Each way in which an operator can cheat is found.
func TestDishonestOperators(t *testing.T) {
	late := entry(5000, 1)
	for name, c := range map[string]struct {
		cheat func(o *operator) draw.Kept
		found string
	}{
		"an entry after the seal": {func(o *operator) draw.Kept {
			o.rows = append(o.rows, late.Row())
			_ = draw.SortRows(o.rows)
			o.makeResult()
			return draw.Kept{}
		}, "tickets were added"},
		"an entry in place of another after the seal": {func(o *operator) draw.Kept {
			o.rows[10] = late.Row()
			_ = draw.SortRows(o.rows)
			o.makeResult()
			return draw.Kept{}
		}, "the list was changed after the seal"},
		"a swapped root": {func(o *operator) draw.Kept {
			o.seal.Root[0]++
			o.shown.Seal = o.sign(o.seal.Text())
			o.makeResult()
			return draw.Kept{}
		}, "the list was changed after the seal"},
		"a dropped ticket": {func(o *operator) draw.Kept {
			kept := draw.Kept{Receipt: o.receipt(3, 2)}
			at, _ := draw.Find(o.rows, entry(3, 2).Ticket)
			o.rows = append(o.rows[:at:at], o.rows[at+1:]...)
			o.makeSeal(time.Second)
			o.makeResult()
			return kept
		}, "is not in the list"},
		"a changed weight": {func(o *operator) draw.Kept {
			at, _ := draw.Find(o.rows, entry(3, 2).Ticket)
			o.rows[at] = entry(3, 1).Row()
			o.makeSeal(time.Second)
			o.makeResult()
			return draw.Kept{Receipt: o.receipt(3, 2)}
		}, "has the weight 2 there and 1 in the list"},
		"a ticket given to another user": {func(o *operator) draw.Kept {
			e := entry(3, 2)
			at, _ := draw.Find(o.rows, e.Ticket)
			e.UserID++
			o.rows[at] = e.Row()
			o.makeSeal(time.Second)
			o.makeResult()
			return draw.Kept{Receipt: o.receipt(3, 2)}
		}, "or another user"},
		"a second seal": {func(o *operator) draw.Kept {
			kept := draw.Kept{Seal: o.shown.Seal}
			o.rows = append(o.rows, late.Row())
			o.makeSeal(time.Second)
			o.makeResult()
			return kept
		}, "two different seals"},
		"a seal after its round": {func(o *operator) draw.Kept {
			o.makeSeal(2 * time.Minute)
			o.seal.Round = o.card.Round
			o.shown.Seal = o.sign(o.seal.Text())
			o.makeResult()
			return draw.Kept{}
		}, "the rule of the card gives round"},
		"a seal before the close": {func(o *operator) draw.Kept { o.makeSeal(-time.Minute); return draw.Kept{} }, "before the entries closed"},
		"an old round": {func(o *operator) draw.Kept {
			round := o.seal.Round
			o.seal.Round = 999
			o.makeResult()
			o.seal.Round = round
			r, _ := draw.OpenResult(o.verifier(), o.shown.Result)
			r.Seal = draw.HashOf(o.seal.Text())
			o.shown.Result = o.sign(r.Text())
			return draw.Kept{}
		}, "is not proved"},
		"another cutoff": {func(o *operator) draw.Kept { o.change(func(r *draw.Result) { r.Cutoff[0]++ }); return draw.Kept{} }, "By the scores 100 tickets win"},
		"another seed":   {func(o *operator) draw.Kept { o.change(func(r *draw.Result) { r.Seed[0]++ }); return draw.Kept{} }, "The seed is"},
		"a struck ticket of nobody": {func(o *operator) draw.Kept {
			o.change(func(r *draw.Result) { r.Struck = []draw.Strike{{Ticket: late.Ticket, Reason: "erased"}} })
			return draw.Kept{}
		}, "is not in the list"},
		"a version of the card kept back": {func(o *operator) draw.Kept {
			o.card.Version = 3
			o.shown.Cards = append(o.shown.Cards, o.sign(o.card.Text()))
			return draw.Kept{}
		}, "a version is missing"},
		"a card after the seal": {func(o *operator) draw.Kept {
			o.card.Version, o.card.Stock = 2, 50
			o.shown.Cards = append(o.shown.Cards, o.sign(o.card.Text()))
			return draw.Kept{}
		}, "another card"},
		"a weight that no door has": {func(o *operator) draw.Kept {
			o.card.Doors = []draw.CardDoor{{Weight: 2, Name: "Members"}}
			o.shown.Cards = []string{o.sign(o.card.Text())}
			o.makeSeal(time.Second)
			o.makeResult()
			return draw.Kept{}
		}, "which no door of the card gives"},
		"doors that changed": {func(o *operator) draw.Kept {
			o.card.Version, o.card.Doors = 2, []draw.CardDoor{{Weight: 2, Name: "Members"}, {Weight: 1, Name: "Everybody"}}
			o.shown.Cards = append(o.shown.Cards, o.sign(o.card.Text()))
			return draw.Kept{}
		}, "which the first version fixes"},
		"the path of another ticket": {func(o *operator) draw.Kept {
			in := o.include(entry(4, 1).Ticket)
			in.Ticket = entry(3, 2).Ticket.String()
			o.shown.Inclusion = &in
			return draw.Kept{Receipt: o.receipt(3, 2), Light: true}
		}, "does not lead to the sealed root"},
		"no path for a ticket": {func(o *operator) draw.Kept {
			return draw.Kept{Receipt: o.receipt(3, 2), Light: true}
		}, "There is no path"},
		"a path with another weight than the receipt": {func(o *operator) draw.Kept {
			at, _ := draw.Find(o.rows, entry(3, 2).Ticket)
			o.rows[at] = entry(3, 1).Row()
			o.makeSeal(time.Second)
			o.makeResult()
			in := o.include(entry(3, 2).Ticket)
			o.shown.Inclusion = &in
			return draw.Kept{Receipt: o.receipt(3, 2), Light: true}
		}, "has the weight 2 there and 1 in the list"},
		"another key": {func(o *operator) draw.Kept {
			_, other := signer(t, 2)
			return draw.Kept{Key: other}
		}, "is not the given key"},
		"a text that another key signed": {func(o *operator) draw.Kept {
			o.key, _ = signer(t, 2)
			o.makeResult()
			return draw.Kept{}
		}, "The result: the signed text is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t)
			o.makeSeal(time.Second)
			o.makeResult()
			kept := c.cheat(o)
			finds(t, draw.Verify(o.shown, o.rows, kept, believer{}), c.found)
		})
	}
}

func (o *operator) verifier() note.Verifier {
	v, err := note.NewVerifier(o.shown.Key)
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// change publishes the result with a change.
func (o *operator) change(with func(*draw.Result)) {
	r, err := draw.OpenResult(o.verifier(), o.shown.Result)
	if err != nil {
		o.t.Fatal(err)
	}
	with(&r)
	o.shown.Result = o.sign(r.Text())
}

// include returns the path of a ticket.
func (o *operator) include(ticket draw.Ticket) draw.Inclusion {
	o.t.Helper()
	roots, err := draw.NewTree(o.card.Drop, o.rows).ChunkRoots()
	if err != nil {
		o.t.Fatal(err)
	}
	at, found := draw.Find(o.rows, ticket)
	if !found {
		o.t.Fatalf("the list does not have %v", ticket)
	}
	in, err := draw.Include(o.card.Drop, o.rows, 0, at, roots)
	if err != nil {
		o.t.Fatal(err)
	}
	return in
}

// With the path alone, and without the list, an entrant learns that the ticket was sealed and whether it won.
func TestLight(t *testing.T) {
	o := operate(t)
	o.makeSeal(time.Second)
	o.makeResult()
	in := o.include(entry(3, 2).Ticket)
	o.shown.Inclusion = &in
	r := draw.Verify(o.shown, nil, draw.Kept{Receipt: o.receipt(3, 2), Light: true}, believer{})
	if said := fmt.Sprint(r); !r.Sound() || !strings.Contains(said, "its path leads to the sealed root") || !strings.Contains(said, "Its score") {
		t.Errorf("%v", said)
	}
}

// Paths of lists with several chunks lead through the roots of the chunks to the root of the whole list.
func TestPathsThroughChunks(t *testing.T) {
	for _, n := range []int{1, draw.ChunkRows, draw.ChunkRows + 1, 2*draw.ChunkRows + 7, 3 * draw.ChunkRows} {
		list := rows(t, n, 1, 2)
		tree := draw.NewTree(7, list)
		root, err := tree.Root()
		if err != nil {
			t.Fatal(err)
		}
		roots, err := tree.ChunkRoots()
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, n / 2, n - 1} {
			chunk := at / draw.ChunkRows
			in, err := draw.Include(7, list[chunk*draw.ChunkRows:min(n, (chunk+1)*draw.ChunkRows)], chunk, at%draw.ChunkRows, roots)
			if err != nil {
				t.Fatal(err)
			}
			path := make([]draw.Hash, len(in.Path))
			for i, h := range in.Path {
				if path[i], err = draw.ParseHash(h); err != nil {
					t.Fatal(err)
				}
			}
			if row, err := in.Row(); err != nil || row != list[at] || in.Position != at || !draw.Included(path, n, at, root, list[at].Leaf(7)) {
				t.Errorf("the path of %d among %d does not lead to the root (%v)", at, n, err)
			}
		}
	}
}

func TestRounds(t *testing.T) {
	if at := draw.RoundTime(1000); at.Unix() != 1692806364 || draw.FirstRound(at) != 1000 || draw.FirstRound(at.Add(1)) != 1001 || draw.FirstRound(time.Unix(0, 0)) != 1 {
		t.Errorf("round 1000 appears at %v, and at that instant is round %d", at, draw.FirstRound(at))
	}
	closes := draw.RoundTime(1000).Add(-time.Minute)
	for after, want := range map[time.Duration]int64{0: 1000, 50 * time.Second: 1000, 51 * time.Second: 1017 + 20, time.Hour: 1200 + 1000} {
		if got := draw.RoundOf(closes, closes.Add(after)); after != 51*time.Second && got != want || after == 51*time.Second && got != draw.FirstRound(closes.Add(after+time.Minute)) {
			t.Errorf("a seal %v after the close has round %d, want %d", after, got, want)
		}
	}
}

func TestSourcesWithoutRounds(t *testing.T) {
	secret := sha256.Sum256([]byte("secret"))
	hash := sha256.Sum256(secret[:])
	for text, c := range map[string]struct{ evidence, want string }{
		"commit " + draw.Hash(hash).String():   {draw.Hash(secret).String(), draw.Hash(secret).String()},
		"commit " + draw.Hash{1}.String():      {draw.Hash(secret).String(), ""},
		"public The lottery of 1 January 2030": {"3 14 15", draw.HashOf("3 14 15").String()},
		"public The lottery of 2 January 2030": {"03 14", ""},
	} {
		s, err := draw.ParseSource(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Randomness(believer{}, 0, c.evidence)
		if c.want == "" && err == nil || c.want != "" && got.String() != c.want {
			t.Errorf("%s with %s is %v %v", text, c.evidence, got, err)
		}
	}
	for _, text := range []string{"drand abc", "dice", "public ", "local 12", "commit xyz"} {
		if _, err := draw.ParseSource(text); err == nil {
			t.Errorf("%q is a source", text)
		}
	}
}

// Whatever bytes are published, the verifier answers.
func FuzzVerify(f *testing.F) {
	o := operate(f)
	o.makeSeal(time.Second)
	o.makeResult()
	f.Add(o.shown.Cards[0], o.shown.Seal, o.shown.Result)
	f.Fuzz(func(_ *testing.T, card, seal, result string) {
		p := o.shown
		p.Cards, p.Seal, p.Result = []string{o.sign(card + "\n")}, seal, result
		draw.Verify(p, o.rows, draw.Kept{Seal: seal, Receipt: result}, believer{})
	})
}
