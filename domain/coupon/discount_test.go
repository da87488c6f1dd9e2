package coupon_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

func TestDiscount(t *testing.T) {
	fixed := coupon.Rule{Kind: template.AmountOff, AmountOff: 1000, Threshold: 99999, Currency: "CNY", Target: template.WholeShop}
	threshold := coupon.Rule{Kind: template.ThresholdOff, AmountOff: 1000, Threshold: 5000, Currency: "CNY", Target: template.WholeShop}
	percent := coupon.Rule{Kind: template.PercentOff, PercentOff: 15, MaxOff: 3000, Currency: "CNY", Target: template.WholeShop}
	product := threshold
	product.Target, product.Product = template.Product, "tea"
	floored := percent
	floored.Threshold = 200
	for _, c := range []struct {
		name  string
		rule  coupon.Rule
		order coupon.Order
		want  money.Amount // 0 = not usable
	}{
		{"fixed", fixed, coupon.Order{Amount: 2500}, 1000},
		{"fixed, smaller order", fixed, coupon.Order{Amount: 999}, 999},
		{"fixed, least order", fixed, coupon.Order{Amount: 1}, 1},
		{"threshold met exactly", threshold, coupon.Order{Amount: 5000}, 1000},
		{"threshold missed by one", threshold, coupon.Order{Amount: 4999}, 0},
		{"percent", percent, coupon.Order{Amount: 10000}, 1500},
		{"percent rounds down", percent, coupon.Order{Amount: 19}, 2}, // 2.85
		{"percent of almost nothing", percent, coupon.Order{Amount: 6}, 0},
		{"percent of seven", percent, coupon.Order{Amount: 7}, 1}, // 1.05
		{"percent, most", percent, coupon.Order{Amount: 20000}, 3000},
		{"percent, beyond the most", percent, coupon.Order{Amount: 20010}, 3000},
		{"percent with a threshold, missed", floored, coupon.Order{Amount: 199}, 0},
		{"percent with a threshold, met", floored, coupon.Order{Amount: 200}, 30},
		{"percent, largest order", percent, coupon.Order{Amount: math.MaxInt64}, 3000},
		{"product met", product, coupon.Order{Amount: 9000, Products: []coupon.Part{{"tea", 3000}, {"cup", 2000}, {"tea", 2000}}}, 1000},
		{"product missed", product, coupon.Order{Amount: 9000, Products: []coupon.Part{{"tea", 3000}, {"cup", 6000}}}, 0},
		{"product not named", product, coupon.Order{Amount: 9000}, 0},
		{"product, another case", product, coupon.Order{Amount: 9000, Products: []coupon.Part{{"Tea", 9000}}}, 0},
		{"currency", fixed, coupon.Order{Amount: 2500, Currency: "CNY"}, 1000},
		{"other currency", fixed, coupon.Order{Amount: 2500, Currency: "USD"}, 0},
	} {
		got, err := c.rule.Discount(c.order)
		if c.want == 0 && !errors.Is(err, coupon.ErrNotUsable) || c.want != 0 && (err != nil || got != c.want) {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func anyRule(t *rapid.T) coupon.Rule {
	r := coupon.Rule{Kind: rapid.SampledFrom([]template.Kind{template.AmountOff, template.ThresholdOff, template.PercentOff}).Draw(t, "kind"),
		AmountOff: money.Amount(rapid.Int64Range(1, int64(template.MaxAmount)).Draw(t, "off")),
		Threshold: money.Amount(rapid.Int64Range(0, int64(template.MaxAmount)).Draw(t, "threshold")),
		MaxOff:    money.Amount(rapid.Int64Range(1, int64(template.MaxAmount)).Draw(t, "max")), PercentOff: rapid.IntRange(1, 100).Draw(t, "percent"),
		Currency: "CNY", Target: rapid.SampledFrom([]template.Target{template.WholeShop, template.Product}).Draw(t, "target")}
	if r.Target == template.Product {
		r.Product = "tea"
	}
	return r
}

// TestDiscountProperties: a discount is never below 1 nor above what it is
// taken off, grows with the order, and keeps its maximum, whatever the amounts.
func TestDiscountProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRule(t)
		small := rapid.Int64Range(1, math.MaxInt64).Draw(t, "small")
		large := rapid.Int64Range(small, math.MaxInt64).Draw(t, "large")
		order := func(n int64) coupon.Order {
			return coupon.Order{Amount: math.MaxInt64, Products: []coupon.Part{{"tea", money.Amount(n)}}}
		}
		if r.Target == template.WholeShop {
			order = func(n int64) coupon.Order { return coupon.Order{Amount: money.Amount(n)} }
		}
		a, errA := r.Discount(order(small))
		b, errB := r.Discount(order(large))
		if errA == nil && (errB != nil || b < a) {
			t.Fatalf("%d off %d but %d (%v) off %d", a, small, b, errB, large)
		}
		if errB != nil {
			return
		}
		if b < 1 || int64(b) > large {
			t.Fatalf("%d off %d", b, large)
		}
		if r.Kind == template.PercentOff && b > r.MaxOff || r.Kind != template.PercentOff && b > r.AmountOff {
			t.Fatalf("%d off, more than %+v allows", b, r)
		}
		if r.Kind == template.PercentOff && b < r.MaxOff { // rounded down by less than one unit
			if exact := float64(large) * float64(r.PercentOff) / 100; exact-float64(b) > 1.01+exact/1e12 || float64(b) > exact*(1+1e-12) {
				t.Fatalf("%d %% of %d is not %d", r.PercentOff, large, b)
			}
		}
	})
}

func TestOrderCheck(t *testing.T) {
	good := coupon.Order{ID: "A-1", Amount: 100, Currency: "CNY", Products: []coupon.Part{{"tea", 60}, {"cup", 40}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*coupon.Order){
		"order_id":          func(o *coupon.Order) { o.ID = "" },
		"order_id ":         func(o *coupon.Order) { o.ID = "a b" },
		"order_id  ":        func(o *coupon.Order) { o.ID = "a\x00" },
		"order_id   ":       func(o *coupon.Order) { o.ID = "a\xff" },
		"order_id    ":      func(o *coupon.Order) { o.ID = strings.Repeat("x", 65) },
		"order_amount":      func(o *coupon.Order) { o.Amount = 0 },
		"order_amount ":     func(o *coupon.Order) { o.Amount = coupon.MaxOrderAmount + 1 },
		"currency":          func(o *coupon.Order) { o.Currency = "yuan" },
		"products":          func(o *coupon.Order) { o.Products[0].Amount = 61 },
		"products ":         func(o *coupon.Order) { o.Products[0].Amount = -1 },
		"products  ":        func(o *coupon.Order) { o.Products[0].Product = "" },
		"products   ":       func(o *coupon.Order) { o.Products = make([]coupon.Part, 501) },
		"products overflow": func(o *coupon.Order) { o.Products = []coupon.Part{{"tea", math.MaxInt64}, {"tea", math.MaxInt64}} },
	} {
		o := good
		o.Products = append([]coupon.Part{}, good.Products...)
		change(&o)
		fields, ok := errors.AsType[*fault.Fields](o.Check())
		if want, _, _ := strings.Cut(field, " "); !ok || len(fields.List) != 1 || fields.List[0].Name != want {
			t.Errorf("%s: %v", field, o.Check())
		}
	}
}
