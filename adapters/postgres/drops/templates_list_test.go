package drops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

func templateIDs(list []template.Template) []int64 {
	ids := make([]int64, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	return ids
}

func TestPagingOverEqualOpenings(t *testing.T) {
	w := newFixture(t)
	w.Draft(nil)
	// 250 templates open at the same time, and two at other times.
	for range 250 {
		w.Drop(pgtest.Drop{State: template.Draft, OpensAt: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)})
	}
	w.Drop(pgtest.Drop{State: template.Draft, OpensAt: time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC)})
	var want []int64
	w.Must(w.SQL.QueryRow(t.Context(), `select array_agg(id order by opens_at, id) from templates`).Scan(&want))
	for _, descending := range []bool{false, true} {
		for _, limit := range []int{1, 37, 250, 1000} {
			var got []int64
			q := template.Query{Descending: descending, Limit: limit}
			for range 300 {
				page, err := w.Templates.Templates(t.Context(), q)
				w.Must(err)
				if len(page) == 0 {
					break
				}
				if len(page) > limit {
					t.Fatalf("a page of %d, at most %d", len(page), limit)
				}
				got = append(got, templateIDs(page)...)
				q.After = template.Cursor{OpensAt: page[len(page)-1].OpensAt, ID: page[len(page)-1].ID}
			}
			if descending {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("descending %v, %d a page: %d rows, want %d in order", descending, limit, len(got), len(want))
			}
		}
	}
}

func TestFilters(t *testing.T) {
	w := newFixture(t)
	opens := pgtest.Spec(2 * time.Hour).OpensAt
	a := w.Draft(func(s *template.Spec) { s.ShopNumber = 1; s.OpensAt = opens })
	b := w.Draft(func(s *template.Spec) { s.ShopNumber = 2; s.OpensAt = opens.Add(time.Second) })
	c := w.Draft(func(s *template.Spec) { s.ShopNumber = 3; s.OpensAt = opens.Add(2 * time.Second) })
	for name, q := range map[string]struct {
		query template.Query
		want  []int64
	}{
		"all":           {template.Query{}, []int64{a.ID, b.ID, c.ID}},
		"one shop":      {template.Query{Shops: []int64{2}}, []int64{b.ID}},
		"two shops":     {template.Query{Shops: []int64{1, 3, 99}}, []int64{a.ID, c.ID}},
		"from is in":    {template.Query{From: new(opens.Add(time.Second))}, []int64{b.ID, c.ID}},
		"to is not in":  {template.Query{To: new(opens.Add(time.Second))}, []int64{a.ID}},
		"from and to":   {template.Query{From: &opens, To: new(opens.Add(2 * time.Second))}, []int64{a.ID, b.ID}},
		"everything":    {template.Query{Search: "Half", Shops: []int64{1, 2}, From: new(opens.Add(time.Microsecond)), States: []template.State{template.Draft}}, []int64{b.ID}},
		"nothing":       {template.Query{Shops: []int64{99}}, nil},
		"another state": {template.Query{States: []template.State{template.Open}}, nil},
		"unknown state": {template.Query{States: []template.State{"'; drop table templates; --"}}, nil},
		"limit zero":    {template.Query{Limit: -1}, []int64{a.ID}},
	} {
		if q.query.Limit == 0 {
			q.query.Limit = 100
		}
		got, err := w.Templates.Templates(t.Context(), q.query)
		if err != nil || !slices.Equal(templateIDs(got), q.want) && len(got)+len(q.want) > 0 {
			t.Errorf("%s: %v %v, want %v", name, templateIDs(got), err, q.want)
		}
	}
}

func TestSearch(t *testing.T) {
	w := newFixture(t)
	names := []string{"50% off", "50 per cent off", "a_b", "axb", `back\slash`, `say "hi"`, "it's", "双十一 半价券", "--; drop table templates", `\%_`}
	ids := map[string]int64{}
	for _, n := range names {
		ids[n] = w.Draft(func(s *template.Spec) { s.Name = n }).ID
	}
	for search, want := range map[string][]string{
		"%": {"50% off", `\%_`}, "50%": {"50% off"}, "_": {"a_b", `\%_`}, "a_b": {"a_b"}, `\`: {`back\slash`, `\%_`}, `k\s`: {`back\slash`},
		`\%_`: {`\%_`}, `"`: {`say "hi"`}, "'": {"it's"}, "''": nil, "OFF": {"50% off", "50 per cent off"}, "十一": {"双十一 半价券"},
		"drop table": {"--; drop table templates"}, "50% of_": nil, "%%": nil, `\\`: nil, "a\x00b": nil, "\xff": nil,
		fmt.Sprint(ids["a_b"]): {"a_b"},
	} {
		got, err := w.Templates.Templates(t.Context(), template.Query{Search: search, Limit: 100})
		var found []string
		for _, tpl := range got {
			found = append(found, tpl.Name)
		}
		slices.Sort(found)
		slices.Sort(want)
		// Ids are found too, and "50" could be an id.
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("%q: %q %v, want %q", search, found, err, want)
		}
	}
}

// TestTheFilterKnowsTheSameStates as [template.Template.State]. It uses random
// templates in every stored state, before, during and after their window, with
// and without stock.
func TestTheFilterKnowsTheSameStates(t *testing.T) {
	w := newFixture(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	stored := []template.State{template.Draft, template.Published, template.Paused, template.Closed, template.Cancelled}
	for n := range 400 {
		// No time lies within a minute of now, because now moves on during the
		// test.
		opens := time.Now().Add(5*time.Minute + time.Duration(1+rng.IntN(100))*time.Hour*time.Duration(1-2*rng.IntN(2))).Truncate(time.Second)
		d := pgtest.Drop{OpensAt: opens, ClosesAt: opens.Add(time.Duration(1+2*rng.IntN(100)) * 30 * time.Minute)}
		if rng.IntN(3) == 0 { // most coupons are valid for some hours after the claim
			d.ValidUntil = opens.Add(time.Duration(1+2*rng.IntN(100)) * 30 * time.Minute)
		}
		d.Issued, d.State = []int64{0, 9, 10}[rng.IntN(3)], stored[rng.IntN(len(stored))]
		w.Drop(d)
		if n < len(stored) { // one of each that is open by the clock and has no stock left
			w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '1 hour', valid_until = null, issued = 10, state = $1
				where id = (select max(id) from templates)`, stored[n])
		}
	}
	all, err := w.Templates.Templates(t.Context(), template.Query{Limit: 1000})
	w.Must(err)
	now := time.Now()
	seen := map[template.State]int{}
	for n := range 1 << len(template.States()) {
		var asked []template.State
		for i, s := range template.States() {
			if n>>i&1 == 1 {
				asked = append(asked, s)
			}
		}
		var want []int64
		for _, tpl := range all {
			if len(asked) == 0 || slices.Contains(asked, tpl.State(now)) {
				want = append(want, tpl.ID)
			}
		}
		got, err := w.Templates.Templates(t.Context(), template.Query{States: asked, Limit: 1000})
		w.Must(err)
		if !slices.Equal(templateIDs(got), want) && len(got)+len(want) > 0 {
			t.Errorf("%v: %d found, %d are", asked, len(got), len(want))
		}
		if len(asked) == 1 {
			seen[asked[0]] = len(want)
		}
	}
	for _, s := range template.States() {
		if seen[s] == 0 {
			t.Errorf("no sample is %s", s)
		}
	}
}

// TestWhatTheRulesAcceptCanBeStored: a template that the rules accept is stored
// and read back unchanged. The table must never refuse such a template.
func TestWhatTheRulesAcceptCanBeStored(t *testing.T) {
	w := newFixture(t)
	stored := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := anySpec().Draw(rt, "spec")
		if s.Check() != nil || s.CheckDraftOpening(pgtest.Clock()) != nil {
			return
		}
		stored++
		got, err := w.Service.Create(t.Context(), pgtest.Actor, s, "")
		if err != nil {
			rt.Fatalf("create: %v", err)
		}
		if !sameSpec(got.Spec, s.Own()) {
			rt.Fatalf("stored\n%+v, asked\n%+v", got.Spec, s)
		}
		s.Description += " "
		if s.Check() != nil {
			return
		}
		if got, err = w.Service.Edit(t.Context(), pgtest.Actor, got.ID, template.Edition{Version: got.Version, Spec: s}); err != nil || !sameSpec(got.Spec, s.Own()) {
			rt.Fatalf("edited\n%+v (%v), asked\n%+v", got.Spec, err, s)
		}
	})
	if stored < 10 {
		t.Errorf("only %d specs were valid", stored)
	}
}

func sameSpec(a, b template.Spec) bool {
	until := a.ValidUntil == nil && b.ValidUntil == nil || a.ValidUntil != nil && b.ValidUntil != nil && a.ValidUntil.Equal(*b.ValidUntil)
	times := a.OpensAt.Equal(b.OpensAt) && a.ClosesAt.Equal(b.ClosesAt)
	a.OpensAt, a.ClosesAt, a.ValidUntil = b.OpensAt, b.ClosesAt, b.ValidUntil
	return until && times && a == b
}

// anySpec returns mostly valid specs, with random values in a few fields.
func anySpec() *rapid.Generator[template.Spec] {
	return rapid.Custom(func(t *rapid.T) template.Spec {
		s := pgtest.Spec(2 * time.Hour)
		s.Kind = rapid.SampledFrom([]template.Kind{template.AmountOff, template.ThresholdOff, template.PercentOff}).Draw(t, "kind")
		s.Threshold, s.PercentOff, s.MaxOff = 5000, 20, 300
		s.Name = rapid.StringN(1, 125, -1).Draw(t, "name")
		if rapid.Bool().Draw(t, "wild") {
			wildly(t, &s)
		}
		return s
	})
}

func wildly(t *rapid.T, s *template.Spec) {
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2), rapid.Int64Range(0, 2_000_000_000_000))
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }))
	for _, change := range rapid.SliceOfN(rapid.SampledFrom([]func(){
		func() { s.AmountOff = money.Amount(number.Draw(t, "amount")) },
		func() { s.Threshold = money.Amount(number.Draw(t, "threshold")) },
		func() { s.MaxOff = money.Amount(number.Draw(t, "max")) },
		func() { s.PercentOff = int(number.Draw(t, "percent")) },
		func() { s.Stock = number.Draw(t, "stock") },
		func() { s.PerUserLimit = int(number.Draw(t, "limit")) },
		func() { s.ValidHours = int(number.Draw(t, "hours")) },
		func() {
			s.ValidHours, s.ValidUntil = 0, new(s.OpensAt.Add(time.Duration(number.Draw(t, "until"))).Truncate(time.Microsecond))
		},
		func() { s.ShopNumber = number.Draw(t, "shop") },
		func() { s.Product = text.Draw(t, "product") },
		func() { s.Description = text.Draw(t, "description") },
		func() { s.Target = template.Product },
		func() { s.ClaimURL = "https://shop.example/" + text.Draw(t, "path") },
		func() { s.OpensAt, s.ClosesAt = s.OpensAt.AddDate(6900, 0, 0), s.OpensAt.AddDate(6950, 0, 0) },
		func() { s.OpensAt = s.OpensAt.AddDate(-rapid.SampledFrom([]int{20, 30, 2025}).Draw(t, "years"), 0, 0) },
	}), 0, 4).Draw(t, "changes") {
		change()
	}
}
