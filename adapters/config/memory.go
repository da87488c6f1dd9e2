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
	garbageLookAt  = time.Second / 4
)

// A Room is how many times what is alive a program may have in use.
type Room int64

// The rooms. Thousands of requests that wait at once are alive, too, and
// looking through their stacks again and again costs more than they do: with
// twice instead of four times what is alive, 4,096 claims at once took a tenth
// more of the processor.
const (
	RoomForBatches  Room = 2
	RoomForRequests Room = 4
)

// CollectRarely trades memory for time until ctx ends, unless the operator has
// decided by GOGC or GOMEMLIMIT. A limit that left no room beside what is
// alive would have the program do nothing but collect.
func CollectRarely(ctx context.Context, getenv func(string) string, room Room) {
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
				debug.SetMemoryLimit(room.limitFor(alive[0].Value.Uint64() + alive[1].Value.Uint64()))
			}
		}
	}()
}

// limitFor returns how many bytes may be in use when that many are alive.
func (r Room) limitFor(alive uint64) int64 { return max(garbageLimit, int64(r)*int64(alive)) }
