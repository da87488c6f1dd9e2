package drops_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/budget"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

func (w *fixture) budgets() *budget.Service {
	return &budget.Service{Store: dropsdb.NewBudgets(w.DB), Templates: w.Service}
}

// drafted returns a draft with this stock, whose coupons take 20.00 off.
func (w *fixture) drafted(stock int64) template.Template {
	w.Helper()
	spec := pgtest.Spec(time.Hour)
	spec.Stock, spec.AmountOff, spec.Threshold, spec.Kind = stock, 2000, 0, template.AmountOff
	t, err := w.Service.Create(w.Context(), staff.System(), spec, "")
	w.Must(err)
	return t
}

// TestDropsPublishedAtOnceKeepTheBudget: of drops that are published at once exactly as many
// are as the shop's budget pays for.
func TestDropsPublishedAtOnceKeepTheBudget(t *testing.T) {
	w := newFixture(t)
	s, by := w.budgets(), staff.System()
	var list []template.Template
	for range 6 {
		list = append(list, w.drafted(10))
	}
	w.Must(s.SetShop(t.Context(), by, list[0].ShopNumber, "CNY", 4*10*2000+19_999, "this month"))
	published, short := 0, 0
	for _, err := range pgtest.Together(len(list), func(i int) error {
		_, err := w.Service.Do(t.Context(), by, list[i].ID, list[i].Version, template.Publishing, "")
		return err
	}) {
		switch {
		case err == nil:
			published++
		case errors.Is(err, budget.ErrShort):
			short++
		default:
			t.Error(err)
		}
	}
	if published != 4 || short != 2 {
		t.Errorf("%d are published, %d refused", published, short)
	}
	all, err := s.Budgets(t.Context(), by)
	if err != nil || len(all) != 1 || all[0].Committed != 80_000 || all[0].Used != 0 || all[0].Level() != budget.Fine {
		t.Errorf("%+v %v", all, err)
	}
}

// TestABudgetAndAPublicationAtOnce: whichever comes first, no more is committed than the
// budget allows.
func TestABudgetAndAPublicationAtOnce(t *testing.T) {
	w := newFixture(t)
	s, by := w.budgets(), staff.System()
	for n := range 8 {
		tpl := w.drafted(10)
		errs := pgtest.Together(2, func(i int) error {
			if i == 0 {
				return s.SetDrop(t.Context(), by, tpl.ID, 19_999, "a test")
			}
			_, err := w.Service.Do(t.Context(), by, tpl.ID, tpl.Version, template.Publishing, "")
			return err
		})
		if errors.Is(errs[0], budget.ErrCommitted) == errors.Is(errs[1], budget.ErrShort) {
			t.Errorf("%d: set %v, published %v", n, errs[0], errs[1])
		}
	}
}

// TestBudgetsAreRaised: the stock of a published drop grows as far as its budget allows, and the
// audit log says who raised the budget. The levels follow from the issued coupons.
func TestBudgetsAreRaised(t *testing.T) {
	w := newFixture(t)
	s, by := w.budgets(), staff.Actor{Label: "staff:1", Name: "Ada", Role: staff.Admin}
	tpl := w.drafted(10)
	w.Must(s.SetDrop(t.Context(), by, tpl.ID, 20_000, "as planned"))
	tpl, err := w.Service.Do(t.Context(), by, tpl.ID, tpl.Version, template.Publishing, "")
	w.Must(err)
	more := tpl.Spec
	more.Stock = 11
	if _, err = w.Service.Edit(t.Context(), by, tpl.ID, template.Edition{Version: tpl.Version, Spec: more}); !errors.Is(err, budget.ErrShort) {
		t.Errorf("more than the budget: %v", err)
	}
	for _, c := range []struct {
		issued int
		want   budget.Level
	}{{7, budget.Fine}, {8, budget.Near}, {9, budget.Near}, {10, budget.UsedUp}} {
		w.Exec(`update templates set issued = $2 where id = $1`, tpl.ID, c.issued)
		b, err := s.OfDrop(t.Context(), by, tpl.ID)
		if err != nil || b.Level() != c.want || b.Used != money.Amount(2000*c.issued) {
			t.Errorf("%d coupons: %+v %s, %v", c.issued, b, b.Level(), err)
		}
		for _, err := range pgtest.Together(3, func(int) error {
			_, err := dropsdb.NewBudgets(w.DB).Reached(t.Context())
			return err
		}) {
			w.Must(err)
		}
	}
	if n := w.Number(`select count(*) from outbox where topic = 'budget.reached.v1'`); n != 2 {
		t.Errorf("the two levels were announced %d times", n)
	}
	if err := s.SetDrop(t.Context(), by, tpl.ID, 19_999, "less"); !errors.Is(err, budget.ErrCommitted) {
		t.Errorf("less than is committed: %v", err)
	}
	w.Must(s.SetDrop(t.Context(), by, tpl.ID, 23_000, "it goes well"))
	if tpl, err = w.Service.Edit(t.Context(), by, tpl.ID, template.Edition{Version: tpl.Version, Spec: more}); err != nil {
		t.Error(err)
	}
	if n := w.Number(`select count(*) from audit where action = 'budget.set' and actor like 'staff:1%' and reason <> '' and object_id = $1`, fmt.Sprint(tpl.ID)); n != 2 {
		t.Errorf("%d entries in the audit log", n)
	}
	if n := w.Number(`select (before ->> 'amount')::bigint from audit where action = 'budget.set' and reason = 'it goes well'`); n != 20_000 {
		t.Errorf("%d before", n)
	}
	// A drop that staff close commits what it has issued, and gives the other coupons back.
	w.Must(s.SetShop(t.Context(), by, tpl.ShopNumber, "CNY", 22_000, "a test"))
	_, err = w.Service.Do(t.Context(), by, tpl.ID, tpl.Version, template.Closing, "enough")
	w.Must(err)
	b, err := dropsdb.NewBudgets(w.DB).Budget(t.Context(), budget.Key{Scope: budget.Shop, Subject: tpl.ShopNumber, Currency: "CNY"})
	if err != nil || b.Committed != 20_000 {
		t.Errorf("%+v %v", b, err)
	}
	for name, err := range map[string]error{
		"a viewer":      s.SetDrop(t.Context(), staff.Actor{Role: staff.Viewer}, tpl.ID, 1, "x"),
		"another shop":  s.SetShop(t.Context(), staff.Actor{Role: staff.Admin, Shops: []int64{tpl.ShopNumber + 1}}, tpl.ShopNumber, "CNY", 1, "x"),
		"no reason":     s.SetDrop(t.Context(), by, tpl.ID, 1, ""),
		"no currency":   s.SetShop(t.Context(), by, tpl.ShopNumber, "XXX", 1, "x"),
		"none to clear": s.SetShop(t.Context(), by, tpl.ShopNumber, "JPY", 0, "x"),
	} {
		if err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

// TestADropThatHadEndedCounts: coupons of a drop that ended by the clock may still be given by
// staff. A budget that is set later pays for these, and not for the coupons that were issued before.
func TestADropThatHadEndedCounts(t *testing.T) {
	w := newFixture(t)
	s, by := w.budgets(), staff.System()
	tpl, closed := w.drafted(10), w.drafted(10)
	for _, d := range []template.Template{tpl, closed} {
		_, err := w.Service.Do(t.Context(), by, d.ID, d.Version, template.Publishing, "")
		w.Must(err)
	}
	ends := func(id int64, by string) {
		w.Exec(`update templates set state = 'closed', issued = 4, opens_at = opens_at - interval '3 days', closes_at = date_trunc('second', now()) - interval '2 days',
			ended_at = date_trunc('second', now()) - interval '2 days' - $2::interval, valid_hours = 480, valid_until = null where id = $1`, id, by)
		w.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '3 days', 4)`, id)
	}
	ends(tpl.ID, "0")
	ends(closed.ID, "1 hour") // by staff
	if err := s.SetShop(t.Context(), by, tpl.ShopNumber, "CNY", 11_999, "a test"); !errors.Is(err, budget.ErrCommitted) {
		t.Errorf("less than the six coupons left: %v", err)
	}
	w.Must(s.SetShop(t.Context(), by, tpl.ShopNumber, "CNY", 12_000, "a test"))
	sums := func(committed, used money.Amount) {
		t.Helper()
		b, err := dropsdb.NewBudgets(w.DB).Budget(t.Context(), budget.Key{Scope: budget.Shop, Subject: tpl.ShopNumber, Currency: "CNY"})
		if err != nil || b.Committed != committed || b.Used != used {
			t.Errorf("%+v %v, want %d committed and %d used", b, err, committed, used)
		}
	}
	sums(12_000, 0)
	w.Exec(`update budgets set since = since - interval '5 seconds'`)
	w.Exec(`update templates set issued = 6 where id = $1`, tpl.ID)
	w.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()), 2)`, tpl.ID)
	sums(12_000, 4_000)
	next := w.drafted(1)
	if _, err := w.Service.Do(t.Context(), by, next.ID, next.Version, template.Publishing, ""); !errors.Is(err, budget.ErrShort) {
		t.Errorf("a drop beyond the budget: %v", err)
	}
	w.Exec(`update templates set valid_hours = 0, valid_until = now() where id = $1`, tpl.ID) // no further coupon can be given
	sums(4_000, 4_000)
}

// What paid orders took off is read from the tally of each drop. Coupons that an ended drop issued before the shop's budget began do not
// count, nor do coupons of a campaign that are not used.
func TestTakenOffByPaidOrders(t *testing.T) {
	w := newFixture(t)
	s, by := w.budgets(), staff.System()
	tpl, ended, partly := w.drafted(10), w.drafted(10), w.drafted(10)
	for i, d := range []template.Template{tpl, ended, partly} {
		w.Exec(`update templates set state = $2, issued = 4, ended_at = case when $2 = 'closed' then now() - interval '1 day' end where id = $1`, d.ID, []string{"published", "closed", "closed"}[i])
		w.Exec(`insert into coupon_tallies (template_id, used, discounted) values ($1, 3, $2)`, d.ID, []int{4_500, 900, 900}[i])
	}
	w.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) + interval '1 hour', 1)`, partly.ID)
	w.Must(s.SetShop(t.Context(), by, tpl.ShopNumber, "CNY", 1_000_000, "a test"))
	w.Must(s.SetDrop(t.Context(), by, tpl.ID, 40_000, "a test"))
	w.Exec(`insert into campaigns (id, shop_number, name, channel, content, audience, starts_at, ends_at, grant_template_id, state, creator, created_by) overriding system value
		values (7, $1, 'Gifts', 0, '{}', '{}', now(), now() + interval '1 day', $2, 'running', 'staff:1', 'staff:1')`, tpl.ShopNumber, tpl.ID)
	w.Exec(`insert into budgets (scope, subject, currency, amount, given) values ('campaign', 7, 'CNY', 100000, 2)`)
	for i, c := range []struct {
		drop   int64
		origin string
		key    string
		state  string
		off    int64
	}{{tpl.ID, "campaign", "7:1001", "used", 1_700}, {tpl.ID, "campaign", "7:1002", "unused", 0}, {tpl.ID, "campaign", "70:1003", "used", 800}, {partly.ID, "claim", "", "used", 600}} {
		w.Exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, state, issued_at, expires_at, discount)
			values ($1, $2, $2, $3, $4, $5, now() + interval '1 hour', now() + interval '2 hours', $6)`, c.drop, 1001+i, c.origin, c.key, c.state, c.off)
	}
	list, err := s.Drawn(t.Context(), by)
	w.Must(err)
	got := map[budget.Scope]money.Amount{}
	for _, b := range list {
		got[b.Scope] = b.Taken
	}
	if want := map[budget.Scope]money.Amount{budget.Shop: 4_500 + 600, budget.Drop: 4_500, budget.Campaign: 1_700}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
