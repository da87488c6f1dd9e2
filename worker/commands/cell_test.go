package commands

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/domain/cell"
	"dropbell/musttest"
)

// TestCellCommand: an empty database becomes cell 5, whose ids begin above the given number and name
// it. The command may be repeated, and refuses a database with rows.
func TestCellCommand(t *testing.T) {
	url := localstack.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	env := func(name string) string { return map[string]string{"DATABASE_URL": url}[name] }
	run := func(want string, code int, args ...string) {
		t.Helper()
		var out strings.Builder
		err := Do(t.Context(), append([]string{"cell"}, args...), env, &out)
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := config.ExitCode(err); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("%q: code %d, %s; want %d, %q", args, got, out.String(), code, want)
		}
	}
	for _, args := range [][]string{{"64"}, {"-1"}, {"a"}, {""}, {"5", "x"}, {"5", "-1"}, {"5", "9223372036854775807"}, {"5", "1", "2"}} {
		run("usage: ", 2, args...)
	}
	run("is cell 0\n", 0)
	run("is cell 5 now", 0, "5", "1000")
	run("was cell 5 before", 0, "5", "1000")
	run("is cell 5\n", 0)
	for _, table := range []string{"templates", "coupons", "slots"} {
		var ids []int64
		musttest.OK(t, conn.QueryRow(t.Context(), `select array(select nextval(pg_get_serial_sequence($1, 'id')) from generate_series(1, 2))`, table).Scan(&ids))
		if ids[0] != 1030 || ids[1] != 1094 || cell.Of(ids[1], 1001) != 5 {
			t.Errorf("%s: ids %v", table, ids)
		}
	}
	var serial int64
	if err := conn.QueryRow(t.Context(), `select next from code_serials`).Scan(&serial); err != nil || serial != 5<<34+1 {
		t.Errorf("redeem codes begin with %d: %v", serial, err)
	}
	if _, err := conn.Exec(t.Context(), `insert into uploads (name, bytes, sha256, created_by) values ('a.csv', 1, '', 'staff:1 Ada')`); err != nil {
		t.Fatal(err)
	}
	run("uploads has rows", 2, "6")
	run("is cell 5\n", 0)
}
