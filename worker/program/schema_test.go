package program

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/migrations"
	"dropbell/musttest"
)

// TestAWorkerWaitsForItsMigrations: a new worker whose database lacks migrations reports this
// and takes no work until the migrations are applied.
func TestAWorkerWaitsForItsMigrations(t *testing.T) {
	env, jobs, conn := jobEnv(t)
	version, err := migrations.Released.Latest()
	musttest.OK(t, err)
	if _, err := conn.Exec(t.Context(), `delete from goose_db_version where version_id >= $1`, version); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	defer p.Close()
	if code, text := readiness(p); code != http.StatusServiceUnavailable || !strings.Contains(text, "run worker migrate") {
		t.Errorf("%d %s", code, text)
	}
	stop := serveSteps(t, env)
	defer stop()
	j := startSteps(t, jobs, 1)
	for end := time.Now().Add(3 * schemaPause); time.Now().Before(end); { // it looks several times
		if now, err := jobs.Job(t.Context(), staff.System(), j.ID); err != nil || now.Done > 0 {
			t.Fatalf("%+v %v", now, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if _, err := conn.Exec(t.Context(), `insert into goose_db_version (version_id, is_applied) values (@v, true)`, pgx.NamedArgs{"v": version}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, jobs, j.ID, "the migration is there", func(j job.Job) bool { return j.State == job.Done })
	if code, text := readiness(p); strings.Contains(text, "migrat") {
		t.Errorf("%d %s", code, text)
	}
}

func readiness(p *program) (int, string) {
	w := httptest.NewRecorder()
	p.ready()(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code, w.Body.String()
}
