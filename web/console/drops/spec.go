package drops

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// templateFields are the names of everything typed about a template.
func templateFields() []string {
	return []string{"name", "shop_number", "description", "claim_url", "kind", "amount_off", "threshold", "percent_off", "max_off",
		"currency", "target", "product", "opens_at", "opens_at_fold", "closes_at", "closes_at_fold", "validity", "valid_hours",
		"valid_until", "valid_until_fold", "stock", "per_user_limit", "obtain", "claim_mode", "notify_days", "notify_channels",
		"message_own", "message_language", "message_title", "message_text"}
}

// typedValues returns the typed values unchanged.
func typedValues(r *http.Request) map[string]string {
	v := map[string]string{}
	for _, name := range templateFields() {
		v[name] = r.PostFormValue(name)
	}
	v["notify_channels"] = strings.Join(r.PostForm["notify_channels"], ", ") // a box each
	if v["message_own"] != "own" {                                           // the shop's texts: typed texts of the drop are ignored
		v["message_own"], v["message_language"], v["message_title"], v["message_text"] = "", "", "", ""
	}
	v["currency"] = strings.ToUpper(strings.TrimSpace(v["currency"]))
	// Browsers send line ends as CR LF; stored text has LF.
	v["description"] = strings.ReplaceAll(v["description"], "\r\n", "\n")
	return v
}

// blankValues returns the initial values of a new form.
func blankValues(shops []template.Shop) map[string]string {
	v := map[string]string{"kind": string(template.AmountOff), "currency": "CNY", "target": string(template.WholeShop), "validity": "hours",
		"valid_hours": "72", "per_user_limit": "1", "obtain": string(template.ByClaim), "claim_mode": string(template.Durable),
		"notify_channels": delivery.App.String()}
	if len(shops) > 0 {
		v["shop_number"] = strconv.FormatInt(shops[0].Number, 10)
	}
	return v
}

// valuesOf returns a stored spec as the form's values.
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
		v["notify_channels"] = delivery.App.String() // the default of notices
	}
	v["opens_at"], v["opens_at_fold"] = shell.TypedTime(t.OpensAt, zone)
	v["closes_at"], v["closes_at_fold"] = shell.TypedTime(t.ClosesAt, zone)
	if t.ValidUntil != nil {
		v["validity"] = "until"
		v["valid_until"], v["valid_until_fold"] = shell.TypedTime(*t.ValidUntil, zone)
	}
	return v
}

// readSpec returns the typed spec and every field that breaks a rule, unreadable fields first.
func readSpec(values map[string]string, shops []template.Shop, fallback *time.Location) (template.Spec, []fault.Field) {
	rd := &shell.Reading{Values: values, Zone: fallback}
	s := template.Spec{Name: strings.TrimSpace(values["name"]), Description: values["description"], ClaimURL: strings.TrimSpace(values["claim_url"]),
		Kind: template.Kind(values["kind"]), Currency: values["currency"], Target: template.Target(values["target"]),
		Obtain: template.Obtain(values["obtain"]), ClaimMode: template.ClaimMode(values["claim_mode"])}
	s.ShopNumber = rd.Shop(shops)
	readDiscount(rd, &s)
	if s.Target == template.Product {
		s.Product = strings.TrimSpace(values["product"])
	}
	s.Stock, s.PerUserLimit = rd.Number("stock"), int(rd.Number("per_user_limit"))
	s.OpensAt, s.ClosesAt = rd.When("opens_at"), rd.When("closes_at")
	if values["validity"] == "until" {
		if until := rd.When("valid_until"); !until.IsZero() {
			s.ValidUntil = &until
		}
	} else {
		s.ValidHours = int(rd.Number("valid_hours"))
	}
	s = s.WithNotices(template.ParseNoticeDays(values["notify_days"]), template.ParseChannels(values["notify_channels"]))
	return s, brokenRules(rd, s)
}

// readDiscount reads the amounts that belong to the kind. Other amounts may still hold text that
// was typed before the kind was changed.
func readDiscount(rd *shell.Reading, s *template.Spec) {
	switch s.Kind {
	case template.AmountOff:
		s.AmountOff = rd.Amount("amount_off", s.Currency)
	case template.ThresholdOff:
		s.AmountOff, s.Threshold = rd.Amount("amount_off", s.Currency), rd.Amount("threshold", s.Currency)
	case template.PercentOff:
		s.PercentOff, s.MaxOff = int(rd.Number("percent_off")), rd.Amount("max_off", s.Currency)
		if strings.TrimSpace(rd.Values["threshold"]) != "" {
			s.Threshold = rd.Amount("threshold", s.Currency)
		}
	}
}

// brokenRules joins the values that could not be read with the broken rules of the spec. A field is
// named once.
func brokenRules(rd *shell.Reading, s template.Spec) []fault.Field {
	list := slices.Clone(rd.Broken.List)
	named := func(name string) bool {
		return slices.ContainsFunc(list, func(f fault.Field) bool { return f.Name == name })
	}
	for _, f := range shell.FieldsOf(s.Check()) {
		if f.Name == "valid_hours" && rd.Values["validity"] == "until" {
			f.Name = "valid_until"
		}
		if !named(f.Name) {
			list = append(list, f)
		}
	}
	return list
}
