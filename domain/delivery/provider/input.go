package provider

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/wording"
)

// Input is the input for creating or changing a provider.
type Input struct {
	Shop int64
	Kind Kind
	Spec
	// Secrets are the new ones; an empty one stays as it is, unless Clear names it.
	Secrets map[string]string
	Clear   []string
}

// everySecret reports whether in has a new value for each secret that is set in p.
func (in Input) everySecret(p Provider) bool {
	return !slices.ContainsFunc(p.Secrets, func(name string) bool {
		return in.Secrets[name] == "" && !slices.Contains(in.Clear, name)
	})
}

// check returns the normal form of in.
func (in Input) check(isCountry func(string) bool) (Input, error) {
	e := &fault.Fields{}
	channel, ok := in.Kind.Channel()
	if !ok {
		e.Add("kind", "rule.provider_kind", "must be one of the kinds of providers")
	}
	switch in.Name = strings.TrimSpace(in.Name); {
	case in.Name == "":
		e.Add("name", "rule.required", "is required")
	case !wording.OneLine(in.Name):
		e.Add("name", "rule.text", "must be valid text without control characters")
	case utf8.RuneCountInString(in.Name) > maxName:
		e.Add("name", "rule.too_long", "must have at most %d characters", maxName)
	}
	if in.Order < 0 || in.Order > MaxOrder {
		e.Add("order", "rule.provider_order", "must be a number from 0 to %d", MaxOrder)
	}
	if in.Weight < 1 || in.Weight > MaxWeight {
		e.Add("weight", "rule.provider_weight", "must be a number from 1 to %d", MaxWeight)
	}
	if in.Shop < 0 {
		e.Add("shop_number", "rule.shop_number", "must be a positive number")
	}
	in.countries(channel, isCountry, e)
	in.settings(e)
	return in, e.Err()
}

// countries brings the codes into capitals and order.
func (in *Input) countries(c delivery.Channel, isCountry func(string) bool, e *fault.Fields) {
	list := []string{}
	for _, code := range in.Countries {
		if code = strings.ToUpper(strings.TrimSpace(code)); code != "" && !slices.Contains(list, code) {
			list = append(list, code)
		}
	}
	slices.Sort(list)
	in.Countries = list
	switch unknown := slices.IndexFunc(list, func(code string) bool { return !isCountry(code) }); {
	case len(list) == 0:
	case c != delivery.SMS:
		e.Add("countries", "rule.provider_no_countries", "must be empty: only phone numbers say which country a recipient is in")
	case unknown >= 0 || len(list) > maxCountries:
		e.Add("countries", "rule.provider_countries", "must be ISO 3166 codes of two letters separated by commas, such as CN,HK")
	}
}

// settings keeps the settings of the kind and checks the settings that can be
// checked without a sender.
func (in *Input) settings(e *fault.Fields) {
	kept := map[string]string{}
	for _, f := range in.Kind.Fields() {
		from := in.Settings
		if f.Secret {
			from = in.Secrets
		}
		v := strings.TrimSpace(from[f.Name])
		switch {
		case f.Derived:
			continue
		case !utf8.ValidString(v) || !f.Long && !wording.OneLine(v):
			e.Add(f.Name, "rule.text", "must be valid text without control characters")
		case len(v) > maxSetting:
			e.Add(f.Name, "rule.too_long", "must have at most %d characters", maxSetting)
		case v != "" && f.Choices != nil && !slices.Contains(f.Choices, v):
			e.Add(f.Name, "rule.provider_choice", "must be one of %s", strings.Join(f.Choices, ", "))
		case f.Name == "url" && v != "" && hasPassword(v):
			e.Add(f.Name, "rule.provider_password", "must not contain a password, which has a field of its own")
		case !f.Secret && v == "" && f.Required:
			e.Add(f.Name, "rule.required", "is required")
		}
		if !f.Secret && v != "" {
			kept[f.Name] = v
		}
	}
	in.Settings = kept
}

// hasPassword reports whether an address names a password, which settings would show.
func hasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

// elsewhere adds an error for each secret of p that in does not repeat, if the new
// address belongs to another server than p's. Otherwise the new server would receive
// the old secrets.
func (in Input) elsewhere(err error, p Provider) error {
	if origin(in.Settings["url"]) == origin(p.Settings["url"]) {
		return err
	}
	e, ok := errors.AsType[*fault.Fields](err)
	if !ok {
		e = &fault.Fields{}
	}
	for _, name := range p.Secrets {
		if in.Secrets[name] == "" && !slices.Contains(in.Clear, name) {
			e.Add(name, "rule.provider_secret_again", "must be entered again, because the new address belongs to another server")
		}
	}
	return e.Err()
}

// origin is the part of an address that says which server is called and how.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// missing adds the required secrets that there would be none of.
func (in Input) missing(err error, secrets map[string]string) error {
	e, ok := errors.AsType[*fault.Fields](err)
	if !ok {
		e = &fault.Fields{}
	}
	for _, f := range in.Kind.Fields() {
		if f.Secret && f.Required && secrets[f.Name] == "" {
			e.Add(f.Name, "rule.required", "is required")
		}
	}
	return e.Err()
}
