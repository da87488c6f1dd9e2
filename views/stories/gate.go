package stories

import (
	"time"

	"dropbell/domain/claim/gate"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
)

// gates are drops behind the claim gate.
func gates() []Story {
	story := func(name string, shards int, change func(*droppages.Template, *droppages.StockShards)) Story {
		p := droppages.Template{Tab: droppages.TabClaims, Drop: drop(5, "Morning rush", -20*time.Minute, 22_000), History: records()[:1],
			Channels: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS, delivery.WebPush)}
		p.ClaimMode, p.Issued = template.Gate, 31_400
		p.Board = deliver(p.Board, false)
		p.Shards = &droppages.StockShards{State: gate.Active, Reason: gate.ReasonNew, BuiltAt: Now().Add(-72 * time.Hour), Zone: p.Zone(),
			Ledger: gate.Ledger{Total: 50_000, OnSale: onSale, Writing: 128, Issued: 31_400},
			Shards: shardsOf(shards)}
		change(&p, p.Shards)
		p.Sales = salesOf(p.Drop.Template, p.Issued, p.Shards.Ledger.Writing, 0).Sales
		return Story{Name: "gate/" + name, Page: p.Page()}
	}
	return []Story{
		story("one-shard", 1, func(*droppages.Template, *droppages.StockShards) {}),
		story("rush", 8, func(_ *droppages.Template, s *droppages.StockShards) { s.Ledger.Moving = 40 }),
		story("many-shards", gate.MaxShards, func(_ *droppages.Template, s *droppages.StockShards) { s.Reason = gate.ReasonLost }),
		story("sold-out", 8, func(p *droppages.Template, s *droppages.StockShards) {
			p.Issued, s.Ledger = 49_990, gate.Ledger{Total: 50_000, Writing: 10, Issued: 49_990}
			for i := range s.Shards {
				s.Shards[i].Stock = 0
			}
		}),
		story("difference", 4, func(_ *droppages.Template, s *droppages.StockShards) {
			s.Ledger.Difference, s.Reason = 3, gate.ReasonDifference
		}),
		story("building", 0, func(_ *droppages.Template, s *droppages.StockShards) { s.State, s.BuiltAt = gate.Building, time.Time{} }),
		story("away", 0, func(_ *droppages.Template, s *droppages.StockShards) { s.Away = true }),
		story("retired", 0, func(p *droppages.Template, s *droppages.StockShards) {
			p.Stored, p.EndedAt, s.State = template.Closed, ptr(Now().Add(-time.Minute)), gate.Retired
		}),
	}
}

// onSale is the number of coupons on all shards together.
const onSale = 18_472

// shardsOf are shards that run dry one after the other.
func shardsOf(n int) []gate.Shard {
	list := make([]gate.Shard, n)
	rest := int64(onSale)
	for i := range list {
		allot := int64(50_000 / n)
		left := int64(onSale) * 2 * int64(n-i) / int64(n*(n+1))
		if i == n-1 {
			left = rest
		}
		rest -= left
		list[i] = gate.Shard{Number: i, Epoch: 1, Open: true, Stock: left, Allot: allot, Accepted: allot - left}
	}
	return list
}
