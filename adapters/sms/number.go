package sms

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
)

// maxText is the longest text in runes: nine concatenated parts in UCS-2. Networks refuse or
// split longer texts.
const maxText = 600

// Number returns phone in E.164. It checks whether the number is possible, not
// whether it is assigned: numbering plans grow faster than libraries.
func Number(phone string) (string, error) {
	parsed, err := parse(phone)
	if err != nil {
		return "", err
	}
	return phonenumbers.Format(parsed, phonenumbers.E164), nil
}

func parse(phone string) (*phonenumbers.PhoneNumber, error) {
	if phone == "" {
		return nil, errors.New("no phone number")
	}
	parsed, err := phonenumbers.Parse(phone, phonenumbers.UNKNOWN_REGION)
	if err != nil || !phonenumbers.IsPossibleNumber(parsed) {
		return nil, errors.New("not a phone number")
	}
	return parsed, nil
}

// Forms returns the spellings of a number in E.164 from which [Number] makes this number: the
// number itself, and the number with the national prefix after the country code, such as
// +4407911123456.
func Forms(number string) []string {
	forms := []string{number}
	parsed, err := parse(number)
	if err != nil {
		return forms
	}
	country := int(parsed.GetCountryCode())
	prefix := phonenumbers.GetNddPrefixForRegion(phonenumbers.GetRegionCodeForCountryCode(country), true)
	other := "+" + strconv.Itoa(country) + prefix + phonenumbers.GetNationalSignificantNumber(parsed)
	if same, err := Number(other); err == nil && same == number && other != number {
		forms = append(forms, other)
	}
	return forms
}

// CountryOf returns the ISO 3166 code of a number in E.164, such as CN; empty for a number that
// belongs to no country.
func CountryOf(phone string) string {
	parsed, err := parse(phone)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(phonenumbers.GetRegionCodeForNumber(parsed), "ZZ")
}

// IsCountry reports whether numbers of the country with that ISO 3166 code are known.
func IsCountry(code string) bool {
	return phonenumbers.GetSupportedRegions()[code]
}

// Shorten returns s as valid UTF-8 with at most 600 characters.
func Shorten(s string) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText-1]) + "…"
}
