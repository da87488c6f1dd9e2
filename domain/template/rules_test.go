package template_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/template"
)

// ruleCase changes a valid spec. broken is the exact list of rules that Check must name.
type ruleCase struct {
	name   string
	change func(*template.Spec)
	broken []string
}

func accepted(name string, change func(*template.Spec)) ruleCase { return ruleCase{name, change, nil} }
func refused(field, name string, change func(*template.Spec)) ruleCase {
	return ruleCase{field + ": " + name, change, []string{field}}
}

func runRules(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		s := validSpec()
		c.change(&s)
		if got := brokenFields(s.Check()); !slices.Equal(got, c.broken) {
			t.Errorf("%s: refused for %v, want %v", c.name, got, c.broken)
		}
	}
}

func TestTextRules(t *testing.T) {
	runRules(t, []ruleCase{
		accepted("a name of one letter", func(s *template.Spec) { s.Name = "x" }),
		accepted("the longest name", func(s *template.Spec) { s.Name = strings.Repeat("券", template.MaxName) }),
		refused("name", "one letter too many", func(s *template.Spec) { s.Name = strings.Repeat("券", template.MaxName+1) }),
		refused("name", "ten megabytes", func(s *template.Spec) { s.Name = strings.Repeat("x", 10<<20) }),
		refused("name", "empty", func(s *template.Spec) { s.Name = "" }),
		refused("name", "only space", func(s *template.Spec) { s.Name = " \t\u3000\n" }),
		refused("name", "NUL", func(s *template.Spec) { s.Name = "a\x00b" }),
		refused("name", "invalid UTF-8", func(s *template.Spec) { s.Name = "a\xffb" }),
		refused("name", "half a rune", func(s *template.Spec) { s.Name = "券"[:2] }),
		refused("name", "escape", func(s *template.Spec) { s.Name = "a\x1b[31mb" }),
		refused("name", "two lines", func(s *template.Spec) { s.Name = "a\nb" }),
		refused("name", "a tab", func(s *template.Spec) { s.Name = "a\tb" }),
		refused("name", "C1 control", func(s *template.Spec) { s.Name = "a\u0085b" }),
		accepted("no description", func(s *template.Spec) { s.Description = "" }),
		accepted("lines in a description", func(s *template.Spec) { s.Description = "a\r\n\tb" }),
		accepted("the longest description", func(s *template.Spec) { s.Description = strings.Repeat("券", 4000) }),
		refused("description", "one letter too many", func(s *template.Spec) { s.Description = strings.Repeat("x", 4001) }),
		refused("description", "NUL", func(s *template.Spec) { s.Description = "\x00" }),
		accepted("a note of two lines", func(s *template.Spec) { s.Note = "a\nb" }),
		accepted("the longest note", func(s *template.Spec) { s.Note = strings.Repeat("券", 500) }),
		refused("note", "one letter too many", func(s *template.Spec) { s.Note = strings.Repeat("x", 501) }),
		accepted("a claim link", func(s *template.Spec) { s.ClaimURL = "https://shop.example/claim?id=1#x" }),
		accepted("the longest claim link", func(s *template.Spec) { s.ClaimURL = pad("https://shop.example/", 500) }),
		refused("claim_url", "too long", func(s *template.Spec) { s.ClaimURL = pad("https://shop.example/", 501) }),
		refused("claim_url", "script", func(s *template.Spec) { s.ClaimURL = "javascript:alert(1)" }),
		refused("claim_url", "data", func(s *template.Spec) { s.ClaimURL = "data:text/html,x" }),
		refused("claim_url", "no host", func(s *template.Spec) { s.ClaimURL = "https:///claim" }),
		refused("claim_url", "relative", func(s *template.Spec) { s.ClaimURL = "/claim" }),
		refused("claim_url", "line break", func(s *template.Spec) { s.ClaimURL = "https://shop.example/\r\nBcc: x" }),
		refused("claim_url", "NUL", func(s *template.Spec) { s.ClaimURL = "https://shop.example/\x00" }),
		refused("claim_url", "invalid UTF-8", func(s *template.Spec) { s.ClaimURL = "https://shop.example/\xff" }),
	})
}

func pad(s string, n int) string { return s + strings.Repeat("x", n-len(s)) }

func TestDiscountRules(t *testing.T) {
	const most = template.MaxAmount
	threshold := func(off, over int64) func(*template.Spec) {
		return func(s *template.Spec) {
			s.Kind, s.AmountOff, s.Threshold = template.ThresholdOff, money.Amount(off), money.Amount(over)
		}
	}
	percent := func(p int, cap, over int64) func(*template.Spec) {
		return func(s *template.Spec) {
			s.Kind, s.AmountOff, s.PercentOff, s.MaxOff, s.Threshold = template.PercentOff, 0, p, money.Amount(cap), money.Amount(over)
		}
	}
	runRules(t, []ruleCase{
		accepted("the least amount", func(s *template.Spec) { s.AmountOff = 1 }),
		accepted("the greatest amount", func(s *template.Spec) { s.AmountOff = most }),
		refused("amount_off", "nothing", func(s *template.Spec) { s.AmountOff = 0 }),
		refused("amount_off", "negative", func(s *template.Spec) { s.AmountOff = -1 }),
		refused("amount_off", "too much", func(s *template.Spec) { s.AmountOff = most + 1 }),
		refused("kind", "unknown", func(s *template.Spec) { s.Kind = "gift" }),
		refused("kind", "none", func(s *template.Spec) { s.Kind = "" }),
		refused("currency", "none", func(s *template.Spec) { s.Currency = "" }),
		refused("currency", "small letters", func(s *template.Spec) { s.Currency = "cny" }),
		refused("currency", "line break", func(s *template.Spec) { s.Currency = "CNY\n" }),
		accepted("as much off as the threshold", threshold(5000, 5000)),
		refused("amount_off", "more off than the threshold", threshold(5001, 5000)),
		{"no threshold", threshold(1000, 0), []string{"threshold", "amount_off"}},
		accepted("one per cent", percent(1, 1, 0)),
		accepted("all of it", percent(100, int64(most), int64(most))),
		refused("percent_off", "nothing", percent(0, 1, 0)),
		refused("percent_off", "more than all", percent(101, 1, 0)),
		refused("max_off", "no bound", percent(20, 0, 0)),
		refused("max_off", "too much", percent(20, int64(most)+1, 0)),
		refused("threshold", "negative", percent(20, 1, -1)),
	})
}

// TestUnusedFieldsAreJudged: fields that a kind does not use are not stored, but a value that is
// invalid for every kind is refused.
func TestUnusedFieldsAreJudged(t *testing.T) {
	percent := func(s *template.Spec) { s.Kind, s.AmountOff, s.PercentOff, s.MaxOff = template.PercentOff, 0, 20, 500 }
	runRules(t, []ruleCase{
		refused("threshold", "negative though unused", func(s *template.Spec) { s.Threshold = -1 }),
		refused("max_off", "negative though unused", func(s *template.Spec) { s.MaxOff = -1 }),
		refused("percent_off", "negative though unused", func(s *template.Spec) { s.PercentOff = -1 }),
		refused("percent_off", "huge though unused", func(s *template.Spec) { s.PercentOff = 1 << 40 }),
		refused("amount_off", "negative though unused", func(s *template.Spec) { percent(s); s.AmountOff = -1 }),
		refused("product", "NUL though unused", func(s *template.Spec) { s.Product = "\x00" }),
		refused("product", "invalid UTF-8 though unused", func(s *template.Spec) { s.Product = "\xff" }),
	})
}

func TestReachRules(t *testing.T) {
	runRules(t, []ruleCase{
		refused("shop_number", "none", func(s *template.Spec) { s.ShopNumber = 0 }),
		refused("shop_number", "negative", func(s *template.Spec) { s.ShopNumber = -1 }),
		refused("target", "unknown", func(s *template.Spec) { s.Target = "galaxy" }),
		accepted("a product", func(s *template.Spec) { s.Target, s.Product = template.Product, "p" }),
		refused("product", "none", func(s *template.Spec) { s.Target = template.Product }),
		refused("product", "too long", func(s *template.Spec) {
			s.Target, s.Product = template.Product, strings.Repeat("p", template.MaxName+1)
		}),
		accepted("one in stock", func(s *template.Spec) { s.Stock = 1 }),
		accepted("the greatest stock", func(s *template.Spec) { s.Stock = template.MaxStock }),
		refused("stock", "none", func(s *template.Spec) { s.Stock = 0 }),
		refused("stock", "negative", func(s *template.Spec) { s.Stock = -5 }),
		refused("stock", "too much", func(s *template.Spec) { s.Stock = template.MaxStock + 1 }),
		accepted("the greatest limit", func(s *template.Spec) { s.PerUserLimit = 1000 }),
		refused("per_user_limit", "none", func(s *template.Spec) { s.PerUserLimit = 0 }),
		refused("per_user_limit", "too much", func(s *template.Spec) { s.PerUserLimit = 1001 }),
		refused("obtain", "unknown", func(s *template.Spec) { s.Obtain = "steal" }),
		refused("claim_mode", "unknown", func(s *template.Spec) { s.ClaimMode = "" }),
	})
}

func TestTimeRules(t *testing.T) {
	until := func(at time.Time) func(*template.Spec) {
		return func(s *template.Spec) { s.ValidHours, s.ValidUntil = 0, &at }
	}
	runRules(t, []ruleCase{
		refused("opens_at", "none", func(s *template.Spec) { s.OpensAt = time.Time{} }),
		refused("opens_at", "part of a second", func(s *template.Spec) { s.OpensAt = s.OpensAt.Add(time.Millisecond) }),
		accepted("any whole second", func(s *template.Spec) { s.OpensAt = s.OpensAt.Add(7 * time.Second) }),
		refused("opens_at", "in the last century", func(s *template.Spec) { s.OpensAt = s.OpensAt.AddDate(-30, 0, 0) }),
		refused("opens_at", "in the year 0", func(s *template.Spec) { s.OpensAt = s.OpensAt.AddDate(-2027, 0, 0) }),
		refused("opens_at", "before that", func(s *template.Spec) { s.OpensAt = s.OpensAt.AddDate(-5000, 0, 0) }),
		refused("closes_at", "none", func(s *template.Spec) { s.ClosesAt = time.Time{} }),
		refused("closes_at", "at the opening", func(s *template.Spec) { s.ClosesAt = s.OpensAt }),
		refused("closes_at", "before the opening", func(s *template.Spec) { s.ClosesAt = s.OpensAt.Add(-time.Second) }),
		refused("closes_at", "part of a second", func(s *template.Spec) { s.ClosesAt = s.ClosesAt.Add(1) }),
		refused("closes_at", "in the year 9999", func(s *template.Spec) { s.ClosesAt = s.ClosesAt.AddDate(7972, 0, 0) }),
		accepted("a second long", func(s *template.Spec) { s.ClosesAt = s.OpensAt.Add(time.Second) }),
		accepted("valid for an hour", func(s *template.Spec) { s.ValidHours = 1 }),
		accepted("valid for ten years", func(s *template.Spec) { s.ValidHours = 24 * 3650 }),
		refused("valid_hours", "too long", func(s *template.Spec) { s.ValidHours = 24*3650 + 1 }),
		refused("valid_hours", "negative", func(s *template.Spec) { s.ValidHours = -1 }),
		refused("valid_hours", "no validity", func(s *template.Spec) { s.ValidHours = 0 }),
		refused("valid_hours", "two validities", func(s *template.Spec) { s.ValidUntil = new(opens.Add(time.Hour)) }),
		accepted("valid until after the opening", until(opens.Add(1))),
		refused("valid_until", "at the opening", until(opens)),
		refused("valid_until", "in the year 9999", until(opens.AddDate(7972, 0, 0))),
	})
}

func TestEveryBrokenRuleIsNamedAtOnce(t *testing.T) {
	got := brokenFields(template.Spec{}.Check())
	for _, want := range []string{"shop_number", "name", "currency", "kind", "target", "stock", "per_user_limit", "obtain", "claim_mode",
		"opens_at", "closes_at", "valid_hours"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not named: %v", want, got)
		}
	}
}

// TestReturnsOfCoupons: what sends coupons back to the stock has limits, and codes give one coupon each.
func TestReturnsOfCoupons(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*template.Spec)
		broken string
	}{
		"the default time to accept": {func(s *template.Spec) { s.Waitlist = template.OfferNext }, ""},
		"too short to accept":        {func(s *template.Spec) { s.Waitlist, s.AcceptMinutes = template.OfferNext, 4 }, "accept_minutes"},
		"too long to accept":         {func(s *template.Spec) { s.Waitlist, s.AcceptMinutes = template.OfferNext, 1441 }, "accept_minutes"},
		"no offers":                  {func(s *template.Spec) { s.AcceptMinutes = 4 }, ""},
		"a day":                      {func(s *template.Spec) { s.UseWithinHours = 24 }, ""},
		"negative":                   {func(s *template.Spec) { s.UseWithinHours = -1 }, "use_within_hours"},
		"as long as it is valid":     {func(s *template.Spec) { s.UseWithinHours = s.ValidHours }, "use_within_hours"},
		"a day with codes":           {func(s *template.Spec) { s.UseWithinHours, s.Obtain = 24, template.ByCode }, "use_within_hours"},
		"refunds":                    {func(s *template.Spec) { s.RefundTo = template.RefundToStock }, ""},
		"refunds with codes":         {func(s *template.Spec) { s.RefundTo, s.Obtain = template.RefundToStock, template.ByCode }, "refund_to"},
		"refunds to another":         {func(s *template.Spec) { s.RefundTo = "shop" }, "refund_to"},
	} {
		s := validSpec()
		s.ValidHours = 48
		c.change(&s)
		broken := brokenFields(s.Check())
		if c.broken == "" && len(broken) > 0 || c.broken != "" && !slices.Contains(broken, c.broken) {
			t.Errorf("%s: %v", name, broken)
		}
	}
}

// TestWhereThereIsNoWaitlist: stock that comes back is given where users claim or a draw decides.
func TestWhereThereIsNoWaitlist(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*template.Spec)
		ok     bool
	}{
		"first come":     {func(*template.Spec) {}, true},
		"redeem codes":   {func(s *template.Spec) { s.Obtain = template.ByCode }, false},
		"a draw":         {func(s *template.Spec) { s.OpeningMode = template.ByDraw }, true},
		"offers":         {func(s *template.Spec) { s.Waitlist = template.OfferNext }, true},
		"no such choice": {func(s *template.Spec) { s.Waitlist = "sell" }, false},
	} {
		s := validSpec()
		s.Waitlist = template.IssueNext
		c.change(&s)
		if broken := brokenFields(s.Check()); slices.Contains(broken, "waitlist") == c.ok {
			t.Errorf("%s: %v", name, broken)
		}
	}
}
