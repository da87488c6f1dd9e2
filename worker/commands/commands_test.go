package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
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

// TestExitCodes: the exit code is 1 only if an audit found a difference.
func TestExitCodes(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for issued := range int64(2) {
		rows.Drop{Issued: issued, OpensAt: time.Now(), ClosesAt: time.Now().AddDate(0, 0, 1)}.Add(t, conn)
	}
	lastWeek := time.Now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	if _, err := conn.Exec(t.Context(), `insert into notice_days (day, template_id, planned) values ($1, 1, 3)`, lastWeek); err != nil {
		t.Fatal(err)
	}
	const away = "postgres://nobody:hunter2@127.0.0.1:1/nothing"
	for _, c := range []struct {
		args, database string
		code           int
		says           string
	}{
		{"audit 1", url, 0, ""},
		{"audit 65", url, 1, "the stock ledger of template 65 is off by"},
		{"audit 3", url, 2, "template 3 was not audited: there is no such template"},
		{"audit campaign 1", url, 2, "campaign 1 was not audited: there is no such campaign"},
		{"audit 1", emptyDatabase(t), 2, "run worker migrate"},
		{"audit 1", "", 2, "DATABASE_URL is required: postgres://"},
		{"audit campaign 1", "", 2, "DATABASE_URL is required: postgres://"},
		{"audit 1", "mysql://u:hunter2@db/x", 2, "DATABASE_URL must begin with postgres://"},
		{"audit 1", away, 2, "template 1 was not audited: the database cannot answer"},
		{"audit campaign 1", away, 2, "campaign 1 was not audited: the database cannot answer"},
		{"audit", url, 2, "usage: worker audit TEMPLATE"},
		{"erase", url, 2, "usage: worker erase USER"},
		{"erase x", url, 2, "is no user"},
		{"audit 1 2", url, 2, "usage: worker audit TEMPLATE"},
		{"audit campaign", url, 2, `"campaign" is no id; usage`},
		{"audit 0", url, 2, `"0" is no id; usage`},
		{"audit notices", url, 0, ""},
		{"audit notices " + lastWeek, url, 1, "the notices are off by 3"},
		{"audit notices 2020-01-01", url, 2, "not kept any more (RETENTION_DAYS)"},
		{"audit notices today", url, 2, `"today" is no day such as 20`},
		{"audit notices 1 2", url, 2, "usage: worker audit TEMPLATE"},
		{"audit notices", away, 2, "notices were not audited: the database cannot answer"},
		{"audit notices", "", 2, "DATABASE_URL is required: postgres://"},
		{"audit --help", "", 0, ""},
		{"migrate", url, 0, ""},
		{"migrate", "", 2, "DATABASE_URL is required: postgres://"},
		{"migrate now", url, 2, "takes no argument but contract"},
		{"migrate", away, 1, "migrating failed, with 0 migrations applied"},
		{"run", url, 2, `unknown command "run"`},
	} {
		err := Do(t.Context(), strings.Fields(c.args), environment("DATABASE_URL", c.database), io.Discard)
		if code := config.ExitCode(err); code != c.code {
			t.Errorf("%q ends with %d, want %d: %v", c.args, code, c.code, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
		}
	}
}

// emptyDatabase returns the address of a database without a schema.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(localstack.Database(t))
	musttest.OK(t, err)
	conn, err := pgx.Connect(t.Context(), address.String())
	musttest.OK(t, err)
	name := conn.Config().Database + "_empty"
	if _, err := conn.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := conn.Exec(ctx, "drop database "+name+" with (force)")
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	address.Path = "/" + name
	return address.String()
}

// TestMigrateTells: migrate prints that it waits for another process and which process that is,
// the step that begins, and the steps that are done.
func TestMigrateTells(t *testing.T) {
	url := emptyDatabase(t)
	other, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer other.Close(context.WithoutCancel(t.Context()))
	const gooseLock = 4097083626
	if _, err := other.Exec(t.Context(), `select pg_advisory_lock($1)`, gooseLock); err != nil {
		t.Fatal(err)
	}
	lines := &lineWriter{line: make(chan string)}
	ended := make(chan error, 1)
	go func() {
		ended <- Do(t.Context(), []string{"migrate"}, environment("DATABASE_URL", url), lines)
		close(lines.line)
	}()
	want := fmt.Sprintf("another process is migrating this database (pid %d of pg_stat_activity)", other.PgConn().PID())
	if first := <-lines.line; !strings.Contains(first, want) {
		t.Errorf("%q, want %q", first, want)
	}
	if _, err := other.Exec(t.Context(), `select pg_advisory_unlock($1)`, gooseLock); err != nil {
		t.Fatal(err)
	}
	var rest []string
	for l := range lines.line {
		rest = append(rest, l)
	}
	musttest.OK(t, <-ended)
	files, err := fs.ReadDir(migrations.Released.FS, ".")
	musttest.OK(t, err)
	newest, err := migrations.Released.Newest()
	musttest.OK(t, err)
	if len(rest) != 2*len(files)+1 {
		t.Fatalf("%d lines for %d migrations:\n%s", len(rest), len(files), strings.Join(rest, ""))
	}
	for i, f := range files {
		if rest[2*i] != "migration "+f.Name()+" begins\n" || !strings.HasPrefix(rest[2*i+1], "migration "+f.Name()+" is done after ") {
			t.Errorf("%s: %q %q", f.Name(), rest[2*i], rest[2*i+1])
		}
	}
	if last := fmt.Sprintf("%s; the database is at migration %d\n", appliedWords(len(files)), newest); rest[len(rest)-1] != last {
		t.Errorf("%q, want %q", rest[len(rest)-1], last)
	}
	var again strings.Builder
	if err := Do(t.Context(), []string{"migrate"}, environment("DATABASE_URL", url), &again); err != nil ||
		again.String() != fmt.Sprintf("nothing to do; the database is at migration %d\n", newest) {
		t.Errorf("%v %q", err, &again)
	}
}

// lineWriter hands on what is written, a line per call.
type lineWriter struct{ line chan string }

func (w *lineWriter) Write(p []byte) (int, error) {
	w.line <- string(p)
	return len(p), nil
}
