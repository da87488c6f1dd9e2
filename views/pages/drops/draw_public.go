package drops

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/message"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// PublicDraw is the page of a draw, for everybody, in the brand of the shop.
type PublicDraw struct {
	Drop  template.Template
	Name  string
	Brand message.Shop
	Draw  draw.Draw
	Card  draw.Card
	// Seal and Result are nil until they exist.
	Seal   *draw.Seal
	Result *draw.Result
	// Ticket is the ticket that the visitor typed, and Own what became of it; nil = it is not in the
	// list, or there is no result.
	Ticket string
	Own    *OwnTicket
	// Base is the address of the draw in the API, and Server the address of this server in front of it.
	Base, Server string
}

// OwnTicket is a visitor's ticket after the draw.
type OwnTicket struct {
	Score draw.Hash
	Won   bool
	// Struck is why the ticket was struck; "" = it was not.
	Struck string
}

func (p PublicDraw) colours() string { return Public{Brand: p.Brand}.colours() }

// said is the state of the draw in one sentence.
func (p PublicDraw) said(ctx context.Context) string {
	l := ui.From(ctx).Locale
	switch p.Draw.State {
	case draw.Open:
		if ui.From(ctx).Now.Before(p.Card.OpensAt) {
			return l.T("draw_page.said.before", p.instant(ctx, p.Card.OpensAt), p.instant(ctx, p.Card.ClosesAt), l.Number(int64(p.Card.Stock)))
		}
		return l.T("draw_page.said.open", p.instant(ctx, p.Card.ClosesAt), l.Number(int64(p.Card.Stock)), l.Number(p.Draw.Entries()))
	case draw.Closed:
		return l.T("draw_page.said.closed", l.Number(p.Draw.Entries()))
	case draw.Sealed:
		return l.T("draw_page.said.sealed", l.Number(int64(p.Seal.Entries)), p.source(ctx))
	case draw.Cancelled:
		return l.T("draw_page.said.cancelled")
	}
	if p.Seal.Entries == 0 {
		return l.T("draw_page.said.none")
	}
	return ui.N(ctx, "draw_page.said.drawn", int64(p.Seal.Entries), l.Number(int64(p.Result.Won)))
}

// instant writes t with the zone of the shop.
func (p PublicDraw) instant(ctx context.Context, t time.Time) string {
	l, zone := ui.From(ctx).Locale, p.Drop.Zone()
	return l.DateTime(t, zone) + " " + l.Zone(t, zone)
}

// source names the source of randomness with its round.
func (p PublicDraw) source(ctx context.Context) string {
	round := p.Card.Round
	if p.Seal != nil {
		round = p.Seal.Round
	}
	if p.Card.Source.Rounds() {
		return ui.T(ctx, "draw_page.source."+string(p.Card.Source.Kind), fmt.Sprint(round))
	}
	return ui.T(ctx, "draw_page.source."+string(p.Card.Source.Kind), p.Card.Source.Detail)
}

// longNote is the length of a signed result that the page does not show, in bytes: it names every ticket that was struck or
// lapsed. The API has it.
const longNote = 20_000

// place is where a score lies on a scale of 1000.
func place(h draw.Hash) string { return parts.Unit(1000 * share(h)) }

// placeText writes a score as a percentage of the highest score.
func placeText(ctx context.Context, h draw.Hash) string {
	const steps = 1_000_000
	return ui.From(ctx).Locale.Percent(int64(share(h)*steps), steps)
}

// share is a score as a part of the highest score, from 0 to 1.
func share(h draw.Hash) float64 {
	return float64(binary.BigEndian.Uint64(h[:8])) / math.MaxUint64
}

// facts are the values by which the draw is checked.
func (p PublicDraw) facts() (list []fact) {
	add := func(key, value string) {
		if value != "" {
			list = append(list, fact{key, value})
		}
	}
	add("key", p.Draw.Key)
	if p.Seal != nil {
		add("root", p.Seal.Root.String())
	}
	if r := p.Result; r != nil {
		add("evidence", r.Evidence)
		add("randomness", r.Randomness.String())
		add("seed", r.Seed.String())
		add("cutoff", r.Cutoff.String())
	}
	return list
}

type fact struct{ key, value string }

// findings are what the button can find, in their order.
func findings() []string {
	return []string{"signed", "chain", "list", "random", "seed", "winners", "won", "lost", "missing", "sound", "wrong", "unable"}
}

// tone is the mark of a finding.
func tone(finding string) string {
	switch finding {
	case "wrong", "missing":
		return "is-bad"
	case "unable", "lost":
		return "is-plain"
	}
	return "is-good"
}

// sealed is the hash of the seal, which the page keeps in the browser; "" without a seal.
func (p PublicDraw) sealed() string {
	if p.Seal == nil {
		return ""
	}
	return draw.HashOf(p.Seal.Text()).String()
}

// struckLater counts the tickets that were struck after the seal by their reasons, in the order of their first ticket.
func (p PublicDraw) struckLater() (list []draw.Count) {
	if p.Result == nil {
		return nil
	}
	for _, s := range p.Result.Struck {
		i := slices.IndexFunc(list, func(c draw.Count) bool { return c.Reason == s.Reason })
		if i < 0 {
			i, list = len(list), append(list, draw.Count{Reason: s.Reason})
		}
		list[i].N++
	}
	return list
}

// command is the command that checks the draw.
func (p PublicDraw) command() string {
	return "dropbell verify-draw " + strings.TrimRight(p.Server, "/") + p.Base
}
