package drawcheck

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"

	"dropbell/adapters/beacon"
	"dropbell/domain/draw"
)

// writeExample writes a draw of n entries that closed two minutes ago, with a new key and a new
// local beacon, and the receipt of its first entry to the file receipt, if there is one.
func writeExample(n int, receipt string, out io.Writer) error {
	secret, public, err := note.GenerateKey(rand.Reader, "example")
	if err != nil {
		return err
	}
	local, err := beacon.NewLocal([]byte(rand.Text() + rand.Text()))
	if err != nil {
		return err
	}
	closes := time.Now().Add(-2 * time.Minute).Truncate(time.Second)
	entries := make([]draw.Entry, n)
	for i := range entries {
		entries[i] = draw.Entry{UserID: int64(i + 1), Weight: 1}
		if i%10 == 0 {
			entries[i].Weight = 3
		}
		rand.Read(entries[i].Ticket[:])
		rand.Read(entries[i].Salt[:])
	}
	card := draw.Card{Drop: 1, Version: 1, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Stock: max(n/10, 1), MaxWeight: 3,
		Source: draw.Source{Kind: draw.Local, Detail: local.Public()}, Doors: []draw.CardDoor{{Weight: 3, Name: "Members"}, {Weight: 1, Name: "Everybody"}}, Round: draw.RoundOf(closes, closes)}
	p, receipts, err := operate(secret, card, entries, func(round int64) string { return hex.EncodeToString(local.Sign(round)) })
	if err != nil {
		return err
	}
	p.Key = public
	if receipt != "" {
		if err := os.WriteFile(receipt, []byte(receipts), 0o600); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(p)
}

// operate returns what an operator with the secret key publishes about a draw that is sealed when
// its entries close, and the receipt of its first entry. evidence returns the evidence of a round.
func operate(secret string, card draw.Card, entries []draw.Entry, evidence func(round int64) string) (draw.Published, string, error) {
	p := draw.Published{Protocol: draw.Protocol}
	key, err := note.NewSigner(secret)
	if err != nil {
		return p, "", err
	}
	rows := make([]draw.Row, len(entries))
	for i, e := range entries {
		rows[i] = e.Row()
	}
	seal, err := draw.NewSeal(card, rows, card.ClosesAt, nil)
	if err != nil {
		return p, "", err
	}
	result, _, _, err := draw.NewResult(card, seal, rows, evidence(seal.Round), nil, beacon.Judge{})
	if err != nil {
		return p, "", err
	}
	receipt := draw.Receipt{Drop: card.Drop, Entry: entries[0], EnteredAt: card.OpensAt}
	var signed [4]string
	for i, text := range []string{card.Text(), seal.Text(), result.Text(), receipt.Text()} {
		if signed[i], err = draw.Sign(key, text); err != nil {
			return p, "", err
		}
	}
	p.Cards, p.Seal, p.Result = signed[:1], signed[1], signed[2]
	for i := range draw.Chunks(len(rows)) {
		p.List = append(p.List, draw.Chunk(rows, i))
	}
	p.Inclusion, err = inclusion(card.Drop, rows, entries[0].Ticket)
	return p, signed[3], err
}

// inclusion returns the path of a ticket in the sorted rows.
func inclusion(drop int64, rows []draw.Row, ticket draw.Ticket) (*draw.Inclusion, error) {
	roots, err := draw.NewTree(drop, rows).ChunkRoots()
	if err != nil {
		return nil, err
	}
	at, _ := draw.Find(rows, ticket)
	n := at / draw.ChunkRows
	in, err := draw.Include(drop, rows[n*draw.ChunkRows:min((n+1)*draw.ChunkRows, len(rows))], n, at%draw.ChunkRows, roots)
	return &in, err
}
