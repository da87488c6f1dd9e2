package config

import "testing"

func TestMemoryLimitLeavesRoom(t *testing.T) {
	for _, alive := range []uint64{0, 1 << 20, garbageLimit / 2, garbageLimit, 1 << 30, 20 << 30} {
		limit := limitFor(alive)
		if limit < garbageLimit || limit < 2*int64(alive) {
			t.Errorf("with %d bytes alive the limit is %d", alive, limit)
		}
	}
	if limit := limitFor(garbageLimit / 4); limit != garbageLimit {
		t.Errorf("with little alive the limit is %d", limit)
	}
}
