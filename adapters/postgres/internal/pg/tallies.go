package pg

import (
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
)

const (
	// talliesDecoded is of how many batches the sets may be read without keeping the result.
	talliesDecoded = 100
	// talliesLife is how old a result that is kept may be.
	talliesLife = 5 * time.Second
)

// keptTallies are results of [Tallies] that took the sets of many batches.
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

// keep also forgets results that are too old.
func (k *keptTallies) keep(key string, list []delivery.FeedbackSum, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]keptTally{}
	}
	maps.DeleteFunc(k.all, func(_ string, one keptTally) bool { return now.Sub(one.at) >= talliesLife })
	k.all[key] = keptTally{slices.Clone(list), now}
}
