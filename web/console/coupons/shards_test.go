package coupons_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim/gate"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
)

// shownGate is a gate with one shard of ten coupons, of which four are accepted and one is written.
type shownGate struct {
	*consoletest.Fixture
	away bool
}

func (g *shownGate) Plan(ctx context.Context, id int64) (gate.Plan, error) {
	t, err := g.Templates.Template(ctx, staff.System(), id)
	return gate.Plan{Template: t, Shards: 1, Epoch: 1, State: gate.Active, Reason: gate.ReasonNew, Now: g.Now(), BuiltAt: g.Now(),
		Parts: []gate.Part{{Epoch: 1, Allot: 10, Settled: 1}}}, err
}

func (g *shownGate) Look(context.Context, int64, int) ([]gate.Shard, error) {
	if g.away {
		return nil, redisclient.ErrUnavailable
	}
	return []gate.Shard{{Epoch: 1, Open: true, Stock: 6, Allot: 10, Accepted: 4, Still: true}}, nil
}

func (g *shownGate) Pace(context.Context, int64, int, time.Time, int) ([]int64, error) {
	return []int64{0, 40, 0}, nil
}

// The card shows accepted coupons of the gate before they are written. Its rate is the rate of the
// gate's claims, not of the writer.
func TestClaimsCardBehindTheGate(t *testing.T) {
	source := &shownGate{}
	g := consoletest.New(t, func(d *console.Deps) {
		d.Coupons.Sales.Stock, d.Coupons.Sales.Paces = gate.Accounts{Plans: source, Shards: source}, source
	})
	source.Fixture = g
	d := g.Published(10, time.Hour)
	g.Exec(`update templates set claim_mode = 'gate', stock = 10, issued = 1, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, d.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id and t.id = $1`, d.ID)
	b := g.As(staff.Viewer)
	b.Get(fmt.Sprintf("/templates/%d?tab=claims", d.ID)).Is(200).Has("Available 6 and 3 being written", "Claims per second 13 ")
	b.Get(fmt.Sprintf("/templates/%d?tab=live", d.ID)).Is(200).Has("Gone in about 1 s at this pace", "Claims per second 13 ").HasNot("Available 6")
	source.away = true
	page := fmt.Sprintf("/templates/%d?tab=claims", d.ID)
	consoletest.Within(t, "what was seen a moment ago is forgotten", func() bool { return strings.Contains(b.Get(page).Text(), "the parts of the stock do not answer") })
	b.Get(page).Is(200).Has("the parts of the stock do not answer", "The parts of the stock do not answer")
}
