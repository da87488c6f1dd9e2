package program

import "dropbell/domain/draw"

// draws are the use cases of entrants and of everybody who checks a draw.
func (p *program) draws() *draw.Service {
	return &draw.Service{Store: p.entries, Templates: p.lookup, Keys: p.drawKeys.Keys, Erased: p.Erased.Has}
}
