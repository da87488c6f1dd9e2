package money_test

import (
	"math"
	"testing"

	"dropbell/domain/money"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		amount   money.Amount
		currency string
		want     string
	}{
		{0, "CNY", "0.00"},
		{1, "CNY", "0.01"},
		{99, "CNY", "0.99"},
		{100, "CNY", "1.00"},
		{1250, "EUR", "12.50"},
		{-1, "CNY", "-0.01"},
		{-1250, "CNY", "-12.50"},
		{1250, "JPY", "1250"},
		{-5, "JPY", "-5"},
		{1250, "KWD", "1.250"},
		{-7, "KWD", "-0.007"},
		{math.MaxInt64, "CNY", "92233720368547758.07"},
		{math.MinInt64, "CNY", "-92233720368547758.08"},
		{math.MinInt64, "JPY", "-9223372036854775808"},
		{math.MinInt64, "KWD", "-9223372036854775.808"},
	} {
		if got := c.amount.Decimal(c.currency); got != c.want {
			t.Errorf("%d %s: %q, want %q", int64(c.amount), c.currency, got, c.want)
		}
	}
}

func TestExponent(t *testing.T) {
	for code, want := range map[string]int{"CNY": 2, "USD": 2, "JPY": 0, "KRW": 0, "VND": 0, "KWD": 3, "TND": 3, "CLF": 4, "": 2, "XXX": 2} {
		if got := money.Exponent(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

func TestValidCurrency(t *testing.T) {
	for code, want := range map[string]bool{"CNY": true, "cny": false, "CN": false, "CNYY": false, "": false, "CNY\n": false,
		" CNY": false, "CN1": false, "ＣＮＹ": false, "ZZZ": false, "XXX": false, "DEM": false, "XAU": false, "NYE": false, "AED": true, "ZWG": true, "EUR": true, "JPY": true} {
		if got := money.ValidCurrency(code); got != want {
			t.Errorf("%q: %v, want %v", code, got, want)
		}
	}
}

func TestPer(t *testing.T) {
	for _, c := range []struct{ sum, n, want int64 }{{41267, 6, 6878}, {41267, 0, 0}, {5, 2, 3}, {-5, 2, -3}, {4, 3, 1}, {5, 3, 2}, {-4, 3, -1}, {math.MaxInt64, 1, math.MaxInt64}, {math.MinInt64, 1, math.MinInt64}} {
		if got := money.Amount(c.sum).Per(c.n); got != money.Amount(c.want) {
			t.Errorf("%d for each of %d is %d, want %d", c.sum, c.n, got, c.want)
		}
	}
}
