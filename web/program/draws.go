package program

import (
	"math/rand/v2"

	"dropbell/app"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// draws are the use cases of entrants and of everybody who checks a draw. Entries show the passes that claims show, and
// the winners' coupons pass the gate of all claims.
func (p *program) draws() *draw.Service {
	return &draw.Service{Store: p.entries, Templates: p.lookup, Keys: p.drawKeys.Keys, Erased: p.Erased.Has, Members: p.useCases.DoorMembers, Channels: &p.channels,
		Gate: p.claims.All(), Random: rand.Uint64,
		Admit: func(t *template.Template, by user.ID, pass string) error {
			return p.passKeys.Admit(t, by, pass, app.Clock())
		}}
}
