package budget_test

import (
	"math"
	"testing"

	"dropbell/domain/budget"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

func TestWorth(t *testing.T) {
	for want, s := range map[money.Amount]template.Spec{500: {Kind: template.AmountOff, AmountOff: 500}, 700: {Kind: template.ThresholdOff, AmountOff: 700}, 900: {Kind: template.PercentOff, MaxOff: 900, PercentOff: 20}} {
		if got := budget.Worth(s); got != want {
			t.Errorf("%s: %d, want %d", s.Kind, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		amount, used, least money.Amount
		want                budget.Level
		share               int64
	}{
		{1000, 0, 100, budget.Fine, 0}, {1000, 799, 100, budget.Fine, 799}, {1000, 800, 100, budget.Near, 800}, {1000, 900, 100, budget.Near, 900},
		{1000, 901, 100, budget.UsedUp, 901}, {1000, 1000, 0, budget.UsedUp, 1000}, {1000, 900, 0, budget.Near, 900}, {0, 0, 0, budget.UsedUp, 0},
	} {
		b := budget.Budget{Amount: c.amount, Used: c.used, Least: c.least}
		if b.Level() != c.want || b.Share() != c.share {
			t.Errorf("%d of %d, least %d: %s %d, want %s %d", c.used, c.amount, c.least, b.Level(), b.Share(), c.want, c.share)
		}
	}
}

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		amount, others, worth money.Amount
		stock                 int64
		fits                  bool
	}{{1000, 0, 100, 10, true}, {1000, 0, 100, 11, false}, {1000, 1, 100, 10, false}, {1000, 1000, 100, 1, false}, {1000, 2000, 100, 1, false},
		{math.MaxInt64, 0, 1, math.MaxInt64, true}, {1000, 0, 0, 1000, true}} {
		if err := budget.Room(c.amount, c.others, c.worth, c.stock, "the budget"); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
