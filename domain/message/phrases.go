package message

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"dropbell/domain/money"
	"dropbell/domain/wording"
)

// Worth is the value of a coupon, in minor units of Currency. The zero value is an unknown value.
type Worth struct {
	// Percent off, up to Most; 0 = an amount.
	Percent   int
	Amount    money.Amount
	Most      money.Amount
	Threshold money.Amount // of the order, from which on it is good; 0 = any order
	Currency  string
}

// phrases are the words of one language that values are made of.
type phrases struct {
	when    func(t time.Time) string
	time    func(t time.Time) string
	listed  func(t time.Time) string // in a list, without year and zone
	in      func(minutes int) string
	expires func(days int) string
	worth   func(w Worth) string
	unnamed string // a drop without a name
}

// phrasesFor returns the phrases of a text's language. A language without phrases gets numbers,
// such as 2026-11-20 20:00 and 10 min.
func phrasesFor(tag string) phrases {
	base, _ := language.Make(tag).Base()
	switch base.String() {
	case "en":
		return english
	case "zh":
		return chinese
	}
	return neutral
}

var english = phrases{
	unnamed: "Coupon",
	when: func(t time.Time) string {
		return t.Format("Monday, 2 January 2006") + " at " + clock(t) + " " + zone(t, "en")
	},
	time:   func(t time.Time) string { return clock(t) + " " + zone(t, "en") },
	listed: func(t time.Time) string { return t.Format("Mon 2 Jan, ") + clock(t) },
	in: func(minutes int) string {
		switch minutes {
		case 0:
			return "soon"
		case 1:
			return "in one minute"
		}
		return fmt.Sprintf("in %d minutes", minutes)
	},
	expires: func(days int) string {
		switch days {
		case 0:
			return "today"
		case 1:
			return "tomorrow"
		}
		return fmt.Sprintf("in %d days", days)
	},
	worth: func(w Worth) string {
		from := ""
		if w.Threshold > 0 {
			from = " from " + price(w.Threshold, w.Currency)
		}
		if w.Percent == 0 {
			return price(w.Amount, w.Currency) + " off" + from
		}
		text := strconv.Itoa(w.Percent) + "% off"
		if w.Most > 0 {
			text += ", at most " + price(w.Most, w.Currency)
		}
		if from != "" {
			text += "," + from
		}
		return text
	},
}

var chinese = phrases{
	unnamed: "优惠券",
	when: func(t time.Time) string {
		weekday := string([]rune("日一二三四五六")[t.Weekday()])
		return t.Format("2006年1月2日") + "（星期" + weekday + "）" + clock(t) + "（" + besideText.Replace(zone(t, "zh")) + "）"
	},
	time: func(t time.Time) string { return clock(t) + "（" + besideText.Replace(zone(t, "zh")) + "）" },
	listed: func(t time.Time) string {
		return t.Format("1月2日") + "（周" + string([]rune("日一二三四五六")[t.Weekday()]) + "）" + clock(t)
	},
	in: func(minutes int) string {
		if minutes == 0 {
			return "即将"
		}
		return fmt.Sprintf("%d 分钟后", minutes)
	},
	expires: func(days int) string {
		switch days {
		case 0:
			return "今天"
		case 1:
			return "明天"
		}
		return fmt.Sprintf("%d 天后", days)
	},
	worth: func(w Worth) string {
		if w.Percent == 0 {
			if w.Threshold > 0 {
				return "满 " + price(w.Threshold, w.Currency) + " 减 " + price(w.Amount, w.Currency)
			}
			return "立减 " + price(w.Amount, w.Currency)
		}
		text := strconv.FormatFloat(float64(100-w.Percent)/10, 'f', -1, 64) + " 折"
		if w.Percent == 100 {
			text = "免单"
		}
		if w.Most > 0 {
			text += "，最高减 " + price(w.Most, w.Currency)
		}
		if w.Threshold > 0 {
			text += "，满 " + price(w.Threshold, w.Currency) + " 可用"
		}
		return text
	},
}

var neutral = phrases{
	unnamed: "Coupon",
	when:    func(t time.Time) string { return t.Format("2006-01-02") + " " + clock(t) + " " + zone(t, "") },
	time:    func(t time.Time) string { return clock(t) + " " + zone(t, "") },
	listed:  func(t time.Time) string { return t.Format("2006-01-02 ") + clock(t) },
	in:      func(minutes int) string { return strconv.Itoa(minutes) + " min" },
	expires: func(days int) string { return strconv.Itoa(days) + " d" },
	worth: func(w Worth) string {
		text := "−" + price(w.Amount, w.Currency)
		if w.Percent > 0 {
			text = "−" + strconv.Itoa(w.Percent) + " %"
			if w.Most > 0 {
				text += " (≤ " + price(w.Most, w.Currency) + ")"
			}
		}
		if w.Threshold > 0 {
			text += ", ≥ " + price(w.Threshold, w.Currency)
		}
		return text
	},
}

// symbols are the signs of currencies that are known by them everywhere.
var symbols = map[string]string{"CNY": "¥", "JPY": "¥", "USD": "$", "EUR": "€", "GBP": "£", "INR": "₹", "KRW": "₩", "HKD": "HK$", "TWD": "NT$"}

// price writes an amount; a fraction only where there is one.
func price(a money.Amount, currency string) string {
	text := a.Decimal(currency)
	if whole, rest, ok := strings.Cut(text, "."); ok && strings.Trim(rest, "0") == "" {
		text = whole
	}
	if symbol := symbols[currency]; symbol != "" {
		return symbol + text
	}
	return text + " " + currency
}

// clock shows seconds only where there are any.
func clock(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04")
}

// besideText puts a zone's offset behind its name as Chinese texts in brackets have it.
var besideText = strings.NewReplacer(" (", "，", ")", "")

// zone names t's zone, with a minus sign that text messages have in one byte.
func zone(t time.Time, tag string) string {
	return strings.ReplaceAll(wording.Zone(t, tag), "−", "-")
}

// Values returns the variables of f for one reader. name is the reader's name and link the
// reader's link; drop is the name of the drop in the language of tag.
func (f Facts) Values(tag, drop string, zone *time.Location, name, link string) map[string]string {
	v := f.values(tag, drop, zone)
	v[VarUser], v[VarLink] = Printable(name), link
	return v
}

// values are the variables of f that all readers of a language and zone share.
func (f Facts) values(tag, drop string, zone *time.Location) map[string]string {
	p := phrasesFor(tag)
	if zone == nil {
		zone = time.UTC
	}
	if drop = Printable(drop); drop == "" && f.Kind != Campaign {
		drop = p.unnamed
	}
	v := map[string]string{VarDrop: drop, VarShop: Printable(f.Shop), VarDescription: printable(f.Description, maxDescription), VarWorth: "", VarOpensAt: "", VarTime: "", VarEndsAt: "", VarHours: "",
		VarIn: p.in(f.Minutes), VarMinutes: strconv.Itoa(f.Minutes), VarExpires: p.expires(f.Days), VarDays: strconv.Itoa(f.Days), VarCode: f.Code}
	if f.Hours > 0 {
		v[VarHours] = strconv.Itoa(f.Hours)
	}
	if f.Worth != (Worth{}) {
		v[VarWorth] = p.worth(f.Worth)
	}
	if !f.OpensAt.IsZero() {
		at := f.OpensAt.In(zone)
		v[VarOpensAt], v[VarTime] = p.when(at), p.time(at)
	}
	if !f.EndsAt.IsZero() {
		v[VarEndsAt] = p.when(f.EndsAt.In(zone))
	}
	return v
}

// An Opening is a drop in a list: when it opens, in the zone to be shown, and its name.
type Opening struct {
	At   time.Time
	Name string
}

// Agenda lists openings in the language of tag, a line each. A line with the zone follows the last
// opening, and each opening after which the offset changes.
func Agenda(tag string, list []Opening) string {
	var lines []string
	for i, o := range list {
		lines = append(lines, phrasesFor(tag).listed(o.At.Truncate(time.Minute))+" · "+o.Name)
		if named := zone(o.At, tag); i == len(list)-1 || named != zone(list[i+1].At, tag) {
			lines = append(lines, named)
		}
	}
	return strings.Join(lines, "\n")
}
