package review_test

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"dropbell/domain/review"
	"dropbell/domain/user"
)

// rush is a drop of 20,000 claims: 17,000 of people, and 3,000 of three scripts.
type rush struct {
	*rand.Rand
	claims []review.Claim
	script []byte // of each claim: 0 = a person
	shares int32
}

func newRush(seed uint64) *rush {
	r := &rush{Rand: rand.New(rand.NewPCG(seed, 43))}
	r.people(17_000)
	r.network(1_200)
	r.proxies(1_000)
	r.farm(800)
	r.Shuffle(len(r.claims), func(i, j int) {
		r.claims[i], r.claims[j] = r.claims[j], r.claims[i]
		r.script[i], r.script[j] = r.script[j], r.script[i]
	})
	return r
}

func (r *rush) add(script byte, c review.Claim) {
	c.UserID, c.CouponID = user.ID(len(r.claims)+1), int64(len(r.claims)+1)
	r.claims, r.script = append(r.claims, c), append(r.script, script)
}

// someNetwork: carriers put hundreds of phones behind one address; most homes have their own.
func (r *rush) someNetwork() int64 {
	switch p := r.Float64(); {
	case p < 0.35:
		return 1 + int64(40*r.Float64()*r.Float64()) // forty gateways of carriers
	case p < 0.42:
		return 1000 + r.Int64N(30) // offices and universities
	}
	return 10_000 + r.Int64N(200_000)
}

// someAgent: one app has a quarter of all users, and a few browsers most of the others.
func (r *rush) someAgent() int64 {
	if r.Float64() < 0.25 {
		return 1
	}
	return 2 + int64(300*math.Pow(r.Float64(), 4))
}

// someTime: two in five let the page claim, which waits up to 1.5 s; the others press.
func (r *rush) someTime() int32 {
	if r.Float64() < 0.4 {
		return int32(r.Float64()*1500) + 8 + r.Int32N(70)
	}
	return int32(min(30_000, 420*math.Exp(0.8*r.NormFloat64()))) + 10 + r.Int32N(80)
}

// somePass: pages come in the last quarter of an hour, many of them with a reminder five minutes
// before the opening. It returns how long before the opening the pass was earned.
func (r *rush) somePass() int32 {
	if r.Float64() < 0.35 {
		return 300_000 - int32(min(290_000, 45_000*r.ExpFloat64()))
	}
	return 1000 + r.Int32N(899_000)
}

func (r *rush) people(n int) {
	for len(r.claims) < n {
		c := review.Claim{Network: r.someNetwork(), Agent: r.someAgent(), After: r.someTime(), Opened: r.Float64() < 0.6}
		if c.PassAge = c.After + r.somePass(); c.After > 3000 { // came after the opening
			c.PassAge = 500 + r.Int32N(2500)
		}
		if r.Float64() < 0.004 {
			c.Agent, c.Program = 900, true // an app whose makers kept the agent of their library
		}
		if c.Agent == 900 && r.Float64() < 0.3 {
			c.Opened = false
		}
		r.add(0, c)
		if r.Float64() > 0.06 {
			continue
		}
		// A family: its members share the network, and some of them a phone or a push token.
		r.shares++
		c.Household = r.shares
		r.claims[len(r.claims)-1].Household = r.shares
		for range 1 + r.IntN(3) {
			c.After, c.Opened, c.PassAge = r.someTime(), r.Float64() < 0.6, 0
			c.PassAge = c.After + r.somePass()
			if r.Float64() < 0.3 {
				c.Phone, c.Push = r.shares, r.shares
			}
			r.add(0, c)
		}
	}
	r.claims, r.script = r.claims[:n], r.script[:n]
}

// network is a script in one network of a data centre: it claims 3 to 9 ms after the opening.
func (r *rush) network(n int) {
	for i := range n {
		after := 3 + r.Int32N(7)
		r.add(1, review.Claim{Network: 500_000, Agent: 950 + r.Int64N(5), After: after, PassAge: after + 240_000 - int32(i)*40})
	}
}

// proxies is a script behind as many proxies in homes, with the agent of the largest app.
func (r *rush) proxies(n int) {
	for i := range n {
		after := 38 + r.Int32N(9)
		r.add(2, review.Claim{Network: r.someNetwork(), Agent: 1, After: after, PassAge: after + 120_000 - int32(i)*20})
	}
}

// farm is a farm of phones, each with twenty accounts, whose times and networks are those of people.
func (r *rush) farm(n int) {
	first := r.shares
	for i := range n {
		c := review.Claim{Network: r.someNetwork(), Agent: r.someAgent(), After: r.someTime(), Opened: r.Float64() < 0.5, Push: first + 1 + int32(i/20)}
		c.PassAge = c.After + r.somePass()
		r.add(3, c)
	}
	r.shares += int32(n / 20)
}

// TestScriptsAreFound: the review finds at least 95 % of the claims of three scripts, and accuses at
// most 1 % of the people, in each of twenty drops.
func TestScriptsAreFound(t *testing.T) {
	var worstFound, worstAccused = 1.0, 0.0
	for seed := range uint64(20) {
		r := newRush(seed)
		found, of := map[byte]int{}, map[byte]int{}
		for _, s := range r.script {
			of[s]++
		}
		if len(r.claims) != 20_000 || of[0] != 17_000 {
			t.Fatalf("%d claims, %v", len(r.claims), of)
		}
		for _, g := range review.Find(r.claims) {
			for _, i := range g.Claims {
				found[r.script[i]]++
			}
		}
		scripts, accused := float64(found[1]+found[2]+found[3])/3000, float64(found[0])/17_000
		worstFound, worstAccused = min(worstFound, scripts), max(worstAccused, accused)
		if scripts < 0.95 || accused > 0.01 {
			t.Errorf("seed %d: found %.1f %% of the scripts (%v of %v), accused %.2f %% of the people", seed, 100*scripts, found, of, 100*accused)
		}
	}
	t.Logf("at worst %.2f %% of the scripts found, %.3f %% of the people accused", 100*worstFound, 100*worstAccused)
}

// TestPeopleAreLetBe: a drop without scripts has hardly any group.
func TestPeopleAreLetBe(t *testing.T) {
	for seed := range uint64(20) {
		r := &rush{Rand: rand.New(rand.NewPCG(seed, 44))}
		r.people(20_000)
		accused := 0
		for _, g := range review.Find(r.claims) {
			accused += len(g.Claims)
		}
		if accused > 20 { // 1 in 1,000
			t.Errorf("seed %d: %d of 20,000 people are accused", seed, accused)
		}
	}
}

// TestFacts: the figures of a group are those of its claims.
func TestFacts(t *testing.T) {
	r := &rush{Rand: rand.New(rand.NewPCG(1, 1))}
	r.people(5_000)
	r.network(214)
	groups := review.Find(r.claims)
	if len(groups) == 0 {
		t.Fatal("nothing is found")
	}
	g := groups[0]
	want := review.Facts{Claims: 214, Networks: 1, Agents: 5, From: 3, To: 9, Nothing: 214}
	if g.Facts != want || !slices.Equal(g.Rules, []review.Rule{review.AtOnce, review.PassesInARow, review.BeforeAnybody, review.NothingOpened}) {
		t.Errorf("%+v %v", g.Facts, g.Rules)
	}
	if len(review.Rules()) > 10 {
		t.Errorf("%d rules", len(review.Rules()))
	}
}

// TestSharedByAFamily: four users of one phone are a family, five are not.
func TestSharedByAFamily(t *testing.T) {
	of := func(users int) (claims []review.Claim) {
		for i := range users {
			claims = append(claims, review.Claim{UserID: user.ID(i + 1), Phone: 7, Opened: true, After: int32(i * 400)})
		}
		return claims
	}
	// One user with five coupons is one user.
	alone := of(5)
	for i := range alone {
		alone[i].UserID = 1
	}
	if a, b, c := review.Find(of(4)), review.Find(of(5)), review.Find(alone); len(a) != 0 || len(b) != 1 || len(c) != 0 ||
		!slices.Equal(b[0].Rules, []review.Rule{review.SharedPhone}) {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
}

// TestClaimsByAService: claims that services make for their users have no network and no agent, and are
// not accused for that.
func TestClaimsByAService(t *testing.T) {
	var claims []review.Claim
	for i := range 1000 {
		claims = append(claims, review.Claim{UserID: user.ID(i + 1), After: 5, PassAge: 100, Program: false})
	}
	if g := review.Find(claims); len(g) != 0 {
		t.Errorf("%+v", g)
	}
}

func TestNetworkAndProgram(t *testing.T) {
	for address, want := range map[string]string{"1.2.3.4": "1.2.3.0/24", "::ffff:1.2.3.4": "1.2.3.0/24", "2001:db8:1:2::3": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48"} {
		if got := review.Network(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
	}
	if got := review.Network(netip.Addr{}); got != "" {
		t.Errorf("no address is in %q", got)
	}
	for agent, want := range map[string]bool{"": true, " ": true, "curl/8.5.0": true, "Python-requests/2.31": true, "Mozilla/5.0 (iPhone)": false, "TeaHouse/3.1 CFNetwork": false, "okhttp/4.9.3": false} {
		if got := review.Program(agent); got != want {
			t.Errorf("%q: %v", agent, got)
		}
	}
}

// BenchmarkFind reviews a drop of a million claims.
func BenchmarkFind(b *testing.B) {
	var claims []review.Claim
	for seed := range uint64(50) {
		r := newRush(seed)
		for _, c := range r.claims {
			if c.Push > 0 {
				c.Push += int32(seed) * 10_000
			}
			claims = append(claims, c)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		review.Find(claims)
	}
}
