package config

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What is alive in these programs is small and what passes through is not: at
// the default, collecting garbage takes an eighth of the time of a large
// fan-out, and a tenth of that of a rush.
const (
	garbagePercent = 400
	garbageLimit   = 150 << 20 // bytes in all, from which on it is collected as soon as needed
	// Thousands of requests that wait at once are alive, too. A limit that left
	// no room beside them would have the program do nothing but collect.
	garbageRoom   = 2 // times what is alive
	garbageLookAt = time.Second / 4
)

// CollectRarely trades memory for time until ctx ends, unless the operator has
// decided by GOGC or GOMEMLIMIT.
func CollectRarely(ctx context.Context, getenv func(string) string) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(garbageLimit)
	go func() {
		tick := time.NewTicker(garbageLookAt)
		defer tick.Stop()
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				metrics.Read(alive)
				debug.SetMemoryLimit(limitFor(alive[0].Value.Uint64() + alive[1].Value.Uint64()))
			}
		}
	}()
}

// limitFor returns how many bytes may be in use when that many are alive.
func limitFor(alive uint64) int64 { return max(garbageLimit, garbageRoom*int64(alive)) }
