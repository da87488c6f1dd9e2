package audience_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	audiencedb "dropbell/adapters/postgres/audience"
)

func TestSuggest(t *testing.T) {
	w := newFixture(t)
	users := audiencedb.NewUsers(w.DB)
	w.Exec(`insert into users (id, name, email, phone) values (1, 'Ann Lee', 'ann@example.com', '+8613800000001'),
		(2, 'anna', 'x@example.com', ''), (3, 'Bo', 'anton@example.com', ''), (4, '李雷', '', '+8613800000004'), (13, '', '', '')`)
	for _, c := range []struct {
		text     string
		contacts bool
		want     string
	}{
		{"AN", true, "[1 2 3]"},
		{"an", false, "[1 2]"},
		{"Anton@example.com", false, "[3]"},
		{"anton@example.co", false, "[]"},
		{"+86138", true, "[1 4]"},
		{"+86138", false, "[]"},
		{"+8613800000004", false, "[4]"},
		{"李", false, "[4]"},
		{"13", true, "[13]"},
		{"an%", true, "[]"},
		{"a_n", true, "[]"},
		{" ", true, "[]"},
		{"\x00", true, "[]"},
		{"\xff", true, "[]"},
		{strings.Repeat("x", 10_000), true, "[]"},
	} {
		list, err := users.Suggest(t.Context(), c.text, c.contacts, 5)
		if got := fmt.Sprint(idsOf(list)); err != nil || got != c.want {
			t.Errorf("%.20q, contacts %v: %s %v, want %s", c.text, c.contacts, got, err, c.want)
		}
	}
}

// TestSuggestReadsWhatItShows: for every text, and also with a plan made before the text is
// known, each kind is read by its index and stops at the limit.
func TestSuggestReadsWhatItShows(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, email, phone) select n, 'user ' || n, 'user' || n || '@example.com', '+86' || (13000000000 + n) from generate_series(1, 50000) n`)
	w.Exec(`analyze users`)
	for _, contacts := range []bool{true, false} {
		for _, text := range []string{"user", "user 4711", "user4711@example.com", "+86", "4711", "nobody"} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				plan := w.explain(mode, audiencedb.SuggestSQL(contacts), text, 0, 6)
				for _, index := range []string{"users_pkey", "users_name", "users_email", "users_phone"} {
					if !strings.Contains(plan, index) {
						t.Errorf("%q, contacts %v, %s: %s is not used:\n%s", text, contacts, mode, index, plan)
					}
				}
				if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") {
					t.Errorf("%q, contacts %v, %s reads more than it shows:\n%s", text, contacts, mode, plan)
				}
			}
		}
	}
}

// explain runs the statement as a prepared statement and returns its executed plan.
func (w *fixture) explain(mode, sql, text string, id int64, limit int) string {
	w.Helper()
	conn, err := w.SQL.Acquire(w.Context())
	w.Must(err)
	defer conn.Release()
	for _, s := range []string{`set plan_cache_mode = ` + mode, `prepare suggest (text, bigint, bigint) as ` + sql} {
		_, err = conn.Exec(w.Context(), s, pgx.QueryExecModeSimpleProtocol)
		w.Must(err)
	}
	rows, err := conn.Query(w.Context(), fmt.Sprintf(`explain (analyze, costs off, timing off, summary off) execute suggest ('%s', %d, %d)`, text, id, limit),
		pgx.QueryExecModeSimpleProtocol)
	w.Must(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	_, err = conn.Exec(w.Context(), `deallocate suggest; reset plan_cache_mode`, pgx.QueryExecModeSimpleProtocol)
	w.Must(err)
	return strings.Join(lines, "\n")
}
