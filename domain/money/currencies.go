package money

import "strings"

// currencies are the active codes of ISO 4217, list one of the maintenance agency
// (SIX), as of January 2026. Funds are included; metals, bonds, tests and "no
// currency" are not, since nothing is priced in them.
const currencies = " AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD" +
	" CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD" +
	" GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD" +
	" LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR" +
	" PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD" +
	" TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG "

// Currencies are the active codes of ISO 4217, in the order of the alphabet.
func Currencies() []string { return strings.Fields(currencies) }

// ValidCurrency reports whether code is an active currency of ISO 4217.
func ValidCurrency(code string) bool {
	return CurrencyForm(code) && strings.Contains(currencies, " "+code+" ")
}
