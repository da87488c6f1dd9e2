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
)

// newShards fills shards of one template for an epoch and opens them.
func newShards(tb testing.TB, s Shards, id int64, epoch int64, terms gate.Terms, allots ...int64) {
	tb.Helper()
	ctx := context.Background()
	for i, allot := range allots {
		must(tb, s.Fence(ctx, id, i, epoch))
		must(tb, s.Reset(ctx, id, i, epoch, allot))
		must(tb, s.SetTerms(ctx, id, i, epoch, terms, time.Now()))
		must(tb, s.Open(ctx, id, i, epoch))
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// openTerms are those of a drop that is open now.
func openTerms(limit int) gate.Terms {
	now := time.Now()
	return gate.Terms{Version: 1, Status: template.Published, Obtain: template.ByClaim, PerUserLimit: limit,
		OpensAt: now.Add(-time.Minute), ClosesAt: now.Add(time.Hour)}
}

// mover brings stock to one shard, one step at a time. It may be left alone
// after any step, for ever or for long: its next step then comes late.
type mover struct {
	shard, donor, want int
	step               int
	move               move
	amount             int64
}

func (m *mover) next(ctx context.Context, s Shards, id, epoch int64) (done bool, err error) {
	m.step++
	switch m.step {
	case 1:
		m.move, err = s.begin(ctx, id, m.shard, m.donor, m.want, epoch)
	case 2:
		m.amount, err = s.take(ctx, id, m.shard, m.move, epoch)
		return m.amount < 0, err
	default:
		return true, s.put(ctx, id, m.shard, m.move, m.amount, epoch)
	}
	return false, err
}

// TestMovesLoseNothingWhereverTheyStop: movers die between any two steps, or
// pause and go on much later, while others finish their moves; shards and moves
// together hold the whole stock after every single step, and once another mover
// has helped, no move is left.
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
				done, err := movers[i].next(ctx, s, id, 1)
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
			"": func(rt *rapid.T) { everythingIsThere(rt, s, id, shards, total) },
		}
		steps["go on more"], steps["go on still"] = steps["go on"], steps["go on"]
		rt.Repeat(steps)
		for i := range shards {
			if err := s.FinishMove(ctx, id, i, 1); err != nil {
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
		plan.Parts[i].Allot = sh.Allot
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

// TestMovesOfAFormerEpochDoNothing: a mover that paused while the gate was built
// anew must not touch the new shards.
func TestMovesOfAFormerEpochDoNothing(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	newShards(t, s, 1, 1, openTerms(1), 0, 10)
	sleeper := &mover{shard: 0, donor: 1, want: 1}
	for range 2 {
		if _, err := sleeper.next(ctx, s, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	newShards(t, s, 1, 2, openTerms(1), 4, 4)
	if _, err := sleeper.next(ctx, s, 1, 1); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("a former epoch's stock was put on the shard: %v", err)
	}
	late := &mover{shard: 1, donor: 0, want: 1, step: 1, move: move{number: 1, donor: 0, wanted: 1}}
	if _, err := late.next(ctx, s, 1, 1); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("stock was taken off the shard for a former epoch: %v", err)
	}
	list, err := s.Look(ctx, 1, 2)
	if err != nil || list[0].Stock != 4 || list[1].Stock != 4 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestShelvesRefuseEarlierEpochs: a builder that lost its lease can do nothing.
func TestShelvesRefuseEarlierEpochs(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	must(t, s.Fence(ctx, 1, 0, 5))
	for name, do := range map[string]func() error{
		"seal":                       func() error { return s.Fence(ctx, 1, 0, 4) },
		"reset":                      func() error { return s.Reset(ctx, 1, 0, 4, 10) },
		"load":                       func() error { return s.LoadUserCounts(ctx, 1, 1, 4, []gate.UserCount{{UserID: 1, Count: 1}}) },
		"tell":                       func() error { return s.SetTerms(ctx, 1, 0, 4, openTerms(1), time.Now()) },
		"open":                       func() error { return s.Open(ctx, 1, 0, 4) },
		"fill":                       func() error { return s.Fill(ctx, 1, 0, 4, 10) },
		"open what was never filled": func() error { return s.Open(ctx, 1, 0, 5) },
	} {
		if err := do(); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Reset(ctx, 1, 0, 5, 10))
	must(t, s.SetTerms(ctx, 1, 0, 5, openTerms(1), time.Now()))
	must(t, s.Open(ctx, 1, 0, 5))
	if err := s.Reset(ctx, 1, 0, 5, 10); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("an open shard was emptied: %v", err)
	}
}

func TestFillingTwiceGivesOnce(t *testing.T) {
	s, ctx := NewShards(newClient(t)), t.Context()
	newShards(t, s, 1, 1, openTerms(1), 10)
	for _, allot := range []int64{15, 15, 12, 15} {
		must(t, s.Fill(ctx, 1, 0, 1, allot))
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
	must(t, s.SetTerms(ctx, 1, 0, 1, old, time.Now()))
	got := s.client.HMGet(ctx, keysOf(1, 0).shard, "version", "status", "limit").Val()
	if got[0] != "5" || got[1] != "published" || got[2] != "1" {
		t.Errorf("in force: %v", got)
	}
}

// newClient is a client of a real Redis of this test, without anything in it.
func newClient(t *testing.T) goredis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(localstack.RedisServer(t).URL(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
