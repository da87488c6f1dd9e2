package console

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// templateFields are the names of everything typed about a template.
func templateFields() []string {
	return []string{"name", "shop_number", "description", "claim_url", "kind", "amount_off", "threshold", "percent_off", "max_off",
		"currency", "target", "product", "opens_at", "opens_at_fold", "closes_at", "closes_at_fold", "validity", "valid_hours",
		"valid_until", "valid_until_fold", "stock", "per_user_limit", "obtain", "claim_mode", "notify_days", "notify_channels"}
}

// typedValues returns what was typed, nothing added or lost.
func typedValues(r *http.Request) map[string]string {
	v := map[string]string{}
	for _, name := range templateFields() {
		v[name] = r.PostFormValue(name)
	}
	v["notify_channels"] = strings.Join(r.PostForm["notify_channels"], ", ") // a box each
	v["currency"] = strings.ToUpper(strings.TrimSpace(v["currency"]))
	// Browsers send line ends as CR LF; stored text has LF.
	v["description"] = strings.ReplaceAll(v["description"], "\r\n", "\n")
	return v
}

// blankValues are what a new form begins with.
func blankValues(shops []template.Shop) map[string]string {
	v := map[string]string{"kind": string(template.AmountOff), "currency": "CNY", "target": string(template.WholeShop), "validity": "hours",
		"valid_hours": "72", "per_user_limit": "1", "obtain": string(template.ByClaim), "claim_mode": string(template.Durable),
		"notify_channels": delivery.App.String()}
	if len(shops) > 0 {
		v["shop_number"] = strconv.FormatInt(shops[0].Number, 10)
	}
	return v
}

// valuesOf writes a stored spec as it would be typed.
func valuesOf(t template.Template) map[string]string {
	zone := t.Zone()
	amount := func(a money.Amount) string {
		if a == 0 {
			return ""
		}
		text := a.Decimal(t.Currency)
		if strings.Contains(text, ".") {
			text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	v := map[string]string{"name": t.Name, "shop_number": strconv.FormatInt(t.ShopNumber, 10), "description": t.Description, "claim_url": t.ClaimURL,
		"kind": string(t.Kind), "amount_off": amount(t.AmountOff), "threshold": amount(t.Threshold), "percent_off": number(t.PercentOff),
		"max_off": amount(t.MaxOff), "currency": t.Currency, "target": string(t.Target), "product": t.Product, "validity": "hours",
		"valid_hours": number(t.ValidHours), "stock": strconv.FormatInt(t.Stock, 10), "per_user_limit": strconv.Itoa(t.PerUserLimit),
		"obtain": string(t.Obtain), "claim_mode": string(t.ClaimMode), "valid_until": "", "valid_until_fold": "",
		"notify_days": t.NotifyDays.String(), "notify_channels": strings.Join(template.ChannelNames(t.NotifyOver), ", ")}
	if t.NotifyDays == 0 {
		v["notify_channels"] = delivery.App.String() // what notices begin with
	}
	v["opens_at"], v["opens_at_fold"] = typedTime(t.OpensAt, zone)
	v["closes_at"], v["closes_at_fold"] = typedTime(t.ClosesAt, zone)
	if t.ValidUntil != nil {
		v["validity"] = "until"
		v["valid_until"], v["valid_until_fold"] = typedTime(*t.ValidUntil, zone)
	}
	return v
}

// A reading turns typed values into a spec and collects what cannot be read.
type reading struct {
	values map[string]string
	zone   *time.Location
	broken fault.Fields
}

// readSpec returns the spec that was typed and every field that breaks a
// rule, those of reading first.
func readSpec(values map[string]string, shops []template.Shop, fallback *time.Location) (template.Spec, []fault.Field) {
	rd := &reading{values: values, zone: fallback}
	s := template.Spec{Name: strings.TrimSpace(values["name"]), Description: values["description"], ClaimURL: strings.TrimSpace(values["claim_url"]),
		Kind: template.Kind(values["kind"]), Currency: values["currency"], Target: template.Target(values["target"]),
		Obtain: template.Obtain(values["obtain"]), ClaimMode: template.ClaimMode(values["claim_mode"])}
	s.ShopNumber = rd.shop(shops)
	rd.discount(&s)
	if s.Target == template.Product {
		s.Product = strings.TrimSpace(values["product"])
	}
	s.Stock, s.PerUserLimit = rd.number("stock"), int(rd.number("per_user_limit"))
	s.OpensAt, s.ClosesAt = rd.when("opens_at"), rd.when("closes_at")
	if values["validity"] == "until" {
		if until := rd.when("valid_until"); !until.IsZero() {
			s.ValidUntil = &until
		}
	} else {
		s.ValidHours = int(rd.number("valid_hours"))
	}
	s = s.WithNotices(template.ParseNoticeDays(values["notify_days"]), template.ParseChannels(values["notify_channels"]))
	return s, rd.all(s)
}

// discount reads the amounts that belong to the kind; the others may still
// hold what was typed before the kind was changed.
func (rd *reading) discount(s *template.Spec) {
	switch s.Kind {
	case template.AmountOff:
		s.AmountOff = rd.amount("amount_off", s.Currency)
	case template.ThresholdOff:
		s.AmountOff, s.Threshold = rd.amount("amount_off", s.Currency), rd.amount("threshold", s.Currency)
	case template.PercentOff:
		s.PercentOff, s.MaxOff = int(rd.number("percent_off")), rd.amount("max_off", s.Currency)
		if strings.TrimSpace(rd.values["threshold"]) != "" {
			s.Threshold = rd.amount("threshold", s.Currency)
		}
	}
}

// all joins what could not be read with what the spec's own rules say; a
// field is named once.
func (rd *reading) all(s template.Spec) []fault.Field {
	list := slices.Clone(rd.broken.List)
	named := func(name string) bool {
		return slices.ContainsFunc(list, func(f fault.Field) bool { return f.Name == name })
	}
	for _, f := range fieldsOf(s.Check()) {
		if f.Name == "valid_hours" && rd.values["validity"] == "until" {
			f.Name = "valid_until"
		}
		if !named(f.Name) {
			list = append(list, f)
		}
	}
	return list
}

func (rd *reading) shop(shops []template.Shop) int64 {
	n, _ := strconv.ParseInt(rd.values["shop_number"], 10, 64)
	for _, s := range shops {
		if s.Number != n {
			continue
		}
		if zone, err := time.LoadLocation(s.Timezone); err == nil {
			rd.zone = zone
		}
		return n
	}
	breaks(&rd.broken, "shop_number", "rule.unknown_shop")
	return n
}

// narrow writes what stands in full width, as Chinese and Japanese keyboards
// make digits and their signs, the way numbers are read.
func narrow(text string) string {
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

// Thousands may be set off, in groups of three: a comma elsewhere is somebody's
// decimal point, and without it ten times as much.
var (
	wholeForm  = regexp.MustCompile(`^-?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)$`)
	amountForm = regexp.MustCompile(`^([0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:\.([0-9]+))?$`)
)

// amount reads major units, such as "12.50", into minor ones.
func (rd *reading) amount(name, currency string) money.Amount {
	text := strings.TrimSpace(narrow(rd.values[name]))
	if text == "" {
		breaks(&rd.broken, name, "rule.required")
		return 0
	}
	digits := money.Exponent(currency)
	m := amountForm.FindStringSubmatch(text)
	switch {
	case m == nil && strings.Contains(text, ","):
		breaks(&rd.broken, name, "rule.amount_comma")
		return 0
	case m == nil || len(m[2]) > digits:
		rd.broken.Add(name, "rule.amount_format", "must be a number with at most %d decimals", digits)
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", "")+m[2]+strings.Repeat("0", digits-len(m[2])), 10, 64)
	if err != nil {
		return template.MaxAmount + 1 // twelve digits and three decimals fit; anything else is too much
	}
	return money.Amount(n)
}

// number reads a whole number. One that is too large for anything comes back
// as large as that: the rule of the field then names its bounds.
func (rd *reading) number(name string) int64 {
	text := strings.TrimSpace(narrow(rd.values[name]))
	if text == "" {
		breaks(&rd.broken, name, "rule.required")
		return 0
	}
	if strings.Contains(text, ",") && !wholeForm.MatchString(text) {
		breaks(&rd.broken, name, "rule.number_comma")
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		breaks(&rd.broken, name, "rule.number")
		return 0
	}
	return n
}

func (rd *reading) when(name string) time.Time {
	text := strings.TrimSpace(rd.values[name])
	if text == "" {
		breaks(&rd.broken, name, "rule.required")
		return time.Time{}
	}
	at, broken := instant(text, rd.values[name+"_fold"], rd.zone)
	if broken != "" {
		breaks(&rd.broken, name, broken)
	} else if rd.values[name+"_fold"] != "" {
		// The choice may be a leftover of another time.
		_, rd.values[name+"_fold"] = typedTime(at, rd.zone)
	}
	return at.UTC()
}

func fieldsOf(err error) []fault.Field {
	if f, ok := err.(*fault.Fields); ok {
		return f.List
	}
	return nil
}

// pathID reads the decimal id in the address; anything else is no page.
func pathID(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || n <= 0 || fmt.Sprint(n) != r.PathValue("id") {
		return 0, errNoPage
	}
	return n, nil
}
