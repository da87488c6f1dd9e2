// Package gate is the claim gate: the stock of a drop divided into shards, so
// that many machines can decide claims from it at once. It contains the number
// of shards, the home shard of a user, the allotment of each shard, the writer
// that stores accepted claims in the database, the keeper that builds and
// repairs shards, and the account that shows that no allotted coupon was lost.
// Only templates of the mode "gate" use it.
package gate

import (
	"math/rand/v2"

	"dropbell/domain/user"
)

// MaxShards bounds how many shards one stock is divided into.
const MaxShards = 64

const (
	// perShard is the number of claims a second that one shard is planned for; the
	// benchmark of the gate measures several times as many.
	perShard = 25_000
	// sellOutSeconds is the time in which a stock is expected to sell out. The
	// expected rate of a new drop follows from it.
	sellOutSeconds = 4
	// fewest is the least number of coupons that a shard should hold at the start.
	// With fewer, moving coupons between shards costs more than sharing gains.
	fewest = 64
)

// ShardCount returns the number of shards for a stock that is kept on this number
// of machines: enough for the expected rate of claims and, if the stock is large
// enough to be divided, at least one per machine.
func ShardCount(stock int64, machines int) int {
	byRate := (stock/sellOutSeconds + perShard - 1) / perShard
	n := max(byRate, int64(machines), 1)
	return int(min(n, max(stock/fewest, 1), MaxShards))
}

// Divider returns [ShardCount], or, if shards is positive, a function that
// always returns that number.
func Divider(shards int) func(stock int64, machines int) int {
	if shards <= 0 {
		return ShardCount
	}
	return func(int64, int) int { return min(shards, MaxShards) }
}

// HomeShard returns the shard that decides a user's claims. The user's count and
// idempotency records are kept with that shard, so it never changes. In a drop with a
// household limit all users of a household have one home shard; household is 0 for
// users of none and in other drops. A user whose household changes gets another home
// shard, which does not know the user's claims; the writer refuses what is too much then.
func HomeShard(by user.ID, household int64, shards int) int {
	key := uint64(by)
	if household != 0 {
		key = uint64(household)
	}
	return int(mixed(key) % uint64(shards))
}

// mixed is splitmix64: numbers that follow each other end up far apart.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Split divides n evenly: the parts add up to n and differ by one at most.
func Split(n int64, shards int) []int64 {
	parts := make([]int64, shards)
	each, rest := n/int64(shards), n%int64(shards)
	for i := range parts {
		parts[i] = each
		if int64(i) < rest {
			parts[i]++
		}
	}
	return parts
}

// ProbeOrder returns the shards to search for stock, each once and in random
// order: all but home and those known to be empty.
func ProbeOrder(home, shards int, empty func(int) bool, random *rand.Rand) []int {
	order := make([]int, 0, shards)
	for _, i := range random.Perm(shards) {
		if i != home && !empty(i) {
			order = append(order, i)
		}
	}
	return order
}
