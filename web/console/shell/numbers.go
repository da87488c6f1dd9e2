package shell

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// A Reading turns typed values into a spec and collects the values that cannot be read.
type Reading struct {
	Values map[string]string
	Zone   *time.Location
	Broken fault.Fields
}

// Shop reads the number of a shop, which must be one of shops. Times read afterwards are in its
// zone.
func (rd *Reading) Shop(shops []template.Shop) int64 {
	n, _ := strconv.ParseInt(rd.Values["shop_number"], 10, 64)
	for _, s := range shops {
		if s.Number != n {
			continue
		}
		if zone, err := time.LoadLocation(s.Timezone); err == nil {
			rd.Zone = zone
		}
		return n
	}
	breaks(&rd.Broken, "shop_number", "rule.unknown_shop")
	return n
}

// Narrow converts full-width characters, which Chinese and Japanese keyboards produce for digits
// and signs, to ASCII.
func Narrow(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～':
			return r - '！' + '!'
		case r == '\u3000': // the space as wide as a character
			return ' '
		}
		return r
	}, text)
}

// Thousands separators must form groups of three. A comma in another place is a decimal point, and
// ignoring it would make the number ten times as large.
var (
	wholeForm  = regexp.MustCompile(`^-?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)$`)
	amountForm = regexp.MustCompile(`^([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:\.([0-9]+))?$`)
)

// Amount reads major units, such as "12.50", and returns minor units.
func (rd *Reading) Amount(name, currency string) money.Amount {
	text := strings.TrimSpace(Narrow(rd.Values[name]))
	if text == "" {
		breaks(&rd.Broken, name, "rule.required_amount")
		return 0
	}
	digits := money.Exponent(currency)
	m := amountForm.FindStringSubmatch(text)
	switch {
	case m == nil && strings.Contains(text, ","):
		breaks(&rd.Broken, name, "rule.amount_comma")
		return 0
	case m == nil || len(m[2]) > digits:
		rd.Broken.Add(name, "rule.amount_format", "must be a number with at most %d decimals", digits)
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", "")+m[2]+strings.Repeat("0", digits-len(m[2])), 10, 64)
	if err != nil {
		return template.MaxAmount + 1 // twelve digits and three decimals fit; anything else is too much
	}
	return money.Amount(n)
}

// Number reads a whole number. A number above the range is returned as the largest value: the rule
// of the field then names its bounds.
func (rd *Reading) Number(name string) int64 {
	text := strings.TrimSpace(Narrow(rd.Values[name]))
	if text == "" {
		breaks(&rd.Broken, name, "rule.required_number")
		return 0
	}
	if strings.Contains(text, ",") && !wholeForm.MatchString(text) {
		breaks(&rd.Broken, name, "rule.number_comma")
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		breaks(&rd.Broken, name, "rule.number")
		return 0
	}
	return n
}

// FieldsOf returns the fields that err concerns, nil if it concerns no field.
func FieldsOf(err error) []fault.Field {
	if f, ok := err.(*fault.Fields); ok {
		return f.List
	}
	return nil
}

// PathID reads the decimal id in the address. Any other text is [ErrNoPage].
func PathID(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || n <= 0 || fmt.Sprint(n) != r.PathValue("id") {
		return 0, ErrNoPage
	}
	return n, nil
}

// Missing returns the fields of a form in which nothing was typed.
func Missing(r *http.Request, names ...string) (list []fault.Field) {
	for _, name := range names {
		if r.PostFormValue(name) == "" {
			list = append(list, fault.Field{Name: name, Key: "rule.required", Message: "is required"})
		}
	}
	return list
}

// When reads a local time. The field name_fold selects the instant if the local time occurs twice.
func (rd *Reading) When(name string) time.Time {
	text := strings.TrimSpace(rd.Values[name])
	if text == "" {
		breaks(&rd.Broken, name, "rule.required_time")
		return time.Time{}
	}
	at, broken := Instant(text, rd.Values[name+"_fold"], rd.Zone)
	if broken != "" {
		breaks(&rd.Broken, name, broken)
	} else if rd.Values[name+"_fold"] != "" {
		// The choice may be a leftover of another time.
		_, rd.Values[name+"_fold"] = TypedTime(at, rd.Zone)
	}
	return at.UTC()
}
