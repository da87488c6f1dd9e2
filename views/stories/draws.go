package stories

import (
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
)

// drawn is a draw of a drop whose entries close after the given time.
func drawn(state draw.State, closesIn time.Duration, kind draw.SourceKind) droppages.PublicDraw {
	d := coupon(1, "Moon cake night", closesIn)
	d.OpeningMode, d.Stock = template.ByDraw, 100
	card := draw.Card{Drop: 1, Version: 1, OpensAt: d.OpensAt.Add(-48 * time.Hour), ClosesAt: d.OpensAt, Stock: 100, MaxWeight: 1,
		Source: draw.Source{Kind: kind, Detail: draw.QuicknetChain}, Round: roundAfter(d.OpensAt)}
	p := droppages.PublicDraw{Drop: d, Name: d.Name, Card: card, Base: "/api/v1/draws/1", Server: "https://drops.example.com",
		Draw: draw.Draw{TemplateID: 1, State: state, Key: "dropbell+1a2b3c4d+AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAh", Cards: []string{card.Text()},
			OpensAt: card.OpensAt, ClosesAt: card.ClosesAt, Counts: draw.Counts{Entered: 4230, Left: 30}}}
	if state == draw.Open {
		return p
	}
	seal := draw.Seal{Drop: 1, Card: draw.HashOf(card.Text()), Entries: 4200, Root: draw.HashOf("root"), SealedAt: card.ClosesAt, Round: card.Round, Struck: []draw.Count{{Reason: "Entered for somebody else", N: 3}}}
	p.Seal, p.Draw.Seal, p.Draw.SealedAt, p.Draw.Round = &seal, seal.Text(), &seal.SealedAt, seal.Round
	if state == draw.Sealed {
		return p
	}
	at := card.ClosesAt.Add(time.Minute)
	result := draw.Result{Drop: 1, Seal: draw.HashOf(seal.Text()), Evidence: "b44679b9a59af2ec", Randomness: draw.HashOf("random"), Seed: draw.HashOf("seed"), Won: 100, Cutoff: draw.Hash{0x06, 0x18},
		Struck: []draw.Strike{{Reason: draw.ReasonLapsed}, {Reason: draw.ReasonLapsed}, {Reason: "Member of the shop's staff"}}}
	p.Result, p.Draw.Result, p.Draw.DrawnAt, p.Draw.Won, p.Drop.Issued = &result, result.Text(), &at, 100, 100
	return p
}

// roundAfter is the first round of the public beacon a minute after the instant.
func roundAfter(at time.Time) int64 {
	return int64(at.Add(time.Minute).Sub(draw.RoundTime(1))/(3*time.Second)) + 2
}

// draws are the pages of draws for everybody, and drops with a draw in the console.
func draws() []Story {
	lost := drawn(draw.Done, -time.Hour, draw.Drand)
	lost.Ticket, lost.Own = "000102030405060708090a0b0c0d0e0f", &droppages.OwnTicket{Score: draw.HashOf("score")}
	weighted := drawn(draw.Open, 2*time.Hour, draw.Drand)
	weighted.Card.Doors, weighted.Card.MaxWeight, weighted.Card.AcceptHours = []draw.CardDoor{{Weight: 3, Name: "Gold members"}, {Weight: 1, Name: "All customers"}}, 3, 48
	weighted.Draw.GroupChanges = 2
	offered := drawn(draw.Offered, -3*time.Hour, draw.Drand)
	offered.Drop.AcceptHours, offered.Draw.Lapsed, offered.Draw.OffersUntil = 48, 12, ptr(Now().Add(45*time.Hour))
	page := func(p droppages.PublicDraw) droppages.Template {
		b := board(p.Drop, 4000)
		return droppages.Template{Drop: droppages.Drop{Template: p.Drop, Board: b}, Tab: droppages.TabReminders, Draw: &p.Draw, Entries: entriesOf(p)}
	}
	return []Story{
		{Name: "draws/open", Page: drawn(draw.Open, 2*time.Hour, draw.Drand).Page(), Outside: true},
		{Name: "draws/sealed", Page: drawn(draw.Sealed, -time.Second, draw.Local).Page(), Outside: true},
		{Name: "draws/drawn", Page: drawn(draw.Done, -time.Hour, draw.Drand).Page(), Outside: true},
		{Name: "draws/own-ticket", Page: lost.Page(), Outside: true},
		{Name: "draws/weights", Page: weighted.Page(), Outside: true},
		{Name: "draws/console-offers", Page: page(offered).Page()},
		{Name: "draws/console-open", Page: page(drawn(draw.Open, 2*time.Hour, draw.Drand)).Page()},
		{Name: "draws/console-done", Page: page(drawn(draw.Done, -time.Hour, draw.Drand)).Page()},
	}
}

// entriesOf is how the entries of the draw grew, faster towards the close.
func entriesOf(p droppages.PublicDraw) (list []reminder.Growth) {
	const points = 24
	for i := range points + 1 {
		at := p.Card.OpensAt.Add(p.Card.ClosesAt.Sub(p.Card.OpensAt) * time.Duration(i) / points)
		if at.After(Now()) {
			break
		}
		list = append(list, reminder.Growth{At: at, Booked: p.Draw.Taken() * int64(i*i) / (points * points)})
	}
	return list
}
