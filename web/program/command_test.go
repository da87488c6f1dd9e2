package program

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/migrations"
	"dropbell/musttest"
)

// environment is a getenv of pairs.
func environment(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

// TestMistakesBeforeTheStart: web also reports mistakes in settings that only worker uses.
func TestMistakesBeforeTheStart(t *testing.T) {
	err := command(t.Context(), nil, environment("SMTP_URL", "smtp://mail.example", "WEBHOOK_URL", "https://hooks.example/", "WEBHOOK_SECRET", "whsec_?",
		"SMS_URL", "sms.example", "VAPID_PUBLIC_KEY", "x", "PUBLIC_URL", "https://ada@drops.example"), io.Discard)
	for _, name := range []string{"DATABASE_URL ", "REDIS_URL ", "PUBLIC_URL ", "SMTP_URL ", "WEBHOOK_SECRET ", "SMS_URL ", "VAPID_PUBLIC_KEY "} {
		if err == nil || !strings.Contains(err.Error(), "\n"+name) {
			t.Errorf("%sis not named: %v", name, err)
		}
	}
	if code := config.ExitCode(err); code != 2 {
		t.Errorf("exit code %d", code)
	}
	if err := command(t.Context(), []string{"serve"}, environment(), io.Discard); config.ExitCode(err) != 2 || !strings.Contains(err.Error(), "web --help") {
		t.Errorf("%v", err)
	}
}

// TestNoWayForEndUsers is said once, at the start.
func TestNoWayForEndUsers(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") // so that web gives up
	musttest.OK(t, err)
	defer taken.Close()
	for secret, want := range map[string]int{"": 1, "a secret of tests, long enough for HS256": 0} {
		var out bytes.Buffer
		err := command(t.Context(), nil, environment("DATABASE_URL", "postgres://127.0.0.1:1/nothing", "REDIS_URL", "redis://127.0.0.1:1",
			"HTTP_ADDR", taken.Addr().String(), "AUTH_JWT_SECRET", secret), &out)
		if err == nil || !strings.HasPrefix(err.Error(), "HTTP_ADDR: ") || config.ExitCode(err) != 1 {
			t.Errorf("%v", err)
		}
		if n := strings.Count(out.String(), `"level":"WARN","msg":"end users cannot sign in: neither AUTH_JWT_SECRET nor AUTH_JWKS_URL is set`); n != want {
			t.Errorf("with %q it is said %d times, want %d:\n%s", secret, n, want, &out)
		}
	}
}

// TestWebSaysThatItWaits: web logs once that it waits for its migrations, even if no first admin
// and key are to be made.
func TestWebSaysThatItWaits(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	version, err := migrations.Released.Latest()
	musttest.OK(t, err)
	if _, err := conn.Exec(t.Context(), `delete from goose_db_version where version_id >= $1`, version); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(environment("DATABASE_URL", url, "REDIS_URL", "redis://127.0.0.1:1"))
	musttest.OK(t, err)
	lines := lineWriter(make(chan string, 100))
	p, err := build(t.Context(), cfg, cfg.Logger("web", lines))
	musttest.OK(t, err)
	defer p.Close()
	again, ended := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(ended)
		p.firstAccess(t.Context(), again)
	}()
	if first := <-lines; !strings.Contains(first, "it waits for its database") || !strings.Contains(first, "run worker migrate") || p.access.Load() {
		t.Errorf("%s", first)
	}
	for range 3 { // each is taken when the look before is over
		again <- time.Time{}
	}
	if _, err := conn.Exec(t.Context(), `insert into goose_db_version (version_id, is_applied) values ($1, true)`, version); err != nil {
		t.Fatal(err)
	}
	select {
	case again <- time.Time{}:
	case <-ended: // its last look has seen the migration
	}
	<-ended
	if !p.access.Load() || len(lines) != 0 {
		t.Errorf("access %v, and %d more lines", p.access.Load(), len(lines))
	}
}

// lineWriter sends each write to the channel.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
