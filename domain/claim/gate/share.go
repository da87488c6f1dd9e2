package gate

import (
	"hash/fnv"
	"time"

	"dropbell/domain/template"
)

// KeeperOf returns which of the processes looks after the template's gate, "" if
// there are none. All processes that know the same members agree, each looks after
// about as many gates, and a process that comes or goes changes the keeper of its
// own share only.
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
	// lookSoon is how soon a gate is looked at again on which something happens, or
	// that is not in order.
	lookSoon = time.Second
	// lookSometimes is how often an open gate on which nothing happens is looked at.
	// Claims that find a shard missing, and claims that wait to be written, call the
	// keeper earlier.
	lookSometimes = 5 * time.Second
	// lookSeldom is how often a gate is looked at whose opening is far off, where
	// only what staff give away is claimed.
	lookSeldom = 5 * time.Minute
	// readyBefore is how long before the opening a gate is looked at as often as an
	// open one, so that shards that were lost meanwhile are there at the opening.
	readyBefore = time.Minute
)

// restFor returns how long after this look a gate need not be looked at. quiet
// says that the look before showed the same.
func (p Plan) restFor(quiet bool) time.Duration {
	if !quiet || p.State != Active {
		return lookSoon
	}
	if ahead := p.Template.OpensAt.Sub(p.Now) - readyBefore; ahead > lookSometimes && p.Template.Stored != template.Closed && p.Template.Stored != template.Cancelled {
		return min(ahead, lookSeldom)
	}
	return lookSometimes
}

// quiet reports whether nothing has happened on the shards between two looks, and
// nothing waits there.
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
