package smtp_test

import (
	"strings"
	"testing"

	"dropbell/adapters/smtp"
)

func TestParseURL(t *testing.T) {
	cfg, err := smtp.ParseURL("smtp://shop%40example.com:p4ss%2Fw0rd@mail.example:587?from=Drop%20Bell%20%3Cdrops@shop.example%3E&starttls=required&auth=plaintext&conns=3")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "mail.example" || cfg.Port != 587 || cfg.Username != "shop@example.com" || cfg.Password != "p4ss/w0rd" ||
		cfg.From.Name != "Drop Bell" || cfg.From.Address != "drops@shop.example" ||
		!cfg.RequireTLS || !cfg.PlaintextAuth || cfg.ImplicitTLS || cfg.MaxConns != 3 {
		t.Errorf("got %+v", cfg)
	}
	cfg, err = smtp.ParseURL("smtps://mail.example?from=drops@shop.example")
	if err != nil || !cfg.ImplicitTLS || cfg.Username != "" {
		t.Errorf("got %+v, %v", cfg, err)
	}
}

func TestParseURLNamesTheMistake(t *testing.T) {
	for raw, hint := range map[string]string{
		"":                                 "scheme",
		"mail.example:25":                  "scheme",
		"http://mail.example?from=a@b":     "scheme",
		"smtp://?from=a@b.example":         "host",
		"smtp://u:hunter2@mail.example:25": "from",
		"smtp://u:hunter2@mail.example:25?from=nobody":                  "from",
		"smtp://u:hunter2@mail.example:99999?from=a@b.example":          "port",
		"smtp://u:hunter2@mail.example/x?from=a@b.example":              "path",
		"smtp://u:hunter2@mail.example?from=a@b.example&starttls=maybe": "starttls",
		"smtp://u:hunter2@mail.example?from=a@b.example&tls=1":          "tls",
		"smtp://u:hunter2@mail.example?from=a@b.example&conns=0":        "conns",
		"smtp://u:hunter2/%zz@mail.example?from=a@b.example":            "percent-encoded",
		"smtp://u:hunter2@mail.example?from=%zz":                        "percent-encoded",
		"smtp://:hunter2@mail.example?from=a@b.example":                 "user name",
	} {
		_, err := smtp.ParseURL(raw)
		if err == nil {
			t.Errorf("%s: accepted", raw)
			continue
		}
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: error %q does not mention %q", raw, err, hint)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %q tells the password", raw, err)
		}
	}
}

func TestNewRefusesAnIncompleteConfig(t *testing.T) {
	if _, err := smtp.New(smtp.Config{Host: "mail.example"}); err == nil {
		t.Error("a sender without a From address was built")
	}
}
