package staff

import (
	"errors"
	"strings"
	"testing"

	"dropbell/domain/fault"
)

// Each password is judged as the password of one admin. The key of the rule that it
// breaks is compared.
func TestPasswords(t *testing.T) {
	for password, want := range map[string]string{
		"ring-the-bell":             "",
		"a good password":           "",
		"correct horse battery":     "",
		"only this benchmark":       "",
		"Zq8-pT2v-mK41":             "",
		"四只灰鹭站在河边等着看日落":             "",
		"lovelace and grey herons":  "", // enough characters besides the name
		"ladybird-on-Dropbell-hill": "",
		"":                          "rule.password",
		"elevenchars":               "rule.password",
		"四只灰鹭站在河边":                  "rule.password", // of 24 bytes
		strings.Repeat("xy1-", 51):  "rule.password",
		"password1234":              "rule.password_common",
		"!!Password!!":              "rule.password_common",
		"P@ssw0rd2024!":             "rule.password_common",
		"passwordpassword":          "rule.password_common",
		"password-password-":        "rule.password_common",
		"iloveyou2023!":             "rule.password_common",
		"administrator":             "rule.password_common",
		"sunshine2019":              "rule.password_common",
		"aaaaaaaaaaaaaa":            "rule.password_pattern",
		"abababababab":              "rule.password_pattern",
		"123456789012":              "rule.password_pattern",
		"210987654321":              "rule.password_pattern",
		"qwertyuiop12":              "rule.password_pattern",
		"1qaz2wsx3edc":              "rule.password_pattern",
		"1Q2W3E4R5T6Y":              "rule.password_pattern",
		"abcdefghijkl":              "rule.password_pattern",
		"asdfgh19902024":            "rule.password_pattern",
		"aaaabbbbcccc":              "rule.password_pattern",
		"ada.l@example.com":         "rule.password_own",
		"x-ADA.L@Example.com-x":     "rule.password_own",
		"AdaLovelace!":              "rule.password_own",
		"lovelace1815":              "rule.password_own",
		"dropbelldropbell":          "rule.password_own",
		"Dropbell2026!":             "rule.password_own",
	} {
		got := ""
		if f, ok := errors.AsType[*fault.Fields](CheckPassword(password, "ada.l@example.com", "Ada Lovelace")); ok {
			got = f.List[0].Key
		}
		if got != want {
			t.Errorf("%q breaks %q, want %q", password, got, want)
		}
	}
}

func TestCommonPasswordsAreRead(t *testing.T) {
	set := commonPasswords()
	if len(set) < 4000 || !set["password"] || !set["qwerty"] || set[""] {
		t.Errorf("%d lines", len(set))
	}
}
