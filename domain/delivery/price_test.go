package delivery

import (
	"slices"
	"testing"
)

func TestSMSPrices(t *testing.T) {
	p, err := ParseSMSPrices(" 86=0.045 CNY, 852=0.3 CNY,1=0.0079 CNY,1212=12 CNY,+44=1.5 CNY,")
	if err != nil || p.Currency != "CNY" || p.Empty() {
		t.Fatalf("%+v %v", p, err)
	}
	for number, want := range map[string]int64{"+8613800138000": 45_000, "+85291234567": 300_000, "+14155552671": 7_900, "+12125552671": 12_000_000, "+447911123456": 1_500_000, "+4915112345678": -1, "": -1} {
		micros, known := p.Of(number)
		if !known {
			micros = -1
		}
		if micros != want {
			t.Errorf("%s: %d, want %d", number, micros, want)
		}
		if most := p.AtMost(number); want >= 0 && most != want || want < 0 && most != 12_000_000 {
			t.Errorf("%s: at most %d", number, most)
		}
	}
	all, err := ParseSMSPrices("86=0.045 CNY,*=0.5 CNY")
	if micros, known := all.Of("+4915112345678"); err != nil || !known || micros != 500_000 {
		t.Errorf("the price of all others: %d %v %v", micros, known, err)
	}
	if none, err := ParseSMSPrices(" "); err != nil || !none.Empty() || none.AtMost("+8613800138000") != 0 {
		t.Errorf("no list: %+v %v", none, err)
	}
	for _, wrong := range []string{"86", "86=", "86=0.045", "86=CNY", "86=0.045 XXX", "86=0.045 cny", "CN=0.045 CNY", "=1 CNY", "086=1 CNY", "86=1 CNY,852=1 HKD", "86=1 CNY,+86=2 CNY",
		"*=1 CNY,*=2 CNY", "86=-1 CNY", "86=1e3 CNY", "86=0.0000001 CNY", "86=1. CNY", "86=1000000000000 CNY", "1234567890123456=1 CNY", "8*6=1 CNY"} {
		if p, err := ParseSMSPrices(wrong); err == nil {
			t.Errorf("%q is taken as %+v", wrong, p)
		}
	}
	for _, c := range []struct {
		micros   int64
		currency string
		want     string
	}{{0, "CNY", "0.00"}, {1, "CNY", "0.01"}, {10_000, "CNY", "0.01"}, {10_001, "CNY", "0.02"}, {1_000_001, "JPY", "2"}, {1_500, "KWD", "0.002"}} {
		if got := AmountOf(c.micros, c.currency).Decimal(c.currency); got != c.want {
			t.Errorf("%d of %s: %s, want %s", c.micros, c.currency, got, c.want)
		}
	}
}

func TestCostsOfTwoDatabases(t *testing.T) {
	a := SMSCosts{{Currency: "CNY", Parts: 2, Micros: 20}, {Currency: "USD", Parts: 1, Micros: 5}}
	b := SMSCosts{{Currency: "", Parts: 7}, {Currency: "USD", Parts: 3, Micros: 4}}
	want := SMSCosts{{Currency: "", Parts: 7}, {Currency: "CNY", Parts: 2, Micros: 20}, {Currency: "USD", Parts: 4, Micros: 9}}
	if got := a.Plus(b); !slices.Equal(got, want) || a[1].Parts != 1 {
		t.Errorf("%v", got)
	}
}
