package review

import (
	"cmp"
	"maps"
	"slices"
)

// Rule is the name of a rule.
type Rule string

// The rules, at most ten. The first two are about claims of one network, one agent, or both.
const (
	// AtOnce: the claims arrived within 20 ms, which have five times the share of the claims from
	// elsewhere.
	AtOnce Rule = "at_once"
	// PassesInARow: their passes were earned within 10 s, which have five times the share of the passes
	// from elsewhere.
	PassesInARow Rule = "passes_in_a_row"
	// BeforeAnybody: the claim arrived within 20 ms after the opening.
	BeforeAnybody Rule = "before_anybody"
	// NothingOpened: the user had opened no page, no link and reserved no reminder.
	NothingOpened Rule = "nothing_opened"
	// ByProgram: the header User-Agent names a program, or nothing.
	ByProgram Rule = "by_program"
	// SharedPush, SharedPhone and SharedHousehold: more users than a family share it.
	SharedPush      Rule = "shared_push"
	SharedPhone     Rule = "shared_phone"
	SharedHousehold Rule = "shared_household"
)

// Rules returns all rules in the order of pages.
func Rules() []Rule {
	return []Rule{AtOnce, PassesInARow, BeforeAnybody, NothingOpened, ByProgram, SharedPush, SharedPhone, SharedHousehold}
}

// Thresholds of the rules.
const (
	window     = 20     // ms of [AtOnce] and [BeforeAnybody]
	passWindow = 10_000 // ms of [PassesInARow]
	denser     = 5      // times, of [AtOnce] and [PassesInARow]
	least      = 10     // claims of a group
	leastUsers = 5      // users of a group of [SharedPush] and [SharedPhone]
	leastHome  = 10     // users of a group of [SharedHousehold]
	elsewhere  = 100    // claims from elsewhere, without which a crowd is compared with nothing
)

// A set of rules is a bit each, in the order of [Rules].
type set uint16

func bit(r Rule) set { return 1 << slices.Index(Rules(), r) }

var (
	atOnce, inARow, before, nothing, program = bit(AtOnce), bit(PassesInARow), bit(BeforeAnybody), bit(NothingOpened), bit(ByProgram)
	shared                                   = map[Rule]set{SharedPush: bit(SharedPush), SharedPhone: bit(SharedPhone), SharedHousehold: bit(SharedHousehold)}
)

func (s set) rules() (list []Rule) {
	for i, r := range Rules() {
		if s&(1<<i) != 0 {
			list = append(list, r)
		}
	}
	return list
}

// accuses reports whether the signs of a claim are enough: one sign of its group, and one more.
func (s set) accuses() bool {
	return s&(atOnce|inARow) != 0 && (s&(atOnce|inARow) == atOnce|inARow || s&(before|nothing|program) != 0)
}

// A Group is claims that one review has found together.
type Group struct {
	Rules []Rule
	Facts Facts
	// Claims are places in the list that was judged.
	Claims []int
}

// Facts are the figures of a group's sentence.
type Facts struct {
	Claims   int64 `json:"claims"`
	Networks int64 `json:"networks"` // 0 = not known
	Agents   int64 `json:"agents"`   // 0 = not known
	// From and To are the milliseconds after the opening between which the claims arrived.
	From int64 `json:"from_ms"`
	To   int64 `json:"to_ms"`
	// Nothing counts the claims whose users had opened nothing.
	Nothing int64 `json:"nothing_opened"`
}

// origin is what the claims of a group have in common.
type origin struct {
	kind  byte
	value int64
	other int64
}

// Find returns the groups of claims that the rules accuse, the largest first. Each claim is in one
// group at most: in that of the network and agent, the network or the agent with the most accused
// claims, or in that of the phone, push token or household.
func Find(claims []Claim) []Group {
	f := finder{claims: claims, signs: make([]set, len(claims)), best: make([]origin, len(claims)), sizes: map[origin]int{},
		arrived: sorted(claims, arrivedAt), passed: sorted(claims, passedAt)}
	for _, of := range []func(Claim) (origin, bool){
		func(c Claim) (origin, bool) { return origin{'n', c.Network, 0}, c.Network != 0 },
		func(c Claim) (origin, bool) { return origin{'a', c.Agent, 0}, c.Agent != 0 },
		func(c Claim) (origin, bool) { return origin{'b', c.Network, c.Agent}, c.Network != 0 && c.Agent != 0 },
	} {
		f.crowds(of)
	}
	f.sharing(SharedPush, leastUsers, func(c Claim) int32 { return c.Push })
	f.sharing(SharedPhone, leastUsers, func(c Claim) int32 { return c.Phone })
	f.sharing(SharedHousehold, leastHome, func(c Claim) int32 { return c.Household })
	return f.groups()
}

type finder struct {
	claims []Claim
	signs  []set
	best   []origin
	sizes  map[origin]int
	// arrived and passed are the instants of all claims and of their passes, in ms after the opening,
	// in their order.
	arrived, passed []int64
}

func arrivedAt(c Claim) int64 { return int64(c.After) }
func passedAt(c Claim) int64  { return int64(c.After) - int64(c.PassAge) }

// sorted returns the values of all claims in their order.
func sorted(claims []Claim, of func(Claim) int64) []int64 {
	list := make([]int64, len(claims))
	for i, c := range claims {
		list[i] = of(c)
	}
	slices.Sort(list)
	return list
}

// between returns how many of the sorted values lie between from and to.
func between(sorted []int64, from, to int64) int {
	a, _ := slices.BinarySearch(sorted, from)
	b, _ := slices.BinarySearch(sorted, to+1)
	return b - a
}

// by returns the places of the claims of each origin that has at least n.
func (f *finder) by(of func(Claim) (origin, bool), n int) map[origin][]int {
	all := map[origin][]int{}
	for i, c := range f.claims {
		if o, ok := of(c); ok {
			all[o] = append(all[o], i)
		}
	}
	maps.DeleteFunc(all, func(_ origin, places []int) bool { return len(places) < n })
	return all
}

// crowds judges claims that come from one origin.
func (f *finder) crowds(of func(Claim) (origin, bool)) {
	for o, places := range f.by(of, least) {
		if len(f.claims)-len(places) < elsewhere {
			continue
		}
		dense := make([]set, len(places))
		f.dense(places, dense, atOnce, window, arrivedAt, f.arrived)
		f.dense(places, dense, inARow, passWindow, passedAt, f.passed)
		var accused []int
		for n, i := range places {
			if s := dense[n] | f.claims[i].own(); s.accuses() {
				accused = append(accused, i)
			}
		}
		if len(accused) < least {
			continue
		}
		for n, i := range places {
			if s := dense[n] | f.claims[i].own(); s.accuses() {
				f.take(i, s, o, len(accused))
			}
		}
	}
}

// own are the signs of the claim itself.
func (c Claim) own() (s set) {
	if c.After < window {
		s |= before
	}
	if !c.Opened {
		s |= nothing
	}
	if c.Program {
		s |= program
	}
	return s
}

// take puts the claim into the group of the origin, unless it is in a larger group.
func (f *finder) take(i int, s set, o origin, size int) {
	f.sizes[o] = size
	if f.signs[i] == 0 || size > f.sizes[f.best[i]] {
		f.best[i] = o
	}
	f.signs[i] |= s
}

// dense marks the claims of an origin that lie within width ms together with at least [least] others,
// if the window has a share of the origin's claims that is [denser] times its share of the claims from
// elsewhere: a reminder makes many people come at one time, wherever they are.
func (f *finder) dense(places []int, marks []set, mark set, width int64, of func(Claim) int64, all []int64) {
	type at struct {
		value int64
		place int
	}
	list := make([]at, len(places))
	for n, i := range places {
		list[n] = at{of(f.claims[i]), n}
	}
	slices.SortFunc(list, func(a, b at) int { return cmp.Compare(a.value, b.value) })
	n := len(list)
	from, marked := 0, 0 // list[:marked] has been marked, or is in no dense window
	for to := range list {
		for list[to].value-list[from].value >= width {
			from++
		}
		k := to - from + 1
		if k < least {
			continue
		}
		others, there := len(all)-n, between(all, list[from].value, list[to].value)-k
		if int64(k)*int64(others) < int64(denser)*int64(there+1)*int64(n) {
			continue
		}
		for marked = max(marked, from); marked <= to; marked++ {
			marks[list[marked].place] |= mark
		}
	}
}

// sharing accuses users who share one value, by that alone.
func (f *finder) sharing(r Rule, n int, of func(Claim) int32) {
	all := f.by(func(c Claim) (origin, bool) { return origin{'s', int64(shared[r]), int64(of(c))}, of(c) != 0 }, n)
	for o, places := range all {
		users := map[int64]bool{}
		for _, i := range places {
			users[int64(f.claims[i].UserID)] = true
		}
		if len(users) < n {
			continue
		}
		for _, i := range places {
			f.take(i, shared[r], o, len(places))
		}
	}
}

func (f *finder) groups() []Group {
	of := map[origin]*Group{}
	for i, s := range f.signs {
		if s == 0 {
			continue
		}
		o := f.best[i]
		if o.kind == 's' {
			o = origin{'s', o.value, 0} // one group of all families that share what the rule is about
		}
		if of[o] == nil {
			of[o] = &Group{}
		}
		of[o].Claims = append(of[o].Claims, i)
	}
	list := make([]Group, 0, len(of))
	for o, g := range of {
		f.describe(g)
		if o.kind == 's' || len(g.Claims) >= least {
			list = append(list, *g)
		}
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Claims), len(a.Claims)), cmp.Compare(a.Claims[0], b.Claims[0]))
	})
	return list
}

// describe sets rules and figures. A rule is named if it holds for at least half of the claims.
func (f *finder) describe(g *Group) {
	networks, agents, counts := map[int64]bool{}, map[int64]bool{}, map[Rule]int{}
	afters := make([]int64, len(g.Claims))
	for n, i := range g.Claims {
		c := f.claims[i]
		networks[c.Network], agents[c.Agent] = true, true
		afters[n] = int64(c.After)
		if !c.Opened {
			g.Facts.Nothing++
		}
		for _, r := range f.signs[i].rules() {
			counts[r]++
		}
	}
	delete(networks, 0)
	delete(agents, 0)
	g.Facts.Claims, g.Facts.Networks, g.Facts.Agents = int64(len(g.Claims)), int64(len(networks)), int64(len(agents))
	g.Facts.From, g.Facts.To = slices.Min(afters), slices.Max(afters)
	most := Rules()[0]
	for _, r := range Rules() {
		if 2*counts[r] >= len(g.Claims) {
			g.Rules = append(g.Rules, r)
		}
		if counts[r] > counts[most] {
			most = r
		}
	}
	if len(g.Rules) == 0 {
		g.Rules = []Rule{most}
	}
}
