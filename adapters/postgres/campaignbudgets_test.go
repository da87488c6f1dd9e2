package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/budget"
	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// giver is a campaign that gives coupons of a drop.
type giver struct {
	*pgtest.Fixture
	drop     template.Template
	campaign int64
	gate     claim.Gate
	budgets  *budget.Service
}

// Campaign returns the campaign to the budgets.
func (g *giver) Campaign(context.Context, staff.Actor, int64) (campaign.Status, error) {
	return campaign.Status{Campaign: campaign.Campaign{ID: g.campaign, Spec: campaign.Spec{GrantTemplate: g.drop.ID, Shop: g.drop.ShopNumber}}}, nil
}

func newGiver(t *testing.T) *giver {
	g := &giver{Fixture: pgtest.New(t)}
	g.drop = g.Published(time.Hour)
	g.Exec(`update templates set stock = 1000`)
	g.campaign = g.ID("campaigns", pgtest.Row{"grant_template_id": g.drop.ID, "shop_number": g.drop.ShopNumber, "state": "running"})
	g.gate = g.Claims()
	g.budgets = &budget.Service{Store: dropsdb.NewBudgets(g.DB), Templates: g.Service, Campaigns: g}
	return g
}

// gives lets the campaign give coupons to n users, several at a time, and returns how many got one.
func (g *giver) gives(from, n int) (given int) {
	g.Helper()
	for _, err := range pgtest.Together(n, func(i int) error {
		id := user.ID(from + i)
		_, err := g.gate.Claim(context.Background(), claim.Request{ID: claim.NewID(rand.Uint64(), g.drop.ID), TemplateID: g.drop.ID, UserID: id, Origin: claim.ByCampaign,
			Key: claim.CampaignKey(g.campaign, id)})
		return err
	}) {
		switch {
		case err == nil:
			given++
		case !errors.Is(err, claim.ErrBudget) || !errors.Is(err, claim.ErrSoldOut):
			g.Error(err)
		}
	}
	return given
}

func (g *giver) set(amount money.Amount) error {
	return g.budgets.SetCampaign(g.Context(), staff.Actor{Label: "staff:1", Name: "Ada", Role: staff.Admin}, g.campaign, amount, "a test")
}

func (g *giver) level(committed money.Amount, want budget.Level) {
	g.Helper()
	b, err := dropsdb.NewBudgets(g.DB).Budget(g.Context(), budget.Key{Scope: budget.Campaign, Subject: g.campaign, Currency: g.drop.Currency})
	if err != nil || b.Committed != committed || b.Used != committed || b.Level() != want || b.Shop != g.drop.ShopNumber {
		g.Errorf("%+v %s %v, want %d and %s", b, b.Level(), err, committed, want)
	}
}

// TestACampaignKeepsItsBudget: of recipients at once exactly as many get a coupon as the budget pays
// for. Coupons given before the budget count, repeated requests do not, and a raised budget pays
// for more. Other ways to a coupon are not limited.
func TestACampaignKeepsItsBudget(t *testing.T) {
	g := newGiver(t)
	worth := g.drop.AmountOff
	if n := g.gives(1, 5); n != 5 {
		t.Fatalf("%d of 5 without a budget", n)
	}
	if err := g.set(5*worth - 1); !errors.Is(err, budget.ErrCommitted) {
		t.Errorf("less than was given: %v", err)
	}
	g.Must(g.set(10*worth + worth/2))
	g.level(5*worth, budget.Fine)
	if n := g.gives(101, 40); n != 5 {
		t.Errorf("%d of 40 got the last five coupons", n)
	}
	g.level(10*worth, budget.UsedUp)
	if n := g.gives(1, 5); n != 5 { // who has a coupon of the campaign is answered with it
		t.Errorf("%d of 5 repeated", n)
	}
	if n := g.Number(`select count(*) from coupons where origin = 'campaign'`); n != 10 {
		t.Errorf("%d coupons", n)
	}
	for range 3 {
		_, err := dropsdb.NewBudgets(g.DB).Reached(t.Context())
		g.Must(err)
	}
	if n := g.Number(`select count(*) from outbox where topic = 'budget.reached.v1' and payload ->> 'scope' = 'campaign' and payload ->> 'level' = 'used_up'`); n != 1 {
		t.Errorf("announced %d times", n)
	}
	errs := pgtest.Together(2, func(i int) error {
		if i == 0 {
			return g.set(12 * worth)
		}
		g.gives(201, 20)
		return nil
	})
	g.Must(errs[0])
	g.gives(301, 20)
	g.level(12*worth, budget.UsedUp)
	if _, err := g.gate.Claim(t.Context(), claim.Request{ID: claim.NewID(rand.Uint64(), g.drop.ID), TemplateID: g.drop.ID, UserID: 999, Origin: claim.ByGrant, Key: "x"}); err != nil {
		t.Errorf("staff give a coupon: %v", err)
	}
	if n := g.Number(`select count(*) from audit where action = 'budget.set' and object_kind = 'campaign' and actor like 'staff:1%'`); n != 2 {
		t.Errorf("%d entries in the audit log", n)
	}
	g.Must(g.set(0))
	if n := g.gives(401, 3); n != 3 {
		t.Errorf("%d of 3 after the budget was removed", n)
	}
}

// TestACampaignWithoutCouponsHasNoBudget: without coupons a budget is refused.
func TestACampaignWithoutCouponsHasNoBudget(t *testing.T) {
	g := newGiver(t)
	g.drop.ID = 0
	if err := g.set(1000); !errors.Is(err, budget.ErrNoCoupons) {
		t.Errorf("no coupons: %v", err)
	}
}
