package stories

import (
	"time"

	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/views/pages"
)

// gates are drops behind the claim gate.
func gates() []Story {
	story := func(name string, shelves int, change func(*pages.Template, *pages.StockShards)) Story {
		p := pages.Template{Drop: drop(5, "Morning rush", -20*time.Minute, 22_000), History: records()[:1],
			Channels: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS, delivery.WebPush)}
		p.ClaimMode, p.Issued = template.Gate, 31_400
		p.Board = deliver(p.Board, false)
		p.Shards = &pages.StockShards{State: gate.Standing, Reason: gate.ReasonNew, BuiltAt: Now().Add(-72 * time.Hour), Zone: p.Zone(),
			Ledger:  gate.Ledger{Total: 50_000, Shelf: 18_472, Writing: 128, Issued: 31_400},
			Shelves: shelvesOf(shelves)}
		change(&p, p.Shards)
		return Story{Name: "gate/" + name, Page: p.Page()}
	}
	return []Story{
		story("one-shelf", 1, func(*pages.Template, *pages.StockShards) {}),
		story("rush", 8, func(_ *pages.Template, s *pages.StockShards) { s.Ledger.Moving = 40 }),
		story("many-shelves", gate.MaxShards, func(_ *pages.Template, s *pages.StockShards) { s.Reason = gate.ReasonLost }),
		story("sold-out", 8, func(p *pages.Template, s *pages.StockShards) {
			p.Issued, s.Ledger = 49_990, gate.Ledger{Total: 50_000, Writing: 10, Issued: 49_990}
			for i := range s.Shelves {
				s.Shelves[i].Stock = 0
			}
		}),
		story("difference", 4, func(_ *pages.Template, s *pages.StockShards) {
			s.Ledger.Difference, s.Reason = 3, gate.ReasonDifference
		}),
		story("building", 0, func(_ *pages.Template, s *pages.StockShards) { s.State, s.BuiltAt = gate.Building, time.Time{} }),
		story("away", 0, func(_ *pages.Template, s *pages.StockShards) { s.Away = true }),
		story("retired", 0, func(p *pages.Template, s *pages.StockShards) { p.Stored, s.State = template.Closed, gate.Retired }),
	}
}

// shelvesOf are shelves that run dry one after the other.
func shelvesOf(n int) []gate.Shelf {
	list := make([]gate.Shelf, n)
	for i := range list {
		allot := int64(50_000 / n)
		left := allot * int64(n-i) / int64(n+2)
		list[i] = gate.Shelf{Number: i, Epoch: 1, Open: true, Stock: left, Allot: allot, Accepted: allot - left}
	}
	return list
}
