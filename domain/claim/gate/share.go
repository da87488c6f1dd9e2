package gate

import (
	"hash/fnv"
	"time"

	"dropbell/domain/template"
)

// KeeperOf returns the process that looks after the template's gate, "" if members
// is empty. All processes that know the same members agree. Each process looks
// after about as many gates. A process that comes or goes changes the keeper of its
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
	// lookSoon is the interval between looks at a gate on which something happens,
	// or that is not in order.
	lookSoon = time.Second
	// lookSometimes is the interval between looks at an open gate on which nothing
	// happens. Claims that find a shard missing, and claims that wait to be written,
	// call the keeper earlier.
	lookSometimes = 5 * time.Second
	// lookSeldom is the interval between looks at a gate whose opening is far off.
	// Only grants by staff are decided there.
	lookSeldom = 5 * time.Minute
	// readyBefore is how long before the opening a gate is looked at as often as an
	// open gate, so that shards lost meanwhile are built again before the opening.
	readyBefore = time.Minute
)

// restFor returns how long a gate need not be looked at after this look. quiet says
// that the look before showed the same.
func (p Plan) restFor(quiet bool) time.Duration {
	if !quiet || p.State != Active {
		return p.untilShare(lookSoon)
	}
	if ahead := p.Template.FirstOpening().Sub(p.Now) - readyBefore; ahead > lookSometimes && p.Template.Stored != template.Closed && p.Template.Stored != template.Cancelled {
		return min(ahead, lookSeldom)
	}
	return p.untilShare(lookSometimes)
}

// untilShare returns most, or less if the share of the next door is handed out earlier: until then its customers are told
// that nothing is left.
func (p Plan) untilShare(most time.Duration) time.Duration {
	if next, ok := p.Template.NextShare(p.Now); ok {
		return min(next.Sub(p.Now), most)
	}
	return most
}

// quiet reports whether nothing has happened on the shards between two looks, and
// no claims wait there.
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
