package postgres_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/postgres"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

var clerk14 = staff.Actor{Label: "staff:14", Name: "Ada", Role: staff.Marketer}

func about(action string) staff.Entry {
	return staff.Entry{Actor: clerk14, Action: action, ObjectKind: "segment"}
}

func (w *world) segment(name string, r segment.Rule) segment.Segment {
	w.Helper()
	g, err := postgres.NewSegments(w.db).CreateSegment(w.Context(), segment.Segment{Name: name, Kind: segment.ByRules, Rule: r}, about("segment.create"))
	w.must(err)
	return g
}

// fact is one user as the reference sees them.
type fact struct {
	attributes   map[string]any
	locale, zone string
	contacts     string // letters of email, sms, webpush
	off          uint8
	age          int // days
	reserved     map[string]int
	coupons      map[string]string // template → state
	issued       int               // days ago; 0 = never
}

// crowd fills the database with users who differ in everything a rule can ask
// for, and returns them as the reference sees them.
func (w *world) crowd() map[user.ID]fact {
	people := map[user.ID]fact{}
	locales, zones := []string{"", "en", "en-GB", "zh-CN", "ZH", "zha"}, []string{"", "UTC", "Asia/Shanghai"}
	values := []any{nil, "gold", "Gold medal", "7", 7.0, -0.5, true, "2026-11-20", "2026-11-20T10:00:00Z", "2025-01-01", "100%", "it's"}
	for i := range 240 {
		f := fact{attributes: map[string]any{}, locale: locales[i%6], zone: zones[i%3], off: uint8(i * 7 % 32), age: 1 + i%90,
			reserved: map[string]int{}, coupons: map[string]string{}}
		if i%4 > 0 {
			f.attributes["tier"] = values[i%len(values)]
		}
		if i%5 == 0 {
			f.attributes["score"] = float64(i)
		}
		for n, c := range "esw" {
			if i>>n&1 == 1 {
				f.contacts += string(c)
			}
		}
		id := user.ID(10 + 3*i)
		if i%3 == 0 {
			f.reserved["7"] = 1 + i%40
		}
		if i%7 == 0 {
			f.reserved["8"] = 1 + i%60
		}
		if i%6 == 1 || i%9 == 0 {
			f.coupons["7"] = []string{"unused", "locked", "used", "expired", "revoked"}[i%5]
			f.issued = 1 + i%50
		}
		people[id] = f
		w.store(id, f)
	}
	return people
}

func (w *world) store(id user.ID, f fact) {
	w.Helper()
	c := user.Change{ID: id, Locale: &f.locale, Timezone: &f.zone, OptOuts: &f.off, Attributes: &f.attributes}
	if strings.Contains(f.contacts, "e") {
		c.Email = new("u@example.com")
	}
	if strings.Contains(f.contacts, "s") {
		c.Phone = new("+8613800138000")
	}
	if strings.Contains(f.contacts, "w") {
		c.Push = &[]user.PushSubscription{{Endpoint: "https://p.example.com/1"}}
	}
	w.upsert(c)
	w.exec(`update users set created_at = now() - make_interval(days => $2, hours => 1) where id = $1`, id, f.age)
	for t, days := range f.reserved {
		w.exec(`insert into reservations (template_id, user_id, slots, created_at) values ($1::text::bigint, $2, 1, now() - make_interval(days => $3, hours => 1))`, t, id, days)
	}
	for t, state := range f.coupons {
		w.exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at)
			values ($1::text::bigint, $2, $2, 'claim', $3, now() - make_interval(days => $4, hours => 1), now() + interval '1 day')`, t, id, state, f.issued)
	}
}

// truth judges a rule the slow and simple way.
func truth(r segment.Rule, f fact) bool {
	if r.Match == "" {
		return holds(r.Condition, f)
	}
	n := 0
	for _, sub := range r.Rules {
		if truth(sub, f) {
			n++
		}
	}
	switch r.Match {
	case segment.All:
		return n == len(r.Rules)
	case segment.Any:
		return n > 0
	}
	return n == 0
}

func holds(c segment.Condition, f fact) bool {
	days := func() int { n, _ := strconv.Atoi(c.Values[0]); return n }
	switch c.Field {
	case segment.Attribute:
		return attributeHolds(c, f.attributes[c.Name])
	case segment.Locale:
		found := slices.ContainsFunc(c.Values, func(tag string) bool {
			l, tag := strings.ToLower(f.locale), strings.ToLower(tag)
			return l == tag || strings.HasPrefix(l, tag+"-")
		})
		return found == (c.Op == segment.OneOf)
	case segment.Timezone:
		return slices.Contains(c.Values, f.zone) == (c.Op == segment.OneOf)
	case segment.Contact:
		return strings.Contains(f.contacts, c.Values[0][:1]) == (c.Op == segment.Has)
	case segment.OptedOut:
		bit := slices.Index(segment.ChannelNames(), c.Values[0])
		return (f.off>>bit&1 == 1) == (c.Op == segment.Is)
	case segment.Created:
		return dated(c, f.age, days)
	case segment.Reserved:
		return reservedHolds(c, f, days)
	case segment.Coupon:
		return couponHolds(c, f)
	case segment.ReservedNotClaimed:
		return slices.ContainsFunc(c.Values, func(t string) bool { return f.reserved[t] > 0 && f.coupons[t] == "" })
	case segment.Claimed:
		return (f.issued > 0 && f.issued < days()) == (c.Op == segment.WithinDays)
	}
	panic("a field that the reference does not know")
}

func dated(c segment.Condition, age int, days func() int) bool {
	created := time.Now().UTC().Add(-time.Duration(age*24+1) * time.Hour)
	switch c.Op {
	case segment.WithinDays:
		return age < days()
	case segment.NotWithinDays:
		return age >= days()
	}
	at, _ := segment.ParseDate(c.Values[0])
	if c.Op == segment.Before {
		return created.Before(at)
	}
	return !created.Before(at.AddDate(0, 0, 1))
}

func reservedHolds(c segment.Condition, f fact, days func() int) bool {
	some := func(is func(t string, age int) bool) bool {
		for t, age := range f.reserved {
			if is(t, age) {
				return true
			}
		}
		return false
	}
	if c.Op == segment.Template || c.Op == segment.NotTemplate {
		return some(func(t string, _ int) bool { return slices.Contains(c.Values, t) }) == (c.Op == segment.Template)
	}
	return some(func(_ string, age int) bool { return age < days() }) == (c.Op == segment.WithinDays)
}

func couponHolds(c segment.Condition, f fact) bool {
	states := map[segment.Op]string{segment.Holds: "unused locked", segment.Used: "used", segment.Expired: "expired",
		segment.Had: "unused locked used expired revoked", segment.NeverHad: "unused locked used expired revoked"}[c.Op]
	found := slices.ContainsFunc(c.Values, func(t string) bool {
		return f.coupons[t] != "" && slices.Contains(strings.Fields(states), f.coupons[t])
	})
	return found == (c.Op != segment.NeverHad)
}

func attributeHolds(c segment.Condition, v any) bool {
	text, is := "", v != nil
	switch x := v.(type) {
	case string:
		text = x
	case float64:
		text = strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		text = strconv.FormatBool(x)
	}
	date := func() bool { _, ok := v.(string); return ok && len(text) >= 10 && text[4] == '-' }
	number := func(compare func(a, b float64) bool) bool {
		x, ok := v.(float64)
		y, _ := strconv.ParseFloat(c.Values[0], 64)
		return ok && compare(x, y)
	}
	switch c.Op {
	case segment.Exists, segment.Missing:
		return is == (c.Op == segment.Exists)
	case segment.Is, segment.IsNot:
		return (is && text == c.Values[0]) == (c.Op == segment.Is)
	case segment.OneOf, segment.NotOneOf:
		return (is && slices.Contains(c.Values, text)) == (c.Op == segment.OneOf)
	case segment.Contains:
		return is && strings.Contains(strings.ToLower(text), strings.ToLower(c.Values[0]))
	case segment.Above:
		return number(func(a, b float64) bool { return a > b })
	case segment.AtLeast:
		return number(func(a, b float64) bool { return a >= b })
	case segment.Below:
		return number(func(a, b float64) bool { return a < b })
	case segment.AtMost:
		return number(func(a, b float64) bool { return a <= b })
	case segment.Before:
		return date() && text < c.Values[0]
	case segment.After:
		return date() && text > c.Values[0] && !strings.HasPrefix(text, c.Values[0])
	}
	panic("an operator that the reference does not know")
}

// anyRule draws rules of every field and operator.
func anyRule(depth int) *rapid.Generator[segment.Rule] {
	return rapid.Custom(func(t *rapid.T) segment.Rule {
		if depth > 1 && rapid.IntRange(0, 2).Draw(t, "group") == 0 {
			g := segment.Rule{Match: rapid.SampledFrom(segment.Matches()).Draw(t, "match")}
			g.Rules = rapid.SliceOfN(anyRule(depth-1), 1, 3).Draw(t, "rules")
			return g
		}
		field := rapid.SampledFrom(segment.Fields()).Draw(t, "field")
		op := rapid.SampledFrom(segment.Ops(field)).Draw(t, "op")
		kind, _ := segment.ValueOf(field, op)
		c := segment.Condition{Field: field, Op: op}
		if field == segment.Attribute {
			c.Name = rapid.SampledFrom([]string{"tier", "score", "unknown"}).Draw(t, "name")
		}
		choices := map[segment.Value][]string{
			segment.Text: {"gold", "7", "true", "GOLD", "100%", "it's", "_", "2026-11-20"}, segment.Texts: {"gold", "7", "true", "-0.5"},
			segment.Number: {"7", "-1", "100", "0.5"}, segment.Date: {"2026-11-20", "2025-06-01"}, segment.Days: {"1", "30", "365"},
			segment.Languages: {"en", "zh", "zh-CN", "fr"}, segment.Zones: {"UTC", "Asia/Shanghai", "Europe/Berlin"},
			segment.ContactKind: segment.ContactKinds(), segment.ChannelName: segment.ChannelNames(), segment.TemplateIDs: {"7", "8", "9"}}[kind]
		switch {
		case kind == segment.NoValue:
		case kind.Many():
			c.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(choices), 1, 2, rapid.ID[string]).Draw(t, "values")
		default:
			c.Values = []string{rapid.SampledFrom(choices).Draw(t, "value")}
		}
		return segment.Rule{Condition: c}
	})
}

// Whatever the rule, PostgreSQL finds exactly whom the reference finds, in
// order and page by page, the count agrees, and the stored form means the same.
func TestSegmentsMeanWhatTheySay(t *testing.T) {
	w := newWorld(t)
	people, segments := w.crowd(), postgres.NewSegments(w.db)
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

// A sample of a large table is about right, quick, and honest about how far
// off it may be: also for users that are stored in runs.
func TestEstimates(t *testing.T) {
	w := newWorld(t)
	w.exec(`insert into users (id, name, locale, attributes) select n, 'Somebody with a name of ordinary length ' || n,
		case when n > 150000 then 'zh-CN' else 'en' end, jsonb_build_object('score', n % 100, 'tier', case when n % 10 = 0 then 'gold' else 'none' end)
		from generate_series(1, 200000) n`)
	w.exec(`analyze users`)
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
		outside := 0
		for range 10 {
			began := time.Now()
			e, err := postgres.NewSegments(w.db).EstimateRule(t.Context(), c.rule)
			w.must(err)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: took %v", name, took)
			}
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
		// One in twenty may be; that more than four of ten are is one in a million.
		if outside > 4 {
			t.Errorf("%s: %d of 10 estimates lie outside of their margin", name, outside)
		}
	}
}

func TestSegmentLife(t *testing.T) {
	w := newWorld(t)
	s := postgres.NewSegments(w.db)
	gold := segment.Leaf(segment.Attribute, "tier", segment.Is, "gold")
	g := w.segment("Gold", segment.Rule{Match: segment.All, Rules: []segment.Rule{gold}})
	w.must(s.StoreCount(t.Context(), g.ID, g.Version, 12))
	renamed := g
	renamed.Name = "Gold members"
	renamed, err := s.SaveSegment(t.Context(), renamed, about("segment.save"))
	w.must(err)
	if renamed.Version != 2 || renamed.Members == nil || *renamed.Members != 12 {
		t.Fatalf("renamed %+v", renamed)
	}
	if _, err := s.SaveSegment(t.Context(), g, about("segment.save")); !errors.Is(err, fault.ErrStale) {
		t.Fatalf("a stale edit: %v", err)
	}
	renamed.Rule = segment.Everybody()
	changed, err := s.SaveSegment(t.Context(), renamed, about("segment.save"))
	w.must(err)
	if changed.Members != nil || changed.CountedAt != nil {
		t.Fatalf("the count outlives the rule: %+v", changed)
	}
	w.must(s.StoreCount(t.Context(), g.ID, 2, 99)) // of a rule that is gone
	copied, err := s.CloneSegment(t.Context(), g.ID, "Copy", about("segment.create"))
	w.must(err)
	if copied.ID == g.ID || copied.Name != "Copy" || copied.Members != nil || copied.Rule.Match != segment.All || copied.CreatedBy != "staff:14 Ada" {
		t.Fatalf("copied %+v", copied)
	}
	list, err := s.Segments(t.Context(), segment.Query{Limit: 10})
	w.must(err)
	if len(list) != 2 || list[0].ID != copied.ID {
		t.Fatalf("listed %+v", list)
	}
	list, err = s.Segments(t.Context(), segment.Query{Limit: 10, After: segment.Cursor{UpdatedAt: list[0].UpdatedAt, ID: list[0].ID}})
	w.must(err)
	if len(list) != 1 || list[0].ID != g.ID {
		t.Fatalf("the second page %+v", list)
	}
	if list, err = s.Segments(t.Context(), segment.Query{Search: " GOLD", Kind: segment.ByRules, Limit: 10}); err != nil || len(list) != 1 {
		t.Fatalf("searched %+v %v", list, err)
	}
	w.must(s.DeleteSegment(t.Context(), g.ID, about("segment.delete")))
	for _, err := range []error{s.DeleteSegment(t.Context(), g.ID, about("segment.delete")), errOf(s.Segment(t.Context(), g.ID)),
		errOf(s.SaveSegment(t.Context(), changed, about("segment.save"))), errOf(s.CloneSegment(t.Context(), g.ID, "x", about("segment.create"))),
		errOf(s.Members(t.Context(), g.ID, 0, 1))} {
		if !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("of a deleted one: %v", err)
		}
	}
	if n := w.number(`select count(*) from audit where object_kind = 'segment'`); n != 5 {
		t.Errorf("%d audit entries, want 5", n)
	}
}

func errOf[T any](_ T, err error) error { return err }

// Lists take ids in any order, together and again, and give them back in order.
func TestListMembers(t *testing.T) {
	w := newWorld(t)
	s := postgres.NewSegments(w.db)
	g, err := s.CreateSegment(t.Context(), segment.Segment{Name: "List", Kind: segment.ByList, Rule: segment.Everybody()}, about("segment.create"))
	w.must(err)
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
	w.must(err)
	if g.Members == nil || *g.Members != int64(len(all)) || w.number(`select sum(count) from segment_members`) != int64(len(all)) {
		t.Fatalf("%d counted, want %d", *g.Members, len(all))
	}
	for _, step := range []int{1, 7, 5000} {
		var got []user.ID
		for after := user.ID(0); ; after = got[len(got)-1] {
			page, err := s.Members(t.Context(), g.ID, after, step)
			w.must(err)
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
	copied, err := s.CloneSegment(t.Context(), g.ID, "Copy", about("segment.create"))
	w.must(err)
	if got, err := s.Members(t.Context(), copied.ID, 0, 9000); err != nil || !slices.Equal(got, all) || *copied.Members != int64(len(all)) {
		t.Fatalf("the copy has %d, %v", len(got), err)
	}
	w.must(s.DeleteSegment(t.Context(), g.ID, about("segment.delete")))
	if n := w.number(`select count(*) from segment_members where segment_id = $1`, g.ID); n != 0 {
		t.Fatalf("%d chunks outlive their list", n)
	}
	if _, err := s.AddMembers(t.Context(), w.segment("rules", segment.Everybody()).ID, all); !errors.Is(err, segment.ErrIsRules) {
		t.Fatalf("ids for rules: %v", err)
	}
}
