// Package money holds amounts in minor units of a currency.
package money

import (
	"fmt"
	"regexp"
	"strconv"
)

// Amount is a number of minor units (cents, fen).
type Amount int64

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// CurrencyForm reports whether code has the form of an ISO 4217 code. It accepts
// the code of a currency that is no longer active, as an old coupon may have.
func CurrencyForm(code string) bool { return currencyCode.MatchString(code) }

// Exponent returns the number of decimal digits of a currency's minor unit (ISO
// 4217: most have two, a few none, a few three, two funds four).
func Exponent(code string) int {
	switch code {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}

// Unit returns how many minor units a unit of the currency has.
func Unit(currency string) int64 {
	unit := int64(1)
	for range Exponent(currency) {
		unit *= 10
	}
	return unit
}

// Per returns the average of the amount over n, halves rounded away from zero; 0 if n is not positive.
func (a Amount) Per(n int64) Amount {
	if n <= 0 {
		return 0
	}
	each, left := a/Amount(n), a%Amount(n)
	switch half := Amount(n - n/2); {
	case left >= half:
		each++
	case left <= -half:
		each--
	}
	return each
}

// Decimal returns the amount as a plain decimal number of major units, such as "12.50".
func (a Amount) Decimal(currency string) string {
	e := Exponent(currency)
	if e == 0 {
		return strconv.FormatInt(int64(a), 10)
	}
	unit := uint64(Unit(currency))
	sign, v := "", uint64(a)
	if a < 0 { // unsigned: the least amount has no positive counterpart
		sign, v = "-", -v
	}
	return fmt.Sprintf("%s%d.%0*d", sign, v/unit, e, v%unit)
}
