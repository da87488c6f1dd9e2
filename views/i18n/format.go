package i18n

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/currency"
	"golang.org/x/text/number"

	"dropbell/domain/figure"
	"dropbell/domain/money"
)

// Number writes n with the language's digit groups.
func (l *Locale) Number(n int64) string { return l.printer.Sprint(number.Decimal(n)) }

// Percent writes part of whole. A part above zero is never written as 0 %, and a part below the
// whole never as 100 %.
func (l *Locale) Percent(part, whole int64) string {
	if whole <= 0 {
		return l.printer.Sprint(number.Percent(0))
	}
	share := float64(part) / float64(whole)
	switch {
	case part > 0 && share < 0.001:
		return "<" + l.printer.Sprint(number.Percent(0.001, number.MaxFractionDigits(1)))
	case part < whole && share > 0.999:
		return ">" + l.printer.Sprint(number.Percent(0.999, number.MaxFractionDigits(1)))
	}
	return l.printer.Sprint(number.Percent(share, number.MaxFractionDigits(1)))
}

// Thousandths writes a share in percent, with a decimal if it is not zero.
func (l *Locale) Thousandths(share int64) string {
	return l.printer.Sprint(number.Percent(float64(share)/figure.Whole, number.MaxFractionDigits(1)))
}

// Share writes a rate between 0 and 1 in percent. Rates below 1 % have two decimals, so that they
// can be told apart.
func (l *Locale) Share(rate float64) string {
	digits := 1
	if rate < 0.01 {
		digits = 2
	}
	return l.printer.Sprint(number.Percent(rate, number.MaxFractionDigits(digits)))
}

// Points writes the difference between two rates in percentage points with its sign.
func (l *Locale) Points(difference float64) string {
	sign, digits := "+", 1
	if difference < 0 {
		sign, difference = "−", -difference
	}
	if difference < 0.01 {
		digits = 2
	}
	text := l.printer.Sprint(number.Decimal(100*difference, number.MaxFractionDigits(digits)))
	if text == "0" {
		return text
	}
	return sign + text
}

// Compact writes n in at most five characters or so, for tight places.
func (l *Locale) Compact(n int64) string {
	for _, u := range l.times.units {
		if n >= max(u.size, 10_000) {
			v := float64(n) / float64(u.size)
			digits := 1
			if v >= 100 {
				digits = 0
			}
			// Rounding down: 9,999 is not 10k.
			scale := 1.0
			if digits == 1 {
				scale = 10
			}
			v = float64(int64(v*scale)) / scale
			return l.printer.Sprint(number.Decimal(v, number.MaxFractionDigits(digits))) + u.name
		}
	}
	return l.Number(n)
}

// Money writes an amount with its currency's symbol. It omits the decimals if they are zero in the
// amount and in all others, the amounts of the same column or row of tiles. ¥ always means CNY.
func (l *Locale) Money(a money.Amount, code string, others ...money.Amount) string {
	whole, rest, _ := strings.Cut(a.Decimal(code), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	var n int64
	_, _ = fmt.Sscan(whole, &n) // digits by construction
	text := l.Number(n)
	broken := func(o money.Amount) bool {
		_, cents, _ := strings.Cut(o.Decimal(code), ".")
		return strings.Trim(cents, "0") != ""
	}
	if broken(a) || slices.ContainsFunc(others, broken) {
		text += "." + rest
	}
	unit, err := currency.ParseISO(code)
	if err != nil {
		return sign + code + " " + text
	}
	symbol := strings.ReplaceAll(l.printer.Sprint(currency.Symbol(unit)), "￥", "¥")
	switch code {
	case "CNY":
		symbol = "¥"
	case "JPY":
		symbol = "JP¥"
	}
	if len(symbol) > 2 && symbol == code {
		symbol += " "
	}
	return sign + symbol + text
}

// roundFrom is from how many units of its currency on a sum is written in whole units.
const roundFrom = 1000

// Sum writes the sum or the average of the amounts of many orders: from 1,000 units of the currency on in whole units, rounded,
// and otherwise with decimals.
func (l *Locale) Sum(a money.Amount, code string) string {
	unit := money.Amount(money.Unit(code))
	switch {
	case a == 0:
		return l.Money(a, code)
	case max(a, -a) < roundFrom*unit:
		const decimals = 1 // an amount that has some, so that both have them
		return l.Money(a, code, decimals)
	case a < 0:
		return l.Money((a-unit/2)/unit*unit, code)
	}
	return l.Money((a+unit/2)/unit*unit, code)
}

// DateTime writes an instant as seen in zone; seconds only where there are any.
func (l *Locale) DateTime(t time.Time, zone *time.Location) string {
	return l.Date(t, zone) + l.times.join + l.Clock(t, zone)
}

// Near writes an instant as [Locale.DateTime] does, but without weekday and year if it is less than half a year from now.
func (l *Locale) Near(t, now time.Time, zone *time.Location) string {
	if t.Sub(now).Abs() > 180*24*time.Hour {
		return l.DateTime(t, zone)
	}
	return l.Day(t, zone) + l.times.join + l.Clock(t, zone)
}

// Date writes the day, with the weekday.
func (l *Locale) Date(t time.Time, zone *time.Location) string { return l.times.date(t.In(zone)) }

// Day writes the day in short, without the year.
func (l *Locale) Day(t time.Time, zone *time.Location) string { return l.times.day(t.In(zone)) }

// Month writes the month with its year, such as "November 2026".
func (l *Locale) Month(t time.Time) string { return l.times.month(t) }

// Weekday writes a day of the week in short and in full.
func (l *Locale) Weekday(d time.Weekday) (short, long string) { return l.times.weekday(d) }

// FirstWeekday is the first day of the week where the language is spoken. By CLDR's supplemental
// data it is Sunday for English, whose likely region is the United States, and Monday for Chinese
// in China.
func (l *Locale) FirstWeekday() time.Weekday { return l.times.first }

// Clock writes the time of day; seconds only where there are any.
func (l *Locale) Clock(t time.Time, zone *time.Location) string {
	t = t.In(zone)
	if t.Second() != 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04")
}

// Duration writes d in its two largest units, such as "3 h 12 min".
func (l *Locale) Duration(d time.Duration) string {
	d = d.Abs()
	days, hours, minutes, seconds := int64(d/(24*time.Hour)), int64(d/time.Hour)%24, int64(d/time.Minute)%60, int64(d/time.Second)%60
	switch {
	case days >= 2 || days == 1 && hours == 0:
		return l.N("duration.days", days)
	case days == 1:
		return l.N("duration.days", days) + " " + l.T("duration.hours", hours)
	case hours > 0 && minutes == 0:
		return l.T("duration.hours", hours)
	case hours > 0:
		return l.T("duration.hours", hours) + " " + l.T("duration.minutes", minutes)
	case minutes >= 10 || minutes > 0 && seconds == 0:
		return l.T("duration.minutes", minutes)
	case minutes > 0:
		return l.T("duration.minutes", minutes) + " " + l.T("duration.seconds", seconds)
	}
	return l.T("duration.seconds", seconds)
}

// Ago writes the time between t and now: in one unit for the past, in two units for the future.
func (l *Locale) Ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d.Abs() < 5*time.Second, d > 0 && d < time.Minute:
		return l.T("duration.now")
	case d < 0:
		return l.T("duration.in", l.Duration(d))
	case d >= 24*time.Hour:
		d = d.Truncate(24 * time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Minute:
		d = d.Truncate(time.Minute)
	}
	return l.T("duration.ago", l.Duration(d))
}

// timeLayout is how a language writes days.
type timeLayout struct {
	date, day func(time.Time) string
	month     func(time.Time) string
	weekday   func(time.Weekday) (short, long string)
	first     time.Weekday
	join      string
	units     []unit // largest first
}

type unit struct {
	size int64
	name string
}

func englishTimes() timeLayout {
	return timeLayout{
		date:    func(t time.Time) string { return t.Format("Mon 2 Jan 2006") },
		day:     func(t time.Time) string { return t.Format("2 Jan") },
		month:   func(t time.Time) string { return t.Format("January 2006") },
		weekday: func(d time.Weekday) (short, long string) { return d.String()[:3], d.String() },
		first:   time.Sunday,
		join:    ", ",
		units:   []unit{{1_000_000_000, "B"}, {1_000_000, "M"}, {1_000, "k"}},
	}
}

// chineseTimes counts in ten thousands (万).
func chineseTimes() timeLayout {
	weekday := func(d time.Weekday) (short, long string) {
		name := string([]rune("日一二三四五六")[d])
		return "周" + name, "星期" + name
	}
	short := func(t time.Time) string {
		name, _ := weekday(t.Weekday())
		return name
	}
	return timeLayout{
		date:    func(t time.Time) string { return t.Format("2006年1月2日") + " " + short(t) },
		day:     func(t time.Time) string { return t.Format("1月2日") },
		month:   func(t time.Time) string { return t.Format("2006年1月") },
		weekday: weekday,
		first:   time.Monday,
		join:    " ",
		units:   []unit{{100_000_000, "亿"}, {10_000, "万"}},
	}
}
