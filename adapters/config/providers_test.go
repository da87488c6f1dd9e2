package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/config"
)

func TestProvidersMistakes(t *testing.T) {
	const at = "smtp://u:" + secret + "@mail.example"
	for _, c := range []struct{ name, value, want string }{
		{"SMTP_URL", at + ":25", "?from=drops@example.com"},
		{"SMTP_URL", at + "?from=nobody", "?from=drops@example.com"},
		{"SMTP_URL", at + ":99999?from=a@b.example", "port"},
		{"SMTP_URL", at + "/x?from=a@b.example", "no path"},
		{"SMTP_URL", at + "?from=a@b.example&" + secret + "=1", "from, starttls, auth, conns"},
		{"SMTP_URL", at + "?from=a@b.example&starttls=" + secret, "starttls=required"},
		{"SMTP_URL", at + "?from=a@b.example&auth=none", "auth=plaintext"},
		{"SMTP_URL", at + "?from=a@b.example&conns=0", "conns"},
		{"SMTP_URL", at + "?from=%zz", "percent-encoded"},
		{"SMTP_URL", "smtp://u:" + secret + "/%zz@mail.example?from=a@b.example", "percent-encoded"},
		{"SMTP_URL", "smtp://u:12?" + secret + "@mail.example", "from, starttls, auth, conns"},
		{"SMTP_URL", "smtp://:" + secret + "@mail.example?from=a@b.example", "user"},
		{"SMTP_URL", "smtp://?from=a@b.example", "host"},
		{"SMTP_URL", "mail.example:25", "smtp:// or smtps://"},
	} {
		_, err := config.Load(least(c.name, c.value))
		if err == nil || !strings.HasPrefix(err.Error(), c.name+" must ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%q: %v, want %q", c.name, c.value, err, c.want)
		} else if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
	_, err := config.Load(least("SMTP_URL", "smtp://mail.example:0/x?conns=many"))
	for _, want := range []string{"port", "path", "sender", "conns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestAddressesThatAreRight(t *testing.T) {
	for name, values := range map[string][]string{
		"DATABASE_URL": {"postgres://u:p@a,b/dropbell?target_session_attrs=read-write", "postgresql://u@a:5432,b:5433/dropbell", "postgres:///dropbell?host=/run/postgresql"},
		"REDIS_URL":    {"rediss://u:p@cache:6380/3?dial_timeout=5s", "redis://a:1?max_redirects=3,redis://b:2"},
		"PUBLIC_URL":   {"https://shop.example/drops/", "http://[::1]:8080"},
		"HTTP_ADDR":    {":8080", "[::1]:0", "localhost:http"},
		"SMTP_URL":     {"smtp://127.0.0.1:25?from=Drop%20Bell%20%3Cdrops@shop.example%3E", "smtps://u:p%2Fw@mail.example/?from=a@b.example&starttls=required&auth=plaintext&conns=3"},
		"OIDC_ISSUER":  {""},
	} {
		for _, v := range values {
			if _, err := config.Load(least(name, v)); err != nil {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
	}
}

// TestLoadOnly: a command that needs only the database reports no mistakes of other variables.
func TestLoadOnly(t *testing.T) {
	getenv := env("DATABASE_URL", "postgres://u:p@db:5432/dropbell", "SMTP_URL", "nonsense", "REDIS_URL", "nonsense")
	cfg, err := config.LoadOnly(getenv, "DATABASE_URL")
	if err != nil || cfg.DatabaseURL == "" || cfg.SMTPURL != "" {
		t.Errorf("%+v %v", cfg, err)
	}
	if _, err := config.LoadOnly(getenv, "DATABASE_URL", "REDIS_URL"); err == nil || !strings.HasPrefix(err.Error(), "REDIS_URL ") {
		t.Errorf("%v", err)
	}
	if _, err := config.LoadOnly(env(), "DATABASE_URL"); err == nil || err.Error() != "DATABASE_URL is required: postgres://user:password@host:port/database" {
		t.Errorf("%v", err)
	}
}

func TestExitCode(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		err  error
		want int
	}{{nil, 0}, {broken, 1}, {config.Mistake{Err: broken}, 2}, {fmt.Errorf("start: %w", config.Mistake{Err: broken}), 2}} {
		if got := config.ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if err := (config.Mistake{Err: broken}); err.Error() != "broken" || !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	cfg, err := config.Load(least("LOG_LEVEL", "warn"))
	if err != nil {
		t.Fatal(err)
	}
	log := cfg.Logger("web", &out).With("period", 90*time.Second).WithGroup("of")
	log.Info("not shown")
	log.Warn("shown", "pause", 50*time.Millisecond, "n", 50)
	for _, want := range []string{`"program":"web"`, `"pid":`, `"msg":"shown"`, `"period":"1m30s"`, `"of":{"pause":"50ms","n":50}`} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%s is not there once: %s", want, &out)
		}
	}
	if strings.Contains(out.String(), "not shown") {
		t.Errorf("%s", &out)
	}
}
