package drops

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// form has the fields of a template.
var form = shell.Form[template.Spec]{Fields: template.Fields, Texts: []shell.Text{
	shell.TextOf(template.NoticeDays.String, template.ParseNoticeDays),
	shell.TextOf(func(set delivery.ChannelSet) string { return strings.Join(template.ChannelNames(set), ", ") },
		func(typed string) delivery.ChannelSet { return template.ParseChannels(typed) }),
	shell.TextOf(template.Groups.String, template.ParseGroups),
}}

// besideSpec are the names of the fields that are typed about a template and are not in its spec.
var besideSpec = []string{"validity", "message_own", "message_language", "message_title", "message_text"}

// templateFields are the names of everything typed about a template.
func templateFields() []string {
	return append(form.Names(), besideSpec...)
}

// typedValues returns the typed values unchanged.
func typedValues(r *http.Request) map[string]string {
	v := form.Typed(r)
	for _, name := range besideSpec {
		v[name] = r.PostFormValue(name)
	}
	v["notify_channels"] = strings.Join(r.PostForm["notify_channels"], ", ") // a box each
	if v["message_own"] != "own" {                                           // the shop's texts: typed texts of the drop are ignored
		v["message_own"], v["message_language"], v["message_title"], v["message_text"] = "", "", "", ""
	}
	v["currency"] = strings.ToUpper(strings.TrimSpace(v["currency"]))
	return v
}

// blankValues returns the initial values of a new form.
func blankValues(shops []template.Shop) map[string]string {
	v := map[string]string{"kind": string(template.AmountOff), "currency": "CNY", "target": string(template.WholeShop), "validity": "hours",
		"valid_hours": "72", "per_user_limit": "1", "household_limit": "0", "obtain": string(template.ByClaim), "claim_mode": string(template.Durable), "hold_out_percent": "0", "waitlist": string(template.NoWaitlist),
		"accept_minutes": strconv.Itoa(template.DefaultAcceptMinutes), "use_within_hours": "0", "refund_to": string(template.RefundToHolder), "protection": string(template.Unprotected),
		"opening_mode": string(template.FirstCome), "entry_minutes": "0", "max_per_order": "1", "refund_rule": string(template.Keep),
		"notify_channels": delivery.App.String()}
	if len(shops) > 0 {
		v["shop_number"] = strconv.FormatInt(shops[0].Number, 10)
	}
	return v
}

// valuesOf returns a stored spec as the form's values.
func valuesOf(t template.Template) map[string]string {
	v := form.Values(t.Spec, t.Currency, t.Zone())
	v["validity"] = "hours"
	v["waitlist"] = cmp.Or(v["waitlist"], string(template.NoWaitlist)) // models from before there were waitlists
	v["refund_to"] = cmp.Or(v["refund_to"], string(template.RefundToHolder))
	v["refund_rule"] = cmp.Or(v["refund_rule"], string(template.Keep)) // models from before there were refund rules
	if v["max_per_order"] == "0" {
		v["max_per_order"] = "1"
	}
	if t.ValidUntil != nil {
		v["validity"] = "until"
	}
	if t.NotifyDays == 0 {
		v["notify_channels"] = delivery.App.String() // the default of notices
	}
	return v
}

// readSpec returns the typed spec and every field that breaks a rule, unreadable fields first.
func readSpec(values map[string]string, shops []template.Shop, fallback *time.Location) (template.Spec, []fault.Field) {
	rd := &shell.Reading{Values: values, Zone: fallback}
	s := template.Spec{ShopNumber: rd.Shop(shops)} // instants are in the zone of the shop
	form.Read(rd, &s, values["currency"], func(name string) bool { return counts(values, name) })
	s = s.WithNotices(s.NotifyDays, s.NotifyOver)
	return s, brokenRules(rd, s)
}

// counts reports whether the named field is read. A field that does not belong to the kind, the
// target or the validity may still hold text that was typed before these were changed.
func counts(values map[string]string, name string) bool {
	kind := template.Kind(values["kind"])
	switch name {
	case "shop_number":
		return false // read before
	case "amount_off":
		return kind == template.AmountOff || kind == template.ThresholdOff
	case "threshold":
		return kind == template.ThresholdOff || kind == template.PercentOff && strings.TrimSpace(values["threshold"]) != ""
	case "percent_off", "max_off":
		return kind == template.PercentOff
	case "entry_minutes":
		return template.OpeningMode(values["opening_mode"]).Drawn() && strings.TrimSpace(values[name]) != ""
	case "accept_hours":
		return template.OpeningMode(values["opening_mode"]) == template.ByDraw && strings.TrimSpace(values[name]) != ""
	case "accept_minutes":
		return template.Waitlist(values["waitlist"]) == template.OfferNext && strings.TrimSpace(values[name]) != ""
	case "hold_out_percent", "use_within_hours", "max_per_order", "household_limit":
		return strings.TrimSpace(values[name]) != ""
	case "product":
		return template.Target(values["target"]) == template.Product
	case "valid_until":
		return values["validity"] == "until"
	case "valid_hours":
		return values["validity"] != "until"
	}
	return true
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
