package gate

import (
	"hash/fnv"
	"time"

	"dropbell/domain/template"
)

// KeeperOf returns which of the processes keeps the template's gate, "" if there are no
// processes. All processes that know the same members agree. Each process keeps about as
// many gates, and only the gates of a process that joins or leaves change their keeper.
func KeeperOf(templateID int64, members []string) (keeper string) {
	var best uint64
	for _, m := range members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m)) // never fails
		if weight := mixed(h.Sum64() ^ mixed(uint64(templateID))); keeper == "" || weight > best || weight == best && m < keeper {
			keeper, best = m, weight
		}
	}
	return keeper
}

const (
	// lookSoon is how soon a gate is looked at again that has claims or is not in order.
	lookSoon = time.Second
	// lookSometimes is how often an open gate without claims is looked at. Claims that find a
	// shard missing, and claims that wait to be written, call the keeper earlier.
	lookSometimes = 5 * time.Second
	// lookSeldom is how often a gate is looked at whose opening is far ahead, where only staff
	// grant coupons.
	lookSeldom = 5 * time.Minute
	// readyBefore is how long before the opening a gate is looked at as often as an open gate,
	// so that lost shards are rebuilt before the opening.
	readyBefore = time.Minute
)

// restFor returns how long after this look a gate need not be looked at. quiet says that
// the previous look showed the same.
func (p Plan) restFor(quiet bool) time.Duration {
	if !quiet || p.State != Active {
		return lookSoon
	}
	if ahead := p.Template.OpensAt.Sub(p.Now) - readyBefore; ahead > lookSometimes && p.Template.Stored != template.Closed && p.Template.Stored != template.Cancelled {
		return min(ahead, lookSeldom)
	}
	return lookSometimes
}

// quiet reports whether the shards have not changed between two looks and no claim waits
// there to be written.
func quiet(before, now []Shard) bool {
	if len(before) != len(now) {
		return false
	}
	for i, s := range now {
		b := before[i]
		if s.Waiting > 0 || s.Begun != s.Done || s.Epoch != b.Epoch || s.Open != b.Open || s.Version != b.Version || s.Accepted != b.Accepted ||
			s.Returned != b.Returned || s.Stock != b.Stock || s.Allot != b.Allot {
			return false
		}
	}
	return true
}
