package console

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim/gate"
	"dropbell/domain/staff"
)

// shownGate is a gate as the page sees it: one shelf of ten, of which four claims
// are accepted and one is written.
type shownGate struct {
	*rig
	away bool
}

func (g *shownGate) Plan(ctx context.Context, id int64) (gate.Plan, error) {
	t, err := g.Templates.Template(ctx, staff.System(), id)
	return gate.Plan{Template: t, Shards: 1, Epoch: 1, State: gate.Standing, Reason: gate.ReasonNew, Now: g.now(), BuiltAt: g.now(),
		Parts: []gate.Part{{Allot: 10, Settled: 1}}}, err
}

func (g *shownGate) Look(context.Context, int64, int) ([]gate.Shelf, error) {
	if g.away {
		return nil, redisclient.ErrUnavailable
	}
	return []gate.Shelf{{Epoch: 1, Open: true, Stock: 6, Allot: 10, Accepted: 4, Still: true}}, nil
}

func (g *shownGate) Pace(context.Context, int64, int, time.Time, int) ([]int64, error) {
	return []int64{0, 40, 0}, nil
}

// The card tells what the gate has given away before it is written, and the
// rate of its claims, not of the writer.
func TestClaimsCardBehindTheGate(t *testing.T) {
	shelves := &shownGate{}
	g := newRig(t, func(d *Deps) { d.Stock, d.Paces = gate.Whereabouts{Plans: shelves, Shelves: shelves}, shelves })
	shelves.rig = g
	d := g.published(10, time.Hour)
	g.exec(`update templates set claim_mode = 'gate', stock = 10, issued = 1 where id = $1`, d.ID)
	b := g.as(staff.Viewer)
	for _, page := range []string{"", "/cockpit"} {
		b.get(fmt.Sprintf("/templates/%d%s", d.ID, page)).is(200).has("On the shelf 6 and 3 being written", "Claims per second 13 ")
	}
	shelves.away = true
	g.Console.sales = salesDesk{} // what was seen a moment ago is forgotten
	b.get(fmt.Sprintf("/templates/%d", d.ID)).is(200).has("the shards do not answer", "The shards do not answer")
}
