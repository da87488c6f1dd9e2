package coupons_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/budget"
	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/worker/coupons"
)

// budgetWorth is the worth of a coupon of [gateSpec].
const budgetWorth = 1000

// budgetRound is a campaign that gives coupons of a drop behind the gate.
type budgetRound struct {
	*gateFixture
	drop     template.Template
	campaign int64
	granter  coupons.Granter
}

func newBudgetRound(r *gateFixture, stock int64) *budgetRound {
	b := &budgetRound{gateFixture: r, drop: r.Open(stock, 1, nil)}
	b.campaign = rows.ID(r.T, r.sql, "campaigns", rows.Row{"grant_template_id": b.drop.ID, "state": "running"})
	b.granter = coupons.Granter{Gate: r, Accepted: r.gates[0], Budgets: r.store}
	return b
}

// set sets the campaign's budget to n coupons and a part of one.
func (b *budgetRound) set(n int64) error {
	amount := money.Amount(n*budgetWorth + 1 + rand.Int64N(budgetWorth-1))
	return dropsdb.NewBudgets(b.db).Set(b.Context(), budget.Key{Scope: budget.Campaign, Subject: b.campaign, Currency: "CNY"}, amount,
		staff.Entry{Actor: staff.System(), Action: "budget.set", ObjectKind: "campaign", ObjectID: itoa(b.campaign)})
}

// gives lets the campaign give coupons to users, and checks that each of them who was not refused has a
// coupon at once. As a campaign's worker does, it repeats what was not written within [grantPatience].
func (b *budgetRound) gives(users []user.ID, budgeted bool) (refused map[user.ID]string) {
	wish := campaign.Grant{CampaignID: b.campaign, TemplateID: b.drop.ID, Users: users, Budgeted: budgeted}
	refused, err := b.granter.Grant(b.Context(), wish)
	for deadline := time.Now().Add(time.Minute); errors.Is(err, claim.ErrOverloaded) && time.Now().Before(deadline); {
		refused, err = b.granter.Grant(b.Context(), wish)
	}
	if err != nil {
		b.Error(err)
		return nil
	}
	have := b.have()
	for _, id := range users {
		if why := refused[id]; why == "" && !have[id] || why != "" && why != delivery.ReasonCampaignBudget && why != delivery.ReasonSoldOut {
			b.Errorf("user %d is refused for %q, has a coupon: %v", id, why, have[id])
		}
	}
	return refused
}

// have returns the users who have a coupon of the campaign.
func (b *budgetRound) have() map[user.ID]bool {
	found, err := b.sql.Query(b.Context(), `select user_id from coupons where origin = 'campaign' and template_id = $1`, b.drop.ID)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer found.Close()
	have := map[user.ID]bool{}
	for found.Next() {
		var id user.ID
		if err := found.Scan(&id); err != nil {
			b.Error(err)
		}
		have[id] = true
	}
	return have
}

func (b *budgetRound) given(want int64) {
	b.Helper()
	k := budget.Key{Scope: budget.Campaign, Subject: b.campaign, Currency: "CNY"}
	kept, err := dropsdb.NewBudgets(b.db).Budget(b.Context(), k)
	if n := int64(len(b.have())); err != nil || n != want || kept.Used != money.Amount(want*budgetWorth) || kept.Used > kept.Amount {
		b.Errorf("%d coupons, want %d: %+v %v", n, want, kept, err)
	}
}

// recipients returns the users from–to.
func recipients(from, to int) (list []user.ID) {
	for id := from; id <= to; id++ {
		list = append(list, user.ID(id))
	}
	return list
}

// TestACampaignKeepsItsBudgetBehindTheGate: workers give coupons of a campaign to overlapping parts of its
// recipients at once, some of them before they know that there is a budget, while other users tap and the
// budget is raised. Exactly as many recipients get a coupon as the budget pays for, a recipient who is
// not refused has the coupon at once, and the taps get the remaining stock: nothing is lost.
func TestACampaignKeepsItsBudgetBehindTheGate(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 4)
	r.run()
	for range 4 {
		const stock, people, taps = 150, 90, 200
		b := newBudgetRound(r, stock)
		first := rand.Int64N(40)
		more := first + rand.Int64N(40)
		r.must(b.set(first))
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				from := 1 + rand.IntN(people/2)
				b.gives(recipients(from, from+people/2-1), i%2 == 0)
			})
		}
		all.Go(func() { r.must(b.set(more)) })
		all.Wait()
		// A refused recipient is decided anew after the budget was raised.
		refused := b.gives(recipients(1, people), true)
		if len(refused) != people-int(more) {
			t.Errorf("%d of %d are refused, the budget pays for %d", len(refused), people, more)
		}
		b.given(more)
		for i := range 4 {
			all.Go(func() {
				for id := 1000 + i; id < 1000+taps; id += 4 {
					if _, err := r.Claim(context.Background(), claimtest.Tap(b.drop, user.ID(id), itoa(b.drop.ID))); err != nil && !errors.Is(err, claim.ErrSoldOut) {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() { b.gives(recipients(1, people), false) })
		all.Wait()
		b.given(more)
		r.settled(b.drop.ID)
		r.tend(b.drop.ID) // claims beyond the budget have given their coupons back
		for id, err := 2000, error(nil); !errors.Is(err, claim.ErrSoldOut) && id < 2000+stock; id++ {
			_, err = r.Claim(t.Context(), claimtest.Tap(b.drop, user.ID(id), itoa(b.drop.ID)))
		}
		if n := len(r.Coupons(b.drop.ID)); n != stock {
			t.Errorf("%d of %d coupons are given", n, stock)
		}
		r.Balance(b.drop.ID)
	}
}

// TestABudgetThatIsUsedUpTakesNothingFromOthers: once the budget is used up, the claims of further
// recipients are not sent to the gate, which would take coupons away from other users until
// they are refused.
func TestABudgetThatIsUsedUpTakesNothingFromOthers(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 1)
	r.run()
	b := newBudgetRound(r, 10)
	r.must(b.set(2))
	if refused := b.gives(recipients(1, 5), true); len(refused) != 3 {
		t.Errorf("refused %v", refused)
	}
	b.granter.Gate = noGate{t}
	if refused := b.gives(recipients(1, 9), true); len(refused) != 7 {
		t.Errorf("refused %v", refused)
	}
	b.given(2)
}

// noGate takes no claim.
type noGate struct{ *testing.T }

func (n noGate) Claim(context.Context, claim.Request) (claim.Claim, error) {
	n.Error("a claim was sent to the gate")
	return claim.Claim{}, claim.ErrSoldOut
}
