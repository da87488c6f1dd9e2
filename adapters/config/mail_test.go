package config_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"dropbell/adapters/config"
	"dropbell/musttest"
)

// dkimKey returns a key as openssl genpkey -algorithm ed25519 prints it.
func dkimKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	musttest.OK(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	musttest.OK(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestMistakesOfMail(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	musttest.OK(t, err)
	weak := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(short)}))
	for name, values := range map[string][]string{
		"BOUNCE_ADDRESS":    {"bounces", "Bounces <b@mail.example>", "bounces+x@mail.example", "a-name-of-nineteen-@mail.example", "b@mail example"},
		"BOUNCE_IMAP_URL":   {"pop3://u:p@mail.example", "imaps://mail.example", "mail.example"},
		"DKIM_DOMAIN":       {"example.com.", "-example.com", "exa mple.com"},
		"DKIM_SELECTOR":     {"drop_1", "."},
		"MAIL_DOMAIN_RATES": {"gmail.com", "gmail.com=0", "gmail.com=10001", "=5", "g mail.com=5"},
		"MAIL_WARMUP":       {"200", "2026-12-01:200"},
		"DKIM_KEY":          {"no key", weak, dkimKey(t)[:60]},
	} {
		for _, v := range values {
			_, err := config.Load(least(name, v, "LINK_SECRET", "0123456789abcdef0123456789abcdef"))
			if err == nil || !strings.HasPrefix(err.Error(), name+" ") {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
	}
	for missing, set := range map[string][]string{
		"LINK_SECRET is missing":    {"BOUNCE_ADDRESS", "bounces@mail.example"},
		"BOUNCE_ADDRESS is missing": {"BOUNCE_IMAP_URL", "imaps://u:p@mail.example"},
		"not set: DKIM_SELECTOR":    {"DKIM_DOMAIN", "example.com", "DKIM_KEY", base64.StdEncoding.EncodeToString([]byte(dkimKey(t)))},
	} {
		if _, err := config.Load(least(set...)); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%v: %v", set, err)
		}
	}
}
