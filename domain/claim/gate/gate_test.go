package gate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/claim/gate"
	"dropbell/domain/user"
)

func TestShards(t *testing.T) {
	for _, c := range []struct {
		stock    int64
		machines int
		want     int
	}{
		{0, 1, 1}, {1, 1, 1}, {100, 1, 1}, {100, 6, 1}, {640, 6, 6}, {100_000, 1, 1}, {100_004, 1, 2}, {1_000_000, 1, 10},
		{1_000_000, 6, 10}, {50_000_000, 6, gate.MaxShards}, {1 << 40, 500, gate.MaxShards},
	} {
		if got := gate.ShardCount(c.stock, c.machines); got != c.want {
			t.Errorf("a stock of %d on %d machines: %d shards, want %d", c.stock, c.machines, got, c.want)
		}
	}
}

func TestDivider(t *testing.T) {
	for list, want := range map[int]int{-1: 7, 0: 7, 1: 1, 8: 8, 1000: gate.MaxShards} {
		if got := gate.Divider(list)(500, 7); got != want {
			t.Errorf("500 on %d shards: %d, want %d", list, got, want)
		}
	}
}

func TestSplitLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, shards := rapid.Int64Range(0, 1<<40).Draw(t, "n"), rapid.IntRange(1, gate.MaxShards).Draw(t, "shards")
		parts, sum := gate.Split(n, shards), int64(0)
		for _, p := range parts {
			sum += p
		}
		if len(parts) != shards || sum != n || slices.Max(parts)-slices.Min(parts) > 1 || slices.Min(parts) < 0 {
			t.Fatalf("%d in %d parts: %v", n, shards, parts)
		}
	})
}

// TestHomesAreSpreadAndStay: users with neighbouring ids are spread evenly over the
// home shards, and each user keeps the same home shard.
func TestHomesAreSpreadAndStay(t *testing.T) {
	const shards, users = 8, 80_000
	var at [shards]int
	for id := range user.ID(users) {
		home := gate.HomeShard(id+1, 0, shards)
		if home != gate.HomeShard(id+1, 0, shards) {
			t.Fatal("a user has moved")
		}
		at[home]++
	}
	for shard, n := range at {
		if n < users/shards*95/100 || n > users/shards*105/100 {
			t.Errorf("shard %d has %d of %d users", shard, n, users)
		}
	}
	if gate.HomeShard(1, 77, shards) != gate.HomeShard(2, 77, shards) {
		t.Error("users of one household have two home shards")
	}
	// Records kept with a shard must be found again by every later version.
	for id, want := range map[user.ID]int{1: 1, 2: 6, 1000: 0, 1<<63 - 1: 7} {
		if got := gate.HomeShard(id, 0, shards); got != want {
			t.Errorf("user %d is at home at shard %d, was at %d", id, got, want)
		}
	}
}

func TestToursVisitEveryOtherShardOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, gate.MaxShards).Draw(t, "shards")
		home := rapid.IntRange(0, shards-1).Draw(t, "home")
		empty := rapid.SliceOfN(rapid.Bool(), shards, shards).Draw(t, "empty")
		seed := rapid.Uint64().Draw(t, "seed")
		tour := gate.ProbeOrder(home, shards, func(i int) bool { return empty[i] }, rand.New(rand.NewPCG(seed, 1)))
		slices.Sort(tour)
		var want []int
		for i := range shards {
			if i != home && !empty[i] {
				want = append(want, i)
			}
		}
		if !slices.Equal(tour, want) {
			t.Fatalf("visited %v, want %v", tour, want)
		}
	})
}

func TestToursDiffer(t *testing.T) {
	random, first := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	for range 100 {
		first[gate.ProbeOrder(0, 5, func(int) bool { return false }, random)[0]] = true
	}
	if len(first) != 4 {
		t.Errorf("a hundred tours began at %v only", first)
	}
}
