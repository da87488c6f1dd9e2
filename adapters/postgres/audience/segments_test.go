package audience_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

// For every rule PostgreSQL finds exactly the users that the reference finds, in order and page
// by page. The count agrees, and the stored form of the rule has the same meaning.
func TestSegmentsMeanWhatTheySay(t *testing.T) {
	w := newFixture(t)
	people, segments := w.crowd(), audiencedb.NewSegments(w.DB)
	rapid.Check(t, func(rt *rapid.T) {
		rule := anyRule(3).Draw(rt, "rule")
		if err := rule.Check(); err != nil {
			rt.Fatal(err)
		}
		g := w.segment("any", rule)
		var want []user.ID
		for id, f := range people {
			if truth(rule, f) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		var got []user.ID
		step := rapid.IntRange(1, 100).Draw(rt, "step")
		for after := user.ID(0); ; after = got[len(got)-1] {
			page, err := segments.Members(t.Context(), g.ID, after, step)
			if err != nil {
				rt.Fatal(err)
			}
			if got = append(got, page...); len(page) == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			raw, _ := json.Marshal(rule)
			rt.Fatalf("%s\nfinds %v\nwant  %v", raw, got, want)
		}
		if n, looked, _, err := segments.CountRange(t.Context(), rule, 0, 1000); err != nil || n != int64(len(want)) || looked != 240 {
			rt.Fatalf("counted %d of %d, want %d, %v", n, looked, len(want), err)
		}
		e, err := segments.EstimateRule(t.Context(), rule)
		if err != nil || !e.Exact || e.Members != int64(len(want)) || e.Users != 240 {
			rt.Fatalf("estimate %+v, want %d, %v", e, len(want), err)
		}
	})
}

// An estimate of a large table is about right and quick, and its margin is realistic, also for
// similar users that were stored together.
func TestEstimates(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, locale, attributes) select n, 'Somebody with a name of ordinary length ' || n,
		case when n > 150000 then 'zh-CN' else 'en' end, jsonb_build_object('score', n % 100, 'tier', case when n % 10 = 0 then 'gold' else 'none' end)
		from generate_series(1, 200000) n`)
	w.Exec(`analyze users`)
	for name, c := range map[string]struct {
		rule segment.Rule
		want int64
	}{
		"a tenth":         {segment.Leaf(segment.Attribute, "tier", segment.Is, "gold"), 20_000},
		"a quarter, runs": {segment.Leaf(segment.Locale, "", segment.OneOf, "zh"), 50_000},
		"nobody":          {segment.Leaf(segment.Attribute, "tier", segment.Is, "silver"), 0},
		"everybody":       {segment.Everybody(), 200_000},
		"few":             {segment.Leaf(segment.Attribute, "score", segment.AtLeast, "99"), 2_000},
	} {
		outside, took := 0, make([]time.Duration, 10)
		for i := range took {
			began := time.Now()
			e, err := audiencedb.NewSegments(w.DB).EstimateRule(t.Context(), c.rule)
			w.Must(err)
			took[i] = time.Since(began)
			if off := e.Members - c.want; off > e.Margin || -off > e.Margin {
				outside++
			}
			if e.Exact || e.Looked == 0 || e.Looked > 200_000 || e.Users < 195_000 || e.Users > 205_000 {
				t.Errorf("%s: %+v", name, e)
			}
			if name == "a tenth" && e.Margin > 6_000 {
				t.Errorf("%s: a margin of %d says nothing", name, e.Margin)
			}
		}
		// The median: a slow machine may hold up some of them.
		if slices.Sort(took); took[5] > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		// One in twenty estimates may be outside. That more than four of ten are is one in a
		// million.
		if outside > 4 {
			t.Errorf("%s: %d of 10 estimates lie outside of their margin", name, outside)
		}
	}
}

// In a table of a few hundred pages the sample would be most of the pages: all rows are read,
// once.
func TestEstimatesOfFewPages(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into users (id, name, attributes) select n, 'Somebody with a name of ordinary length ' || n,
		jsonb_build_object('score', n % 5) from generate_series(1, 9000) n`)
	w.Exec(`analyze users`)
	if pages := w.Number(`select pg_relation_size('users') / current_setting('block_size')::int`); pages <= 64 || pages > 250 {
		t.Fatalf("%d pages", pages)
	}
	for _, c := range []struct {
		rule segment.Rule
		want int64
	}{{segment.Leaf(segment.Attribute, "score", segment.AtLeast, "2"), 5400}, {segment.Everybody(), 9000}, {segment.Leaf(segment.Attribute, "score", segment.AtLeast, "9"), 0}} {
		e, err := audiencedb.NewSegments(w.DB).EstimateRule(t.Context(), c.rule)
		w.Must(err)
		// A machine that is too busy to read all rows in time returns an estimate.
		if e.Exact && e != (segment.Estimate{Members: c.want, Exact: true, Looked: 9000, Users: 9000}) || !e.Exact && e.Looked >= 9000 {
			t.Errorf("%+v, want %d", e, c.want)
		}
	}
}

func TestSegmentLife(t *testing.T) {
	w := newFixture(t)
	s := audiencedb.NewSegments(w.DB)
	gold := segment.Leaf(segment.Attribute, "tier", segment.Is, "gold")
	g := w.segment("Gold", segment.Rule{Match: segment.All, Rules: []segment.Rule{gold}})
	w.Must(s.StoreCount(t.Context(), g.ID, g.Version, 12))
	renamed := g
	renamed.Name = "Gold members"
	renamed, err := s.SaveSegment(t.Context(), renamed, pgtest.AboutSegment("segment.save"))
	w.Must(err)
	if renamed.Version != 2 || renamed.Members == nil || *renamed.Members != 12 {
		t.Fatalf("renamed %+v", renamed)
	}
	if _, err := s.SaveSegment(t.Context(), g, pgtest.AboutSegment("segment.save")); !errors.Is(err, fault.ErrStale) {
		t.Fatalf("a stale edit: %v", err)
	}
	renamed.Rule = segment.Everybody()
	changed, err := s.SaveSegment(t.Context(), renamed, pgtest.AboutSegment("segment.save"))
	w.Must(err)
	if changed.Members != nil || changed.CountedAt != nil {
		t.Fatalf("the count outlives the rule: %+v", changed)
	}
	w.Must(s.StoreCount(t.Context(), g.ID, 2, 99)) // of a rule that is gone
	copied, err := s.CloneSegment(t.Context(), g.ID, "Copy", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	if copied.ID == g.ID || copied.Name != "Copy" || copied.Members != nil || copied.Rule.Match != segment.All || copied.CreatedBy != "staff:14 Ada" {
		t.Fatalf("copied %+v", copied)
	}
	list, err := s.Segments(t.Context(), segment.Query{Limit: 10})
	w.Must(err)
	if len(list) != 2 || list[0].ID != copied.ID {
		t.Fatalf("listed %+v", list)
	}
	list, err = s.Segments(t.Context(), segment.Query{Limit: 10, After: segment.Cursor{UpdatedAt: list[0].UpdatedAt, ID: list[0].ID}})
	w.Must(err)
	if len(list) != 1 || list[0].ID != g.ID {
		t.Fatalf("the second page %+v", list)
	}
	if list, err = s.Segments(t.Context(), segment.Query{Search: " GOLD", Kind: segment.ByRules, Limit: 10}); err != nil || len(list) != 1 {
		t.Fatalf("searched %+v %v", list, err)
	}
	w.Must(s.DeleteSegment(t.Context(), g.ID, pgtest.AboutSegment("segment.delete")))
	for _, err := range []error{s.DeleteSegment(t.Context(), g.ID, pgtest.AboutSegment("segment.delete")), pgtest.ErrOf(s.Segment(t.Context(), g.ID)),
		pgtest.ErrOf(s.SaveSegment(t.Context(), changed, pgtest.AboutSegment("segment.save"))), pgtest.ErrOf(s.CloneSegment(t.Context(), g.ID, "x", pgtest.AboutSegment("segment.create"))),
		pgtest.ErrOf(s.Members(t.Context(), g.ID, 0, 1))} {
		if !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("of a deleted one: %v", err)
		}
	}
	if n := w.Number(`select count(*) from audit where object_kind = 'segment'`); n != 5 {
		t.Errorf("%d audit entries, want 5", n)
	}
}

// Lists take ids in any order, together and again, and give them back in order.
func TestListMembers(t *testing.T) {
	w := newFixture(t)
	s := audiencedb.NewSegments(w.DB)
	g, err := s.CreateSegment(t.Context(), segment.Segment{Name: "List", Kind: segment.ByList, Rule: segment.Everybody()}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	var all []user.ID
	for i := range 3000 {
		all = append(all, user.ID(1+i*37))
	}
	all = append(all, 1<<40, 1<<63-1)
	var adding sync.WaitGroup
	for part := range 4 { // each half is added twice, by two at once
		adding.Go(func() {
			half := all[:len(all)/2]
			if part%2 == 1 {
				half = all[len(all)/2:]
			}
			for ids := range slices.Chunk(half, 400) {
				if _, err := s.AddMembers(t.Context(), g.ID, ids); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	g, err = s.Segment(t.Context(), g.ID)
	w.Must(err)
	if g.Members == nil || *g.Members != int64(len(all)) || w.Number(`select sum(count) from segment_members`) != int64(len(all)) {
		t.Fatalf("%d counted, want %d", *g.Members, len(all))
	}
	for _, step := range []int{1, 7, 5000} {
		var got []user.ID
		for after := user.ID(0); ; after = got[len(got)-1] {
			page, err := s.Members(t.Context(), g.ID, after, step)
			w.Must(err)
			if got = append(got, page...); len(page) == 0 || len(got) > len(all) {
				break
			}
			if step == 1 && len(got) > 50 {
				break
			}
		}
		if !slices.Equal(got, all[:len(got)]) || step > 1 && len(got) != len(all) {
			t.Fatalf("step %d: %d of %d in order", step, len(got), len(all))
		}
	}
	if added, err := s.AddMembers(t.Context(), g.ID, all[:10]); added != 0 || err != nil {
		t.Fatalf("again: %d %v", added, err)
	}
	copied, err := s.CloneSegment(t.Context(), g.ID, "Copy", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	if got, err := s.Members(t.Context(), copied.ID, 0, 9000); err != nil || !slices.Equal(got, all) || *copied.Members != int64(len(all)) {
		t.Fatalf("the copy has %d, %v", len(got), err)
	}
	w.Must(s.DeleteSegment(t.Context(), g.ID, pgtest.AboutSegment("segment.delete")))
	if n := w.Number(`select count(*) from segment_members where segment_id = $1`, g.ID); n != 0 {
		t.Fatalf("%d chunks outlive their list", n)
	}
	if _, err := s.AddMembers(t.Context(), w.segment("rules", segment.Everybody()).ID, all); !errors.Is(err, segment.ErrIsRules) {
		t.Fatalf("ids for rules: %v", err)
	}
}
