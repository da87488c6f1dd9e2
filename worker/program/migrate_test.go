package program

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/migrations"
)

// beforeContracting returns a database that a program of the previous version
// may still use, and the names of the steps that it lacks.
func beforeContracting(t *testing.T) (conn *pgx.Conn, url string, lacks []string) {
	t.Helper()
	lacks, err := migrations.Contracting()
	if err != nil || len(lacks) == 0 {
		t.Fatalf("%v %v", lacks, err)
	}
	needed, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	url = localstack.Database(t)
	if conn, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for _, sql := range []string{
		fmt.Sprintf(`delete from goose_db_version where version_id > %d`, needed),
		`alter table coupons add constraint coupons_claim_id_key unique (claim_id)`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return conn, url, lacks
}

func hasClaimIndex(t *testing.T, conn *pgx.Conn) (yes bool) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `select to_regclass('coupons_claim_id_key') is not null`).Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}

// TestMigrateLeavesWhatThePreviousVersionNeeds until it is told that this is gone.
func TestMigrateLeavesWhatThePreviousVersionNeeds(t *testing.T) {
	conn, url, lacks := beforeContracting(t)
	needed, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	newest, err := migrations.Newest()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := command(t.Context(), append([]string{"migrate"}, args...), environment("DATABASE_URL", url), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if said := run(); !strings.HasPrefix(said, fmt.Sprintf("nothing to do; the database is at migration %d\n", needed)) ||
		!strings.Contains(said, "run worker migrate contract") || !hasClaimIndex(t, conn) {
		t.Errorf("there is an index: %v; it said\n%s", hasClaimIndex(t, conn), said)
	}
	if said := run("contract"); !strings.HasSuffix(said, fmt.Sprintf("the database is at migration %d\n", newest)) ||
		!strings.Contains(said, lacks[len(lacks)-1]+" is done") || hasClaimIndex(t, conn) {
		t.Errorf("there is an index: %v; it said\n%s", hasClaimIndex(t, conn), said)
	}
	for _, args := range [][]string{{}, {"contract"}} {
		if said := run(args...); said != fmt.Sprintf("nothing to do; the database is at migration %d\n", newest) {
			t.Errorf("%v again: %s", args, said)
		}
	}
}

// TestContractingKeepsNobodyWaiting: while somebody reads coupons for long,
// the others go on, and so does the step when the reader is done.
func TestContractingKeepsNobodyWaiting(t *testing.T) {
	conn, url, _ := beforeContracting(t)
	reader, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(context.WithoutCancel(t.Context()))
	long, err := reader.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := long.Exec(t.Context(), `select count(*) from coupons`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- migrations.Up(context.WithoutCancel(t.Context()), url) }()
	for end := time.Now().Add(30 * time.Second); ; {
		var gaveWay bool // and sleeps
		if err := conn.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and query like '%coupons_claim_id_key%' and wait_event = 'PgSleep')`).Scan(&gaveWay); err != nil {
			t.Fatal(err)
		}
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
	if err := long.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || hasClaimIndex(t, conn) {
		t.Errorf("%v; there is an index: %v", err, hasClaimIndex(t, conn))
	}
}

// The role that compose.yaml makes, which owns its database and has no other
// right, can bring it up to date.
func TestMigrateWithoutASuperuser(t *testing.T) {
	admin, err := pgx.Connect(t.Context(), localstack.Database(t))
	if err != nil {
		t.Fatal(err)
	}
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
		if err := command(t.Context(), []string{"migrate", "contract"}, env, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
}

// A step that needs a table which a long transaction uses lets others go first:
// who wants to read the table waits no longer than the step does.
func TestMigratingQueuesNobody(t *testing.T) {
	url := localstack.Database(t)
	connect := func() *pgx.Conn {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
		return c
	}
	long, other := connect(), connect()
	for _, sql := range []string{
		`alter table audit drop column address, drop column request_id`, `delete from goose_db_version where version_id >= 53`,
		`drop table password_links`, `begin`, `select from audit`,
	} {
		if _, err := long.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	told, done := make(chan string, 1000), make(chan error, 1)
	go func() {
		_, err := migrations.UpTelling(t.Context(), url, true, func(line string) { told <- line })
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
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select address from audit`); err != nil {
		t.Error(err)
	}
}
