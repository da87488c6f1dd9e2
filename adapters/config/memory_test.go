package config

import "testing"

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
