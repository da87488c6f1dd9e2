package config

import (
	"testing"
	"time"
)

func TestMemoryLimitLeavesRoom(t *testing.T) {
	for _, room := range []Room{RoomForBatches, RoomForRequests} {
		for _, alive := range []uint64{0, 1 << 20, garbageLimit / 2, garbageLimit, 1 << 30, 20 << 30} {
			limit := room.limitFor(alive)
			if limit < garbageLimit || limit < int64(room)*int64(alive) {
				t.Errorf("with %d bytes alive the limit is %d", alive, limit)
			}
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
		{garbageLookAt, quietBytes / 2, quietPercent}, {garbageLookAt, quietBytes / 2, garbagePercent},
		{quietFor, quietBytes, garbagePercent}, {quietFor, 0, quietPercent}, {quietFor, 0, quietPercent},
	} {
		if got := step(s.after, s.bytes); got != s.want {
			t.Errorf("step %d: %d %%, want %d", i, got, s.want)
		}
	}
}
