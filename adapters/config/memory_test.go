package config

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

func TestMemoryLimitLeavesRoom(t *testing.T) {
	for _, room := range []Room{RoomForBatches, RoomForRequests} {
		for _, alive := range []uint64{0, 1 << 20, garbageLimit / 2, garbageLimit, 1 << 30, 20 << 30} {
			limit := room.limitFor(alive)
			if limit < garbageLimit || limit < 2*int64(alive) {
				t.Errorf("with %d bytes alive the limit is %d", alive, limit)
			}
			if limit > garbageLimit && limit > int64(alive)+max(mostGarbage, int64(alive)) {
				t.Errorf("with %d bytes alive %d bytes of garbage are allowed", alive, limit-int64(alive))
			}
		}
		if limit := room.limitFor(60 << 20); limit < int64(room)*60<<20 {
			t.Errorf("with 60 MiB alive the limit is %d", limit)
		}
		if limit := room.limitFor(garbageLimit / 8); limit != garbageLimit {
			t.Errorf("with little alive the limit is %d", limit)
		}
	}
}

func TestAProgramWithoutWorkKeepsLittleGarbage(t *testing.T) {
	p, now, allocated := pace{percent: garbagePercent}, time.Unix(0, 0), uint64(1<<30)
	step := func(d time.Duration, bytes uint64) int {
		now, allocated = now.Add(d), allocated+bytes
		percent, _ := p.look(now, allocated)
		return percent
	}
	for i, s := range []struct {
		after time.Duration
		bytes uint64
		want  int
	}{
		{0, 0, garbagePercent}, {quietFor - 1, quietBytes - 1, garbagePercent}, {1, 0, quietPercent},
		{quietLook, quietBytes / 2, quietPercent}, {quietLook, quietBytes / 2, garbagePercent},
		{quietFor, quietBytes, garbagePercent}, {quietFor, 0, quietPercent}, {quietFor, 0, quietPercent},
	} {
		if got := step(s.after, s.bytes); got != s.want {
			t.Errorf("step %d: %d %%, want %d", i, got, s.want)
		}
	}
}

// TestAQuietProgramGivesMemoryBack: when a program becomes idle, unused memory, buffers in pools
// included, is returned to the system at once, not minutes later.
func TestAQuietProgramGivesMemoryBack(t *testing.T) {
	CollectRarely(t.Context(), func(string) string { return "" }, RoomForBatches)
	t.Cleanup(func() { debug.SetGCPercent(100); debug.SetMemoryLimit(math.MaxInt64) })
	var buffers sync.Pool
	for range 2 {
		work := make([][]byte, 64)
		for i := range work {
			work[i] = make([]byte, 1<<20)
			buffers.Put(&work[i])
		}
	}
	var m runtime.MemStats
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // between looks at the runtime, which tells of no change itself
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased < spareBytes && m.HeapInuse < 32<<20 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d MiB in use, %d MiB idle and not given back", m.HeapInuse>>20, (m.HeapIdle-m.HeapReleased)>>20)
		}
	}
}

// TestCollectionsAreTold: collections are reported again and again, so that each burst of work
// ends the idle state before the next tick. A collection that begins while an earlier collection
// is being reported may be left out.
func TestCollectionsAreTold(t *testing.T) {
	collected := collections(t.Context())
	end := time.After(30 * time.Second)
	for n := 0; n < 3; {
		runtime.GC()
		select {
		case <-collected:
			n++
		case <-time.After(10 * time.Millisecond):
		case <-end:
			t.Fatalf("%d collections were told", n)
		}
	}
}
