package cart_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

func whole(kind template.Kind, amount, threshold money.Amount, percent int, most money.Amount) coupon.Rule {
	return coupon.Rule{Kind: kind, AmountOff: amount, Threshold: threshold, PercentOff: percent, MaxOff: most, Currency: "CNY", Target: template.WholeShop}
}

func of(product string, r coupon.Rule) coupon.Rule {
	r.Target, r.Product = template.Product, product
	return r
}

var free = cart.Stacking{Group: "any", With: []string{"any"}}

func terms(id int64, r coupon.Rule, s cart.Stacking) cart.Terms {
	return cart.Terms{ID: id, TemplateID: id, Shop: 10, Rule: r, Stacking: s}
}

func lines(amounts ...money.Amount) cart.Cart {
	c := cart.Cart{Currency: "CNY"}
	for i, a := range amounts {
		c.Lines = append(c.Lines, cart.Line{ID: string(rune('a' + i)), Product: []string{"tea", "cup"}[i%2], Quantity: 1, Amount: a})
	}
	return c
}

// TestOrderOfEffect holds the documented example: 20 % of the cups, then 30.00 off from 100.00 on,
// then 10 % of the rest.
func TestOrderOfEffect(t *testing.T) {
	c := lines(8000, 5000) // tea, cup
	got, no := cart.Combine(c, []cart.Terms{
		terms(1, whole(template.PercentOff, 0, 0, 10, 100_000), free),
		terms(2, whole(template.ThresholdOff, 3000, 10_000, 0, 0), free),
		terms(3, of("cup", whole(template.PercentOff, 0, 0, 20, 100_000)), free),
	})
	if no != nil || got.Discount != 1000+3000+900 || !slices.Equal(got.Coupons(), []int64{3, 2, 1}) {
		t.Fatalf("%+v, %+v", got, no)
	}
	// The threshold looks at the part that is not discounted yet: 120.00 - 10.00 of the cups.
	over, no := cart.Combine(c, []cart.Terms{
		terms(2, whole(template.ThresholdOff, 3000, 12_500, 0, 0), free),
		terms(3, of("cup", whole(template.PercentOff, 0, 0, 20, 100_000)), free),
	})
	if no == nil || no.Coupon != 2 || no.Reason != cart.BelowThreshold || no.Missing != 500 {
		t.Fatalf("%+v, %+v", over, no)
	}
}

func TestStacking(t *testing.T) {
	r := whole(template.AmountOff, 100, 0, 0, 0)
	one := func(id int64, s cart.Stacking) cart.Terms { return terms(id, r, s) }
	twice := one(7, cart.Stacking{PerOrder: 2})
	again := twice
	again.ID = 8
	third := twice
	third.ID = 9
	elsewhere := one(2, free)
	elsewhere.Shop = 11
	var six []cart.Terms
	for id := range int64(6) {
		six = append(six, one(id+1, free))
	}
	for _, c := range []struct {
		name string
		list []cart.Terms
		want cart.Reason
	}{
		{"no groups", []cart.Terms{one(1, cart.Stacking{}), one(2, cart.Stacking{})}, cart.StandsAlone},
		{"one direction", []cart.Terms{one(1, cart.Stacking{Group: "a", With: []string{"b"}}), one(2, cart.Stacking{Group: "b"})}, cart.StandsAlone},
		{"both directions", []cart.Terms{one(1, cart.Stacking{Group: "a", With: []string{"b"}}), one(2, cart.Stacking{Group: "b", With: []string{"a"}})}, ""},
		{"a group without itself", []cart.Terms{one(1, cart.Stacking{Group: "a", With: []string{"b"}}), one(2, cart.Stacking{Group: "a", With: []string{"b"}})}, cart.StandsAlone},
		{"a group with itself", []cart.Terms{one(1, free), one(2, free)}, ""},
		{"an empty name is no group", []cart.Terms{one(1, cart.Stacking{With: []string{""}}), one(2, cart.Stacking{With: []string{""}})}, cart.StandsAlone},
		{"two of a drop", []cart.Terms{twice, again}, ""},
		{"three of a drop", []cart.Terms{twice, again, third}, cart.TooManyOfDrop},
		{"the same coupon twice", []cart.Terms{one(1, free), one(1, free)}, cart.TooManyOfDrop},
		{"two shops", []cart.Terms{one(1, free), elsewhere}, cart.OtherShop},
		{"five", six[:5], ""},
		{"six", six, cart.TooMany},
	} {
		_, no := cart.Combine(lines(10_000), c.list)
		if got := no; got == nil && c.want != "" || got != nil && got.Reason != c.want {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	c := lines(3800)
	c.Shop = 10
	dollars := whole(template.AmountOff, 100, 0, 0, 0)
	dollars.Currency = "USD"
	elsewhere := terms(5, whole(template.AmountOff, 100, 0, 0, 0), free)
	elsewhere.Shop = 11
	now := time.UnixMicro(1_000_000)
	soon := terms(6, whole(template.AmountOff, 700, 0, 0, 0), free)
	soon.ExpiresAt = now.Add(cart.Soon).UnixMicro() - 1
	later := soon
	later.ID, later.TemplateID, later.ExpiresAt = 7, 7, soon.ExpiresAt+1
	a := cart.Qualify(c, []cart.Terms{
		terms(1, whole(template.ThresholdOff, 1000, 5000, 0, 0), free), terms(2, of("cup", whole(template.AmountOff, 100, 0, 0, 0)), free),
		terms(3, dollars, free), terms(4, whole(template.PercentOff, 0, 0, 1, 0), free), elsewhere, soon, later,
	}, now)
	want := []cart.Refusal{{Coupon: 1, Reason: cart.BelowThreshold, Missing: 1200}, {Coupon: 2, Reason: cart.NotInCart},
		{Coupon: 3, Reason: cart.OtherCurrency}, {Coupon: 4, Reason: cart.NothingOff}, {Coupon: 5, Reason: cart.OtherShop}}
	if !slices.Equal(a.Unusable, want) {
		t.Errorf("%+v", a.Unusable)
	}
	if len(a.Usable) != 2 || len(a.ExpiresSoon) != 1 || a.ExpiresSoon[0].ID != 6 || a.Best.Discount != 1400 || !a.Best.Exact {
		t.Errorf("%+v", a)
	}
}

func TestCheck(t *testing.T) {
	good := lines(100, 200)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*cart.Cart){
		"currency":          func(c *cart.Cart) { c.Currency = "yuan" },
		"lines":             func(c *cart.Cart) { c.Lines = nil },
		"lines[1].id":       func(c *cart.Cart) { c.Lines[1].ID = c.Lines[0].ID },
		"lines[0].id":       func(c *cart.Cart) { c.Lines[0].ID = "a b" },
		"lines[1].quantity": func(c *cart.Cart) { c.Lines[1].Quantity = 0 },
		"lines[1].amount":   func(c *cart.Cart) { c.Lines[1].Amount = -1 },
		"lines[0].product":  func(c *cart.Cart) { c.Lines[0].Product = "\x00" },
	} {
		c := lines(100, 200)
		spoil(&c)
		var e *fault.Fields
		if err := c.Check(); !errors.As(err, &e) || len(e.List) != 1 || e.List[0].Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]cart.Cart{"nothing to pay": lines(0, 0), "too much": lines(coupon.MaxOrderAmount, 1)} {
		if err := c.Check(); err == nil {
			t.Error(name)
		}
	}
}

// TestSpread: the shares of any amount are exact, at most their parts, and within one unit of the
// exact proportion.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) money.Amount {
			return money.Amount(rapid.Int64Range(0, int64(coupon.MaxOrderAmount)/200).Draw(t, "part"))
		}), 1, 200).Draw(t, "parts")
		var sum money.Amount
		for _, p := range parts {
			sum += p
		}
		off := money.Amount(rapid.Int64Range(0, int64(sum)).Draw(t, "off"))
		var spread money.Amount
		for i, share := range cart.Spread(off, parts) {
			if share < 0 || share > parts[i] {
				t.Fatalf("share %d of a part of %d", share, parts[i])
			}
			exact := float64(off) / float64(max(1, sum)) * float64(parts[i])
			if math.Abs(float64(share)-exact) > 1+exact/1e12 {
				t.Fatalf("share %d, in proportion %f", share, exact)
			}
			spread += share
		}
		if spread != off {
			t.Fatalf("%d instead of %d", spread, off)
		}
	})
}

func anyCart(t *rapid.T) cart.Cart {
	c := cart.Cart{Currency: "CNY"}
	for i := range rapid.IntRange(1, 6).Draw(t, "lines") {
		c.Lines = append(c.Lines, cart.Line{ID: string(rune('a' + i)), Product: rapid.SampledFrom([]string{"", "tea", "cup"}).Draw(t, "product"),
			Quantity: 1, Amount: money.Amount(rapid.IntRange(0, 60).Draw(t, "amount"))})
	}
	c.Lines[0].Amount++
	return c
}

func anyCoupons(t *rapid.T) (list []cart.Terms) {
	groups := []string{"", "a", "b", "c"}
	rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cart.Terms {
		kind := rapid.SampledFrom([]template.Kind{template.AmountOff, template.ThresholdOff, template.PercentOff}).Draw(t, "kind")
		r := whole(kind, money.Amount(rapid.IntRange(1, 30).Draw(t, "off")), money.Amount(rapid.IntRange(0, 90).Draw(t, "threshold")),
			rapid.IntRange(1, 100).Draw(t, "percent"), money.Amount(rapid.IntRange(1, 40).Draw(t, "most")))
		if rapid.Bool().Draw(t, "of a product") {
			r = of(rapid.SampledFrom([]string{"tea", "cup"}).Draw(t, "product"), r)
		}
		return cart.Terms{Shop: rapid.SampledFrom([]int64{10, 10, 10, 11}).Draw(t, "shop"), Rule: r, Stacking: cart.Stacking{
			Group:    rapid.SampledFrom(groups).Draw(t, "group"),
			With:     rapid.SliceOfDistinct(rapid.SampledFrom(groups), rapid.ID[string]).Draw(t, "with"),
			PerOrder: rapid.IntRange(0, 3).Draw(t, "per order"),
		}}
	}), 1, 5).Draw(t, "templates")
	for id := range int64(rapid.IntRange(1, 10).Draw(t, "coupons")) {
		at := rapid.IntRange(0, len(rules)-1).Draw(t, "template")
		c := rules[at]
		c.ID, c.TemplateID, c.ExpiresAt = id+1, int64(at)+1, int64(rapid.IntRange(1, 4).Draw(t, "expires"))
		list = append(list, c)
	}
	return list
}

// bruteForce tries every set of coupons. It compares as [cart.Best] says.
func bruteForce(c cart.Cart, list []cart.Terms) (best cart.Combination) {
	ordered := func(ids []int64) (expiries, sorted []int64) {
		for _, id := range ids {
			expiries = append(expiries, list[id-1].ExpiresAt)
		}
		slices.Sort(expiries)
		return expiries, slices.Sorted(slices.Values(ids))
	}
	for set := range 1 << len(list) {
		var chosen []cart.Terms
		for i, one := range list {
			if set&(1<<i) != 0 {
				chosen = append(chosen, one)
			}
		}
		got, no := cart.Combine(c, chosen)
		if no != nil || len(chosen) == 0 {
			continue
		}
		expiries, ids := ordered(got.Coupons())
		bestExpiries, bestIDs := ordered(best.Coupons())
		if len(best.Uses) == 0 || cmp.Or(cmp.Compare(best.Discount, got.Discount), cmp.Compare(len(got.Uses), len(best.Uses)),
			slices.Compare(expiries, bestExpiries), slices.Compare(ids, bestIDs)) < 0 {
			best = got
		}
	}
	return best
}

// TestBestAgainstBruteForce compares the search with all sets of coupons, and holds every
// combination to exact sums.
func TestBestAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, list := anyCart(t), anyCoupons(t)
		best, want := cart.Best(c, list), bruteForce(c, list)
		if !best.Exact || best.Discount != want.Discount || !slices.Equal(best.Coupons(), want.Coupons()) {
			t.Fatalf("%+v, by brute force %+v", best, want)
		}
		var sum money.Amount
		for i, off := range best.Lines(len(c.Lines)) {
			if off < 0 || off > c.Lines[i].Amount {
				t.Fatalf("line %d of %d has a discount of %d", i, c.Lines[i].Amount, off)
			}
			sum += off
		}
		for _, u := range best.Uses {
			var shares money.Amount
			for _, share := range u.Shares {
				shares += share
			}
			if shares != u.Off {
				t.Fatalf("coupon %d takes %d off, its lines %d", u.Coupon, u.Off, shares)
			}
		}
		if sum != best.Discount {
			t.Fatalf("the lines have %d, the combination %d", sum, best.Discount)
		}
	})
}

// TestLongSearch: a search that is cut short is deterministic, says so, and is at least as good as
// the best coupon.
func TestLongSearch(t *testing.T) {
	c, list := hard(30)
	best := cart.Best(c, list)
	slices.Reverse(list)
	if again := cart.Best(c, list); best.Exact || again.Discount != best.Discount || !slices.Equal(again.Coupons(), best.Coupons()) {
		t.Fatalf("%+v, %+v", best, again)
	}
	for _, one := range list {
		if off, _ := cart.Alone(c, one); off > best.Discount {
			t.Fatalf("coupon %d takes %d off alone, the combination %d", one.ID, off, best.Discount)
		}
	}
	if many := cart.Best(c, append(list, terms(99, whole(template.AmountOff, 1, 0, 0, 0), free))); many.Exact {
		t.Error("a search that left out a coupon is not exact")
	}
}

// hard returns a cart of 20 lines and coupons that all go together and whose discounts depend on one another.
func hard(coupons int) (cart.Cart, []cart.Terms) {
	c := cart.Cart{Currency: "CNY"}
	for i := range 20 {
		c.Lines = append(c.Lines, cart.Line{ID: string(rune('a' + i)), Product: string(rune('a' + i%7)), Quantity: 1, Amount: money.Amount(1000 + 37*i)})
	}
	var list []cart.Terms
	for i := range coupons {
		r := whole(template.PercentOff, 0, money.Amount(8_000+100*(i%9)), 12+i%6, 1_000_000)
		if i%3 == 0 {
			r = whole(template.ThresholdOff, money.Amount(3000+17*i), money.Amount(14_000+150*i), 0, 0)
		}
		list = append(list, terms(int64(i+1), r, free))
	}
	return c, list
}

func BenchmarkBest(b *testing.B) {
	c, list := hard(cart.MaxCandidates)
	for b.Loop() {
		cart.Best(c, list)
	}
}

func BenchmarkQualify(b *testing.B) {
	c, list := hard(cart.MaxCandidates)
	for i := range list {
		if i >= 12 {
			list[i].Stacking = cart.Stacking{Group: "b", With: []string{"a"}}
		}
	}
	for b.Loop() {
		cart.Qualify(c, list, time.Time{})
	}
}
