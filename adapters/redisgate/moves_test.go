package redisgate

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redisclient"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// newShards fills shards of one template for an epoch and opens them.
func newShards(tb testing.TB, s Shards, id int64, epoch int64, terms gate.Terms, allots ...int64) {
	tb.Helper()
	ctx := context.Background()
	for i, allot := range allots {
		must(tb, s.Fence(ctx, id, i, epoch))
		must(tb, s.Reset(ctx, id, i, epoch, allot))
		must(tb, s.SetTerms(ctx, id, i, epoch, terms, &gate.Offset{}))
		must(tb, s.Open(ctx, id, i, epoch, true))
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	musttest.OK(tb, err)
}

// openTerms are the terms of a drop that is open now.
func openTerms(limit int) gate.Terms {
	now := time.Now()
	return gate.Terms{Version: 1, Status: template.Published, Obtain: template.ByClaim, PerUserLimit: limit,
		OpensAt: now.Add(-time.Minute), ClosesAt: now.Add(time.Hour)}
}

// mover moves stock to one shard, one step at a time. It may stop after any step, for ever or
// for long: its next step then comes late.
type mover struct {
	shard, donor, want int
	step               int
	epoch, donorEpoch  int64
	move               move
	amount             int64
}

// next does the next step. It is done as well when it is told that it comes too late.
func (m *mover) next(ctx context.Context, s Shards, id int64) (done bool, err error) {
	m.step++
	switch m.step {
	case 1:
		epochs, err := s.openEpochs(ctx, id, m.shard, m.donor)
		m.epoch, m.donorEpoch = epochs[0], epochs[1]
		return m.epoch == 0 || m.donorEpoch == 0, err
	case 2:
		m.move, err = s.begin(ctx, id, m.shard, m.donor, m.want, m.epoch)
		if m.move.donor != m.donor && err == nil { // it is to finish another mover's
			m.donor, m.step = m.move.donor, 0
		}
	case 3:
		m.amount, err = s.take(ctx, id, m.shard, m.move, m.donorEpoch)
		done = m.amount < 0
	default:
		done, err = true, s.put(ctx, id, m.shard, m.move, m.amount, m.epoch)
	}
	if errors.Is(err, gate.ErrStaleEpoch) {
		return true, nil
	}
	return done, err
}

// rebuilding rebuilds one lost shard, one step at a time, as the keeper does.
type rebuilding struct {
	shard, shards int
	allot, epoch  int64
	step          int
	links         map[int]gate.Link
}

func (r *rebuilding) next(ctx context.Context, s Shards, id int64) (done bool, err error) {
	number := r.epoch * 1_000_000_000
	r.step++
	switch other := r.step - 3; {
	case r.step == 1:
		k := keysOf(id, r.shard)
		return false, s.client.Del(ctx, k.shard, k.users, k.keys, k.claims, k.stream, k.gone, k.came).Err()
	case r.step == 2:
		return false, s.Fence(ctx, id, r.shard, r.epoch)
	case other == r.shard:
		return false, nil
	case other < r.shards:
		epochs, err := s.openEpochs(ctx, id, other)
		if err != nil {
			return false, err
		}
		r.links[other], err = s.Detach(ctx, id, other, epochs[0], r.shard, number)
		return false, err
	case other == r.shards:
		past := gate.Past{Stock: r.allot, Begun: number, Links: r.links}
		for _, l := range r.links {
			past.Stock += l.Gone - l.Came
		}
		return false, errors.Join(s.Reset(ctx, id, r.shard, r.epoch, r.allot), s.Resume(ctx, id, r.shard, r.epoch, past))
	}
	return true, errors.Join(s.SetTerms(ctx, id, r.shard, r.epoch, openTerms(1), &gate.Offset{}), s.Open(ctx, id, r.shard, r.epoch, true))
}

// TestMovesLoseNothingWhereverTheyStop: movers die between any two steps, or pause and continue
// much later, while other movers finish their moves. After every single step shards and moves
// together hold the whole stock. Once another mover has helped, no move is left. Now and then a
// shard is lost and rebuilt from the records of the other shards; that neither loses nor invents
// stock, whatever a mover does late.
func TestMovesLoseNothingWhereverTheyStop(t *testing.T) {
	s := NewShards(newClient(t))
	ctx, id := t.Context(), int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		id++
		shards := rapid.IntRange(2, 4).Draw(rt, "shards")
		allots, total := make([]int64, shards), int64(0)
		for i := range allots {
			allots[i] = rapid.Int64Range(0, 9).Draw(rt, "allot")
			total += allots[i]
		}
		newShards(t, s, id, 1, openTerms(1), allots...)
		shard := rapid.IntRange(0, shards-1)
		var movers []*mover
		var lost *rebuilding
		epoch := int64(1)
		steps := map[string]func(*rapid.T){
			"set out": func(rt *rapid.T) {
				m := &mover{shard: shard.Draw(rt, "to"), donor: shard.Draw(rt, "from"), want: rapid.IntRange(1, 4).Draw(rt, "want")}
				if m.shard != m.donor {
					movers = append(movers, m)
				}
			},
			"go on": func(rt *rapid.T) {
				if len(movers) == 0 {
					return
				}
				i := rapid.IntRange(0, len(movers)-1).Draw(rt, "mover")
				done, err := movers[i].next(ctx, s, id)
				if err != nil {
					rt.Fatal(err)
				}
				if done {
					movers = append(movers[:i], movers[i+1:]...)
				}
			},
			"die": func(rt *rapid.T) {
				if len(movers) > 0 {
					i := rapid.IntRange(0, len(movers)-1).Draw(rt, "mover")
					movers = append(movers[:i], movers[i+1:]...)
				}
			},
			"lose a shard": func(rt *rapid.T) {
				if lost == nil {
					epoch++
					x := shard.Draw(rt, "lost")
					lost = &rebuilding{shard: x, shards: shards, allot: allots[x], epoch: epoch, links: map[int]gate.Link{}}
				}
			},
			"rebuild": func(rt *rapid.T) {
				if lost == nil {
					return
				}
				done, err := lost.next(ctx, s, id)
				if err != nil {
					rt.Fatal(err)
				}
				if done {
					lost = nil
				}
			},
			"": func(rt *rapid.T) {
				if lost == nil {
					everythingIsThere(rt, s, id, shards, total)
				}
			},
		}
		steps["go on more"], steps["go on still"], steps["rebuild more"] = steps["go on"], steps["go on"], steps["rebuild"]
		rt.Repeat(steps)
		for lost != nil {
			steps["rebuild"](rt)
		}
		for i := range shards {
			epochs, err := s.openEpochs(ctx, id, i)
			if err == nil {
				err = s.FinishMove(ctx, id, i, epochs[0])
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if moving := everythingIsThere(rt, s, id, shards, total); moving != 0 {
			rt.Fatalf("%d are still on their way after everybody was helped", moving)
		}
	})
}

func everythingIsThere(rt *rapid.T, s Shards, id int64, shards int, total int64) (moving int64) {
	list, err := s.Look(context.Background(), id, shards)
	if err != nil {
		rt.Fatal(err)
	}
	plan := gate.Plan{Shards: shards, State: gate.Active, Parts: make([]gate.Part, shards)}
	plan.Template.Stock = total
	var stock int64
	for i, sh := range list {
		plan.Parts[i].Allot, plan.Parts[i].Epoch = sh.Allot, sh.Epoch
		stock += sh.Stock
		moving += sh.Out - sh.In
		if sh.Stock < 0 {
			rt.Fatalf("shard %d holds %d", i, sh.Stock)
		}
	}
	if l := plan.Ledger(list); l.Difference != 0 || stock+moving != total {
		rt.Fatalf("%d on shards and %d moving of %d: %+v %+v", stock, moving, total, l, list)
	}
	return moving
}

// TestMovesOfAFormerEpochDoNothing: a mover that paused while the gate was rebuilt must not
// change the new shards.
func TestMovesOfAFormerEpochDoNothing(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	newShards(t, s, 1, 1, openTerms(1), 0, 10)
	sleeper, late := &mover{shard: 0, donor: 1, want: 1}, &mover{shard: 0, donor: 1, want: 1}
	for range 2 {
		_, err := late.next(ctx, s, 1)
		must(t, err)
	}
	for range 3 {
		_, err := sleeper.next(ctx, s, 1)
		must(t, err)
	}
	newShards(t, s, 1, 2, openTerms(1), 4, 4)
	for name, m := range map[string]*mover{"put on the shard": sleeper, "taken off the shard": late} {
		if done, err := m.next(ctx, s, 1); err != nil || !done {
			t.Errorf("a former epoch's stock was %s: %v", name, err)
		}
	}
	list, err := s.Look(ctx, 1, 2)
	if err != nil || list[0].Stock != 4 || list[1].Stock != 4 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestShardsRefuseEarlierEpochs: a builder that lost its lease can do nothing.
func TestShardsRefuseEarlierEpochs(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	must(t, s.Fence(ctx, 1, 0, 5))
	for name, do := range map[string]func() error{
		"seal":                       func() error { return s.Fence(ctx, 1, 0, 4) },
		"reset":                      func() error { return s.Reset(ctx, 1, 0, 4, 10) },
		"load":                       func() error { return s.LoadUserCounts(ctx, 1, []int64{4}, []gate.UserCount{{UserID: 1, Count: 1}}) },
		"tell":                       func() error { return s.SetTerms(ctx, 1, 0, 4, openTerms(1), &gate.Offset{}) },
		"open":                       func() error { return s.Open(ctx, 1, 0, 4, true) },
		"fill":                       func() error { return s.Fill(ctx, 1, 0, 4, 10, 0) },
		"open what was never filled": func() error { return s.Open(ctx, 1, 0, 5, true) },
	} {
		if err := do(); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Reset(ctx, 1, 0, 5, 10))
	must(t, s.SetTerms(ctx, 1, 0, 5, openTerms(1), &gate.Offset{}))
	must(t, s.Open(ctx, 1, 0, 5, true))
	if err := s.Reset(ctx, 1, 0, 5, 10); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("an open shard was emptied: %v", err)
	}
}

func TestFillingTwiceGivesOnce(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	newShards(t, s, 1, 1, openTerms(1), 10)
	for _, allot := range []int64{15, 15, 12, 15} {
		must(t, s.Fill(ctx, 1, 0, 1, allot, 0))
	}
	list, err := s.Look(ctx, 1, 1)
	if err != nil || list[0].Stock != 15 || list[0].Allot != 15 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestOlderTermsNeverReplaceNewerOnes(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	terms := openTerms(1)
	terms.Version = 5
	newShards(t, s, 1, 1, terms, 10)
	old := terms
	old.Version, old.Status, old.PerUserLimit = 4, template.Paused, 9
	must(t, s.SetTerms(ctx, 1, 0, 1, old, &gate.Offset{}))
	got := s.client.HMGet(ctx, keysOf(1, 0).shard, "version", "status", "limit").Val()
	if got[0] != "5" || got[1] != "published" || got[2] != "1" {
		t.Errorf("in force: %v", got)
	}
}

// newClient is a client of a real Redis of this test, without anything in it.
func newClient(t *testing.T) goredis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(localstack.RedisServer(t).URL(), 0)
	musttest.OK(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}
