package delivery

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/money"
)

// micro is how many millionths a unit of a currency has.
const micro = 1_000_000

// SMSPrices is a list of prices of one part of a text message, by the first digits of the
// recipient's number. The zero value is no list.
type SMSPrices struct {
	// Currency is a code of ISO 4217; empty = there is no list.
	Currency string
	of       []smsPrice // the longest prefixes first
}

// smsPrice is the price of a part to numbers that begin with digits, in millionths of a currency
// unit. Empty digits match all numbers.
type smsPrice struct {
	digits string
	micros int64
}

// ParseSMSPrices reads a list such as "86=0.045 CNY,852=0.3 CNY,*=0.5 CNY". An entry has the
// first digits of numbers, without the +, and the price of one part; * matches all other numbers.
func ParseSMSPrices(s string) (p SMSPrices, err error) {
	for entry := range strings.SplitSeq(s, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		digits, price, _ := strings.Cut(entry, "=")
		amount, currency, _ := strings.Cut(strings.TrimSpace(price), " ")
		digits, currency = strings.TrimPrefix(strings.TrimSpace(digits), "+"), strings.TrimSpace(currency)
		micros, ok := ParseMicros(amount)
		switch {
		case digits != "*" && (digits == "" || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' || len(digits) > 15):
			return SMSPrices{}, errors.New("each price must begin with the first digits of numbers, such as 86=0.045 CNY, or with *")
		case !ok || !money.ValidCurrency(currency):
			return SMSPrices{}, fmt.Errorf("the price of %s must be an amount and a currency, such as 0.045 CNY", digits)
		case p.Currency != "" && p.Currency != currency:
			return SMSPrices{}, errors.New("all prices must be in the same currency")
		}
		digits = strings.Trim(digits, "*")
		if slices.ContainsFunc(p.of, func(o smsPrice) bool { return o.digits == digits }) {
			return SMSPrices{}, errors.New("the digits of numbers must be named once")
		}
		p.Currency, p.of = currency, append(p.of, smsPrice{digits, micros})
	}
	slices.SortStableFunc(p.of, func(a, b smsPrice) int { return len(b.digits) - len(a.digits) })
	return p, nil
}

// ParseMicros reads a plain decimal number of units, such as 0.045, as millionths. It returns
// false if s is no such number, or has more than six decimals or more than nine digits before the
// decimal point.
func ParseMicros(s string) (int64, bool) {
	whole, rest, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > 9 || len(rest) > 6 || strings.HasSuffix(s, ".") || strings.Trim(whole+rest, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+rest+strings.Repeat("0", 6-len(rest)), 10, 64)
	return n, err == nil
}

// Empty reports whether there is no price list.
func (p SMSPrices) Empty() bool { return p.Currency == "" }

// Of returns the price of a part to a number in E.164, in millionths of a unit of the currency.
// known is false if the list has no price for the number.
func (p SMSPrices) Of(number string) (micros int64, known bool) {
	digits := strings.TrimPrefix(number, "+")
	for _, o := range p.of {
		if strings.HasPrefix(digits, o.digits) {
			return o.micros, true
		}
	}
	return 0, false
}

// AtMost returns [SMSPrices.Of], or for a number without a price the highest price of the list,
// so that no more money is spent than is counted.
func (p SMSPrices) AtMost(number string) int64 {
	if micros, known := p.Of(number); known {
		return micros
	}
	var highest int64
	for _, o := range p.of {
		highest = max(highest, o.micros)
	}
	return highest
}

// SMSCost is what text messages cost by the price list, in one currency.
type SMSCost struct {
	Currency string // empty = there was no price list
	Parts    int64
	Micros   int64 // millionths of a unit of Currency
}

// Amount returns the cost in minor units of its currency, rounded up.
func (c SMSCost) Amount() money.Amount { return AmountOf(c.Micros, c.Currency) }

// SMSCosts are the costs of text messages by currency, in the order of the currencies' codes.
// Currencies are never added.
type SMSCosts []SMSCost

// Parts returns the number of parts in all currencies.
func (l SMSCosts) Parts() (n int64) {
	for _, c := range l {
		n += c.Parts
	}
	return n
}

// Plus returns the costs of both.
func (l SMSCosts) Plus(other SMSCosts) SMSCosts {
	sum := slices.Clone(l)
	for _, c := range other {
		i, found := slices.BinarySearchFunc(sum, c, func(a, b SMSCost) int { return strings.Compare(a.Currency, b.Currency) })
		if !found {
			sum = slices.Insert(sum, i, c)
			continue
		}
		sum[i].Parts, sum[i].Micros = sum[i].Parts+c.Parts, sum[i].Micros+c.Micros
	}
	return sum
}

// Priced returns the costs that have a currency.
func (l SMSCosts) Priced() SMSCosts {
	return slices.DeleteFunc(slices.Clone(l), func(c SMSCost) bool { return c.Currency == "" })
}

// In returns the amount in one currency, and whether all parts were paid in it.
func (l SMSCosts) In(currency string) (amount money.Amount, all bool) {
	all = len(l) > 0
	for _, c := range l {
		if c.Currency == currency {
			amount = c.Amount()
		} else {
			all = false
		}
	}
	return amount, all
}

// AmountOf rounds millionths of a unit up to minor units of the currency.
func AmountOf(micros int64, currency string) money.Amount {
	unit := int64(micro)
	for range money.Exponent(currency) {
		unit /= 10
	}
	if micros > math.MaxInt64-unit {
		micros = math.MaxInt64 - unit
	}
	return money.Amount((micros + unit - 1) / unit)
}
