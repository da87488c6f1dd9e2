package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dropbell/lab/tools/dev/demo"
	"dropbell/musttest"
)

func TestGivenSettingsComeFirst(t *testing.T) {
	given := map[string]string{"ADMIN_API_KEY": "dbk_mine", "AUTH_JWKS_URL": "https://keys.example"}
	s := newSettings(func(name string) string { return given[name] })
	path := filepath.Join(t.TempDir(), "secrets.env")
	musttest.OK(t, s.loadSecrets(path))
	if s.get("ADMIN_API_KEY") != "dbk_mine" {
		t.Error("the given key was replaced")
	}
	if s.get("AUTH_JWT_SECRET") != "" {
		t.Error("a secret for tokens although others issue them")
	}
	for _, line := range s.environment() {
		if strings.HasPrefix(line, "ADMIN_API_KEY=") && line != "ADMIN_API_KEY="+os.Getenv("ADMIN_API_KEY") {
			t.Errorf("the environment overrides what was given: %s", line)
		}
	}
}

// TestShopOrigins: pages of the demo shop and of the examples may call the API in addition to
// pages of the given origins.
func TestShopOrigins(t *testing.T) {
	const examples = "http://127.0.0.1:4000,http://localhost:4000,http://127.0.0.1:4001,http://localhost:4001"
	for _, c := range []struct {
		given string
		ports []int
		want  string
	}{
		{"", []int{3000}, "http://127.0.0.1:3000,http://localhost:3000," + examples},
		{"http://127.0.0.1:4001, ", []int{3000}, "http://127.0.0.1:4001,http://127.0.0.1:3000,http://localhost:3000,http://127.0.0.1:4000,http://localhost:4000,http://localhost:4001"},
		{"", nil, examples},
	} {
		s := newSettings(func(string) string { return c.given })
		s.openTo(c.ports...)
		if env := s.environment(); env[len(env)-1] != "SHOP_ORIGINS="+c.want {
			t.Errorf("%q and %v: %s", c.given, c.ports, env[len(env)-1])
		}
	}
}

func TestSecretsAreMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.env")
	var seen [2]map[string]string
	for i := range seen {
		s := newSettings(func(string) string { return "" })
		musttest.OK(t, s.loadSecrets(path))
		seen[i] = s.chosen
	}
	for name, value := range seen[0] {
		if value == "" || seen[1][name] != value {
			t.Errorf("%s was %q and became %q", name, value, seen[1][name])
		}
	}
	for _, name := range []string{"ADMIN_API_KEY", "AUTH_JWT_SECRET", "SMS_TOKEN", "WEBHOOK_SECRET", "VAPID_PRIVATE_KEY", "VAPID_PUBLIC_KEY", "CODE_KEYS", "EVENTS_KEY", "DRAW_KEY", "PROVIDERS_KEY"} {
		if seen[0][name] == "" {
			t.Errorf("no %s", name)
		}
	}
}

func TestBackoffGrowsAndForgives(t *testing.T) {
	var b backoff
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		if got := b.next(time.Second); got != want {
			t.Errorf("pause %v, expected %v", got, want)
		}
	}
	for range 10 {
		b.next(0)
	}
	if got := b.next(0); got != 30*time.Second {
		t.Errorf("longest pause %v", got)
	}
	if got := b.next(2 * time.Minute); got != 500*time.Millisecond {
		t.Errorf("pause after a long run %v", got)
	}
}

func TestLineLogJoinsPiecesAndKeepsTheLast(t *testing.T) {
	var terminal bytes.Buffer
	l, err := openLog(filepath.Join(t.TempDir(), "x.log"), &terminal)
	musttest.OK(t, err)
	defer l.Close()
	for _, piece := range []string{`{"level":"IN`, `FO","msg":"quiet"}` + "\npanic: ", "oh\n\n", `time=1 level=WARN msg=x` + "\n", "unfinished"} {
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := terminal.String(); got != "panic: oh\ntime=1 level=WARN msg=x\n" {
		t.Errorf("terminal %q", got)
	}
	for range lastLines + 1 { // the first line ends an unfinished line
		l.Write([]byte("more\n"))
	}
	if got := l.Last(); got != strings.Repeat("    more\n", lastLines) {
		t.Errorf("last lines %q", got)
	}
}

func TestDialable(t *testing.T) {
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1", "10.0.0.1:80": "10.0.0.1:80", "host:1": "host:1",
	} {
		if got := dialable(addr); got != want {
			t.Errorf("%s → %s, expected %s", addr, got, want)
		}
	}
}

func TestOfferNeedsATokenAndADrop(t *testing.T) {
	var b bytes.Buffer
	printOffer(&b, "http://x", offer{drop: demo.Drop{ID: "1"}})
	printOffer(&b, "http://x", offer{token: "t"})
	if b.Len() != 0 {
		t.Errorf("printed %s", b.String())
	}
}
