package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/migrations"
	"dropbell/musttest"
)

// The steps of a later release: a step that adds a column, and a contracting step that waits for
// the lock of its table in short attempts, as such steps do.
const (
	addsColumn = `-- +goose Up
alter table audit add column extra text;
`
	dropsIndex = `-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
do $$
declare
    done boolean := false;
begin
    loop
        begin
            set local lock_timeout = '50ms';
            drop index if exists coupons_former;
            done := true;
        exception when lock_not_available then
            null;
        end;
        commit;
        exit when done;
        perform pg_sleep(1);
        commit;
    end loop;
end $$;
-- +goose StatementEnd
`
)

// next returns the steps of this version and of a later version.
func next(t *testing.T) migrations.Steps {
	t.Helper()
	files, err := fs.ReadDir(migrations.Released.FS, ".")
	musttest.OK(t, err)
	steps := fstest.MapFS{
		"90001_extra.sql":           {Data: []byte(addsColumn)},
		"90002_former_contract.sql": {Data: []byte(dropsIndex)},
	}
	for _, f := range files {
		text, err := fs.ReadFile(migrations.Released.FS, f.Name())
		musttest.OK(t, err)
		steps[f.Name()] = &fstest.MapFile{Data: text}
	}
	return migrations.Steps{FS: steps}
}

// beforeContracting returns a database that a program of this version may still use, and the
// steps of the next version.
func beforeContracting(t *testing.T) (conn *pgx.Conn, url string, steps migrations.Steps) {
	t.Helper()
	url = localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `create index coupons_former on coupons (claim_id)`); err != nil {
		t.Fatal(err)
	}
	return conn, url, next(t)
}

func hasFormerIndex(t *testing.T, conn *pgx.Conn) (yes bool) {
	t.Helper()
	musttest.OK(t, conn.QueryRow(t.Context(), `select to_regclass('coupons_former') is not null`).Scan(&yes))
	return yes
}

// TestADatabaseFromBeforeTheFirstReleaseIsRefused, and left as it is.
func TestADatabaseFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `update goose_db_version set version_id = 54 where version_id >= $1`, migrations.Oldest); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"migrate"}, {"migrate", "contract"}} {
		err := Do(t.Context(), args, environment("DATABASE_URL", url), io.Discard)
		if !errors.Is(err, migrations.ErrTooOld) || !strings.Contains(err.Error(), "migration 54") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestMigrateLeavesWhatThePreviousVersionNeeds until migrate is told that no process of that
// version runs any more.
func TestMigrateLeavesWhatThePreviousVersionNeeds(t *testing.T) {
	conn, url, steps := beforeContracting(t)
	run := func(contract bool) string {
		t.Helper()
		var out strings.Builder
		musttest.OK(t, migrate(t.Context(), steps, contract, environment("DATABASE_URL", url), &out))
		return out.String()
	}
	for _, begins := range []string{"migration 90001_extra.sql begins\n", "nothing to do; the database is at migration 90001\n"} {
		if said := run(false); !strings.HasPrefix(said, begins) ||
			!strings.Contains(said, "run worker migrate contract") || !hasFormerIndex(t, conn) {
			t.Errorf("there is an index: %v; it said\n%s", hasFormerIndex(t, conn), said)
		}
	}
	if said := run(true); !strings.HasSuffix(said, "1 migration applied; the database is at migration 90002\n") ||
		!strings.Contains(said, "90002_former_contract.sql is done") || hasFormerIndex(t, conn) {
		t.Errorf("there is an index: %v; it said\n%s", hasFormerIndex(t, conn), said)
	}
	for _, contract := range []bool{false, true} {
		if said := run(contract); said != "nothing to do; the database is at migration 90002\n" {
			t.Errorf("%v again: %s", contract, said)
		}
	}
}

// TestContractingKeepsNobodyWaiting: while a transaction reads coupons for a long time, other
// transactions proceed. The step is applied when the long transaction has ended.
func TestContractingKeepsNobodyWaiting(t *testing.T) {
	conn, url, steps := beforeContracting(t)
	reader, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer reader.Close(context.WithoutCancel(t.Context()))
	long, err := reader.Begin(t.Context())
	musttest.OK(t, err)
	if _, err := long.Exec(t.Context(), `select count(*) from coupons`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := steps.UpTelling(context.WithoutCancel(t.Context()), url, true, func(string) {})
		ended <- err
	}()
	for end := time.Now().Add(30 * time.Second); ; {
		var gaveWay bool // and sleeps
		musttest.OK(t, conn.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and query like '%coupons_former%' and wait_event = 'PgSleep')`).Scan(&gaveWay))
		if gaveWay {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not give way")
		}
		<-time.After(5 * time.Millisecond)
	}
	if _, err := conn.Exec(t.Context(), `update coupons set state = state`); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("it is done while somebody reads: %v", err)
	default:
	}
	musttest.OK(t, long.Rollback(t.Context()))
	if err := <-ended; err != nil || hasFormerIndex(t, conn) {
		t.Errorf("%v; there is an index: %v", err, hasFormerIndex(t, conn))
	}
}

// The database role of compose.yaml owns its database and has no other right. This role can
// apply all migrations.
func TestMigrateWithoutASuperuser(t *testing.T) {
	admin, err := pgx.Connect(t.Context(), localstack.Database(t))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	name := "plain_" + strings.ToLower(rand.Text()[:12])
	exec := func(ctx context.Context, sql string) {
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	exec(t.Context(), fmt.Sprintf(`create role %s login password 'x' nosuperuser nocreatedb nocreaterole`, name))
	exec(t.Context(), fmt.Sprintf(`create database %s owner %s`, name, name))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		exec(ctx, `drop database if exists `+name+` with (force)`)
		exec(ctx, `drop role `+name)
	})
	address := *admin.Config()
	to := url.URL{Scheme: "postgres", User: url.UserPassword(name, "x"), Host: net.JoinHostPort(address.Host, fmt.Sprint(address.Port)), Path: name}
	env := func(variable string) string { return map[string]string{"DATABASE_URL": to.String()}[variable] }
	for range 2 {
		musttest.OK(t, Do(t.Context(), []string{"migrate", "contract"}, env, io.Discard))
	}
}

// A step that needs the lock of a table does not queue behind a long transaction: another reader
// of the table waits no longer than one attempt of the step.
func TestMigratingQueuesNobody(t *testing.T) {
	url := localstack.Database(t)
	connect := func() *pgx.Conn {
		c, err := pgx.Connect(t.Context(), url)
		musttest.OK(t, err)
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
		return c
	}
	long, other, steps := connect(), connect(), next(t)
	for _, sql := range []string{
		`begin`, `select from audit`,
	} {
		if _, err := long.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	told, done := make(chan string, 1000), make(chan error, 1)
	go func() {
		_, err := steps.UpTelling(t.Context(), url, true, func(line string) { told <- line })
		done <- err
	}()
	for line := range told {
		if strings.Contains(line, "waits for a table") {
			break
		}
	}
	// Read in the pauses; each attempt of the step holds it up for two seconds at most.
	if _, err := other.Exec(t.Context(), `set lock_timeout = '10s'; select from audit`); err != nil {
		t.Errorf("a reader waits behind the migration: %v", err)
	}
	if _, err := long.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	musttest.OK(t, <-done)
	if _, err := other.Exec(t.Context(), `select extra from audit`); err != nil {
		t.Error(err)
	}
}
