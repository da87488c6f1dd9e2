package config

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The live heap of these programs is small, and their rate of allocation is high. At the default
// GOGC, garbage collection takes an eighth of the time of a large fan-out, and a tenth of the
// time of a rush.
const (
	garbagePercent = 400
	garbageLimit   = 150 << 20 // bytes in all, from which on it is collected as soon as needed
	garbageLook    = time.Second / 4
	quietLook      = time.Second // while the program has nothing to do
	// A program that allocates less than quietBytes in quietFor is idle, and has time to keep
	// its memory small.
	quietPercent = 50
	quietBytes   = 10 << 20
	quietFor     = 5 * time.Second
	// spareBytes is how much unused memory is worth a collection when the program becomes idle.
	// The next collection may be minutes away, and without a collection no memory is returned to
	// the system.
	spareBytes = 8 << 20
	// pooledBytes is how much live memory at the beginning of an idle time is worth a check
	// whether only pools hold it.
	pooledBytes = 32 << 20
	// mostGarbage is how much garbage there may be in addition to the live heap, whatever the
	// [Room]. Garbage may always be as large as the live heap.
	mostGarbage = 256 << 20
)

// A Room is the memory that a program may use, as a multiple of its live heap. Garbage is
// limited to mostGarbage in any case.
type Room int64

// The rooms. Thousands of waiting requests are part of the live heap, too, and scanning their
// stacks again and again is expensive: with room for twice instead of four times the live heap,
// 4,096 concurrent claims took a tenth more processor time. Garbage beyond mostGarbage saves
// little time, and memory would grow by four times the memory of each further request.
const (
	RoomForBatches  Room = 2
	RoomForRequests Room = 4
)

// CollectRarely trades memory for time until ctx ends, unless the operator has set GOGC or
// GOMEMLIMIT. A memory limit without room for more than the live heap would make the program do
// nothing but collect.
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

// collections returns a channel that gets a value soon after a garbage collection, until ctx
// ends. A collection that began before the last report may be left out: the finalizer sets
// itself again at each report.
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

// giveBack returns unused memory to the system, unless little of the held memory is unused.
// Buffers that a rush leaves in pools count as alive until two collections have found them
// unused: 40 MB after 4,096 concurrent requests.
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

// pace decides how much garbage may grow in addition to the live heap.
type pace struct {
	percent   int
	since     time.Time // when allocated was measured
	allocated uint64    // bytes since the program began
}

// look gets the number of bytes allocated so far. It returns the GC percentage to use from now
// on, and whether that percentage has changed. Work ends the idle state at once; the idle state
// begins after [quietFor] with less than [quietBytes] allocated.
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
