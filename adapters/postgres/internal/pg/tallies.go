package pg

import (
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
)

const (
	// talliesDecoded is the number of batches up to which a result with decoded
	// sets is not cached.
	talliesDecoded = 100
	// talliesLife is the maximum age of a cached result.
	talliesLife = 5 * time.Second
)

// keptTallies caches results of [Tallies] for which the sets of many batches were
// decoded.
type keptTallies struct {
	mu  sync.Mutex
	all map[string]keptTally
}

type keptTally struct {
	list []delivery.FeedbackSum
	at   time.Time
}

func (k *keptTallies) get(key string, now time.Time) ([]delivery.FeedbackSum, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one, ok := k.all[key]
	return slices.Clone(one.list), ok && now.Sub(one.at) < talliesLife
}

// keep caches the result and removes results that are too old.
func (k *keptTallies) keep(key string, list []delivery.FeedbackSum, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]keptTally{}
	}
	maps.DeleteFunc(k.all, func(_ string, one keptTally) bool { return now.Sub(one.at) >= talliesLife })
	k.all[key] = keptTally{slices.Clone(list), now}
}
