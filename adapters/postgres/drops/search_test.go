package drops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/template"
)

// TestPartsMissNothing: the parts of every substring of a name, in any case, are
// among the parts of the name. So the index cannot hide a match of the
// comparison.
func TestPartsMissNothing(t *testing.T) {
	w := newFixture(t)
	letters := rapid.OneOf(rapid.RuneFrom([]rune("aAbB iIİıßẞσςΣ春节双十一%_\\'\"{},🎑")), rapid.Rune().Filter(func(r rune) bool { return r != 0 && utf8.ValidRune(r) }))
	rapid.Check(t, func(rt *rapid.T) {
		name := []rune(rapid.StringOfN(letters, 1, 12, -1).Draw(rt, "name"))
		from := rapid.IntRange(0, len(name)-1).Draw(rt, "from")
		text := string(name[from : from+rapid.IntRange(1, len(name)-from).Draw(rt, "length")])
		text = rapid.SampledFrom([]func(string) string{strings.ToUpper, strings.ToLower, func(s string) string { return s }}).Draw(rt, "case")(text)
		var holds, has bool
		var parts []string
		if err := w.SQL.QueryRow(t.Context(), `select $1::text ilike '%' || replace(replace(replace($2::text, '\', '\\'), '%', '\%'), '_', '\_') || '%',
			text_parts($1, 1) @> text_parts($2, 3), text_parts($2, 3)`, string(name), text).Scan(&holds, &has, &parts); err != nil {
			rt.Fatal(err)
		}
		if holds && !has {
			rt.Errorf("%q holds %q, but not its parts %q", string(name), text, parts)
		}
		if len(parts) == 0 {
			rt.Errorf("%q has no parts: every name would be looked at", text)
		}
	})
}

// planOf explains a statement of a store, with scans of whole tables avoided
// where possible.
func (w *fixture) planOf(sql string, args ...any) string {
	w.Helper()
	tx, err := w.SQL.Begin(w.Context())
	w.Must(err)
	defer func() { _ = tx.Rollback(w.Context()) }()
	rows, err := tx.Query(w.Context(), `explain (analyze, costs off, timing off, summary off) `+sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	w.Must(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	return strings.Join(lines, "\n")
}

// many inserts enough templates that the planner's choices differ.
func (w *fixture) many(n int) {
	w.Helper()
	w.Shops(10, 11)
	w.Fill("templates", fmt.Sprintf("generate_series(1, %d) n", n), pgtest.Row{"id": pgtest.SQL("n"), "shop_number": pgtest.SQL("10 + n % 2"),
		"name":      pgtest.SQL("case when n % 50 = 0 then '春节 ' else '' end || 'Drop number ' || n"),
		"opens_at":  pgtest.SQL("date_trunc('second', now()) + (n - 50) * interval '1 minute'"),
		"closes_at": pgtest.SQL("date_trunc('second', now()) + n * interval '2 hours' + interval '1 year'"),
		"state":     pgtest.SQL("case when n % 1999 = 0 then 'paused' else 'published' end")})
	w.Exec(`analyze templates`)
}

// TestSearchReadsWhatItShows: rare names come from the index of parts, common
// names from the list's own order, and rare states from their index.
func TestSearchReadsWhatItShows(t *testing.T) {
	w := newFixture(t)
	w.many(5000)
	for _, c := range []struct {
		query template.Query
		found int
		index string
	}{
		{template.Query{Search: "NUMBER 4777"}, 1, "templates_parts"},
		{template.Query{Search: "nothing like it"}, 0, "templates_parts"},
		{template.Query{Search: "节 d", Shops: []int64{11}}, 0, "templates_parts"},
		{template.Query{Search: "drop"}, 26, "templates_opening"},
		{template.Query{Search: "3999"}, 1, "templates_parts"},
		{template.Query{States: []template.State{template.Paused}}, 2, "templates_state"},
		{template.Query{States: []template.State{template.Cancelled, template.Draft, template.Closed}}, 0, "templates_state"},
		{template.Query{States: []template.State{template.Paused}, Search: "1999", Descending: true}, 1, "templates_"},
	} {
		c.query.Limit = 26
		list, err := w.Templates.Templates(t.Context(), c.query)
		w.Must(err)
		sql, args := dropsdb.TemplateListSQL(c.query)
		plan := w.planOf(sql, args...)
		if len(list) != c.found || !strings.Contains(plan, c.index) {
			t.Errorf("%+v finds %d with\n%s", c.query, len(list), plan)
		}
		for line := range strings.SplitSeq(plan, "\n") {
			if n := 0; strings.Contains(line, "Rows Removed by Filter") {
				if _, err := fmt.Sscanf(strings.TrimSpace(line), "Rows Removed by Filter: %d", &n); err != nil || n > 100 {
					t.Errorf("%+v reads %d rows in vain:\n%s", c.query, n, plan)
				}
			}
		}
	}
}

// TestNotesAreFound: the search reads notes by their index, and models and changes keep them.
func TestNotesAreFound(t *testing.T) {
	w := newFixture(t)
	w.many(5000)
	w.Exec(`update templates set note = E'Approved by Ada\nCall the baker' where id = 42`)
	q := template.Query{Search: "the BAKER", Limit: 26}
	list, err := w.Templates.Templates(t.Context(), q)
	w.Must(err)
	sql, args := dropsdb.TemplateListSQL(q)
	if plan := w.planOf(sql, args...); len(list) != 1 || list[0].Note != "Approved by Ada\nCall the baker" || !strings.Contains(plan, "templates_note_parts") {
		t.Errorf("found %+v with\n%s", list, plan)
	}
}

// TestNamedTemplates: ids select templates together with any other filter, in the
// list's order.
func TestNamedTemplates(t *testing.T) {
	w := newFixture(t)
	w.many(20)
	for _, c := range []struct {
		query template.Query
		want  []int64
	}{
		{template.Query{IDs: []int64{7, 3, 99, 3}}, []int64{3, 7}},
		{template.Query{IDs: []int64{7, 4}, Shops: []int64{10}}, []int64{4}},
		{template.Query{IDs: []int64{99}}, nil},
	} {
		c.query.Limit = 10
		list, err := w.Templates.Templates(t.Context(), c.query)
		w.Must(err)
		if got := templateIDs(list); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%+v: %v", c.query, got)
		}
	}
}
