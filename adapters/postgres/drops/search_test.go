package drops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
)

// TestPartsMissNothing: whatever a name holds, in any case, has its parts
// among the name's, so that the index cannot hide what the comparison finds.
func TestPartsMissNothing(t *testing.T) {
	w := newWorld(t)
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

// planOf explains a statement that a store would send, without scanning whole
// tables where there is a way around it.
func (w *world) planOf(sql string, args ...any) string {
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

// many fills the list so that the ways through it differ.
func (w *world) many(n int) {
	w.Helper()
	w.Exec(`insert into shops values (10, 's', 'UTC'), (11, 's', 'UTC')`)
	w.Exec(`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10 + n % 2, case when n % 50 = 0 then '春节 ' else '' end || 'Drop number ' || n, 'amount_off', 1, 'CNY', 'shop', 10, 1, date_trunc('second', now()) + (n - 50) * interval '1 minute',
			date_trunc('second', now()) + n * interval '2 hours' + interval '1 year', 1, 'claim', 'durable', case when n % 1999 = 0 then 'paused' else 'published' end
		from generate_series(1, $1) n`, n)
	w.Exec(`analyze templates`)
}

// TestSearchReadsWhatItShows: rare names come from the index of parts, common
// ones from the list's own order, and rare states from theirs.
func TestSearchReadsWhatItShows(t *testing.T) {
	w := newWorld(t)
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

// TestNamedTemplates: ids select whatever else does, in the list's order.
func TestNamedTemplates(t *testing.T) {
	w := newWorld(t)
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

func TestCampaignSearch(t *testing.T) {
	w := newWorld(t)
	w.Exec(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		select name, 0, '{}', '{"kind": "all"}', now(), now() + interval '1 hour', 'draft', 'x', 'x' from unnest(array['Spring 50% off', 'spring_tea', '春节 letter', '4']) name`)
	store := campaignsdb.NewCampaigns(w.DB, audiencedb.NewSegments(w.DB))
	for search, want := range map[string]string{"SPRING": "spring_tea,Spring 50% off", "春": "春节 letter", "春节 l": "春节 letter", "0%": "Spring 50% off", "g_t": "spring_tea",
		"4": "4", "2": "spring_tea", "\x00": "", "\xff": "", strings.Repeat("x", 100_000): "", "%%": "", "none": ""} {
		list, err := store.Campaigns(t.Context(), campaign.Query{Search: search, Limit: 10})
		w.Must(err)
		var names []string
		for _, c := range list {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%.20q finds %q, want %q", search, got, want)
		}
	}
}

// TestCouponsByState: what is shown as expired is what is stored so and what
// the next sweep will expire, and nothing else.
func TestCouponsByState(t *testing.T) {
	w := newWorld(t)
	w.many(2)
	w.Exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at)
		select 1 + n % 2, 1 + n % 3, n, 'claim', (array['unused', 'unused', 'locked', 'used', 'expired', 'revoked'])[1 + n % 6], now() - interval '2 days',
			now() + case when n % 6 = 1 then -1 else 1 end * interval '1 hour' from generate_series(1, 60) n`)
	all := func(q coupon.Query) (ids []int64) {
		t.Helper()
		q.Limit = 7 // a page at a time
		for {
			list, err := postgres.NewCouponSteps(w.DB).Listed(t.Context(), q)
			w.Must(err)
			if len(list) == 0 {
				return ids
			}
			for _, l := range list {
				if q.State != "" && l.At(l.Now) != q.State {
					t.Errorf("%+v shows a coupon that is %s", q, l.At(l.Now))
				}
				ids = append(ids, l.ID)
			}
			q.BeforeID = list[len(list)-1].ID
		}
	}
	for _, q := range []coupon.Query{{}, {TemplateID: 2}, {UserID: 3}, {TemplateID: 1, UserID: 2}, {Shops: []int64{11}}} {
		var byState []int64
		for _, s := range coupon.States() {
			q.State = s
			byState = append(byState, all(q)...)
		}
		q.State = ""
		whole := all(q)
		if !slices.IsSortedFunc(whole, func(a, b int64) int { return int(b - a) }) || len(whole) == 0 {
			t.Errorf("%+v: %v", q, whole)
		}
		slices.Sort(byState)
		slices.Sort(whole)
		if !slices.Equal(byState, whole) {
			t.Errorf("%+v: by state %v, together %v", q, byState, whole)
		}
	}
}
