package config

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The live heap of these programs is small and their rate of allocation is not: at the
// default, collecting garbage takes an eighth of the time of a large fan-out, and a
// tenth of that of a rush.
const (
	garbagePercent = 400
	garbageLimit   = 150 << 20 // bytes in all, from which on it is collected as soon as needed
	garbageLook    = time.Second / 4
	quietLook      = time.Second // while the program has nothing to do
	// A program that allocates less than quietBytes in quietFor has nothing to do, and
	// time enough to keep what it occupies small.
	quietPercent = 50
	quietBytes   = 10 << 20
	quietFor     = 5 * time.Second
	// spareBytes is how much unused memory is worth a collection when the quiet
	// begins: the next one may be minutes away, and without it the system gets
	// nothing back.
	spareBytes = 8 << 20
	// pooledBytes is how much that is alive when the quiet begins is worth a look whether
	// it is only kept by pools.
	pooledBytes = 32 << 20
	// mostGarbage is how much garbage there may be beside what is alive, whatever the
	// [Room]; it may always be as much as what is alive.
	mostGarbage = 256 << 20
)

// A Room is how many times what is alive a program may have in use, up to
// mostGarbage.
type Room int64

// The rooms. Thousands of requests that wait at once are alive, too, and
// looking through their stacks again and again costs more than they do: with
// twice instead of four times what is alive, 4,096 claims at once took a tenth
// more of the processor. Beyond mostGarbage more of it saves little, and memory would
// grow by four times what each further request takes.
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
		tick := time.NewTicker(garbageLook)
		defer tick.Stop()
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/heap/allocs:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		p, limit := pace{percent: garbagePercent}, int64(garbageLimit)
		collected := collections(ctx)
		for {
			// A burst of work in the quiet is over before the next tick, and would be spent on collecting.
			told := collected
			if p.percent != quietPercent {
				told = nil
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-told:
			}
			metrics.Read(alive)
			// Setting a limit stops all goroutines for a moment.
			if now := room.limitFor(alive[0].Value.Uint64() + alive[1].Value.Uint64()); now != limit {
				limit = now
				debug.SetMemoryLimit(limit)
			}
			percent, changed := p.look(time.Now(), alive[2].Value.Uint64())
			if changed {
				debug.SetGCPercent(percent)
				tick.Reset(lookEvery(percent))
			}
			held := alive[3].Value.Uint64() + alive[4].Value.Uint64() + alive[5].Value.Uint64()
			if changed && percent == quietPercent {
				giveBack(alive[0].Value.Uint64(), held)
				releaseProgram()
			}
		}
	}()
}

// collections returns a channel that has a value soon after a collection of garbage, until
// ctx ends, if it began after the one before was told: a finalizer sets itself again each time.
func collections(ctx context.Context) <-chan struct{} {
	collected := make(chan struct{}, 1)
	var set func(*[16]byte)
	set = func(mark *[16]byte) {
		if ctx.Err() != nil {
			return
		}
		runtime.SetFinalizer(mark, set)
		select {
		case collected <- struct{}{}:
		default:
		}
	}
	runtime.SetFinalizer(new([16]byte), set)
	return collected
}

// lookEvery returns the time between two looks at a program of this pace.
func lookEvery(percent int) time.Duration {
	if percent == quietPercent {
		return quietLook
	}
	return garbageLook
}

// giveBack returns unused memory to the system, unless little of what is held is
// unused. Buffers that a rush leaves in pools count as alive until two collections
// have found them unused: 40 MB after 4,096 requests at once.
func giveBack(alive, held uint64) {
	if held < alive+spareBytes && alive < pooledBytes {
		return
	}
	runtime.GC()
	debug.FreeOSMemory() // collects as well
}

// limitFor returns how many bytes may be in use when that many are alive.
func (r Room) limitFor(alive uint64) int64 {
	living := int64(alive)
	garbage := max(living, min(int64(r-1)*living, mostGarbage))
	return max(garbageLimit, living+garbage)
}

// pace decides how much garbage may grow beside what is alive.
type pace struct {
	percent   int
	since     time.Time // when allocated was measured
	allocated uint64    // bytes since the program began
}

// look is told how much was allocated so far. It returns the percentage to go on
// with, and whether it is another one: work ends the quiet at once, and
// quiet begins after [quietFor] with less than [quietBytes].
func (p *pace) look(now time.Time, allocated uint64) (percent int, changed bool) {
	before := p.percent
	switch {
	case p.since.IsZero():
		p.since, p.allocated = now, allocated
	case allocated-p.allocated >= quietBytes:
		p.percent, p.since, p.allocated = garbagePercent, now, allocated
	case now.Sub(p.since) >= quietFor:
		p.percent, p.since, p.allocated = quietPercent, now, allocated
	}
	return p.percent, p.percent != before
}
