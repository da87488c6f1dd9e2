package redis

import (
	"errors"
	"testing"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/redeemcode"
	"dropbell/musttest"
)

func TestCodeMarks(t *testing.T) {
	server := startRedis(t)
	client, err := Open(server.URL)
	musttest.OK(t, err)
	defer client.Close()
	marks := NewCodeMarks(client)
	b := redeemcode.Batch{ID: 3, First: 1_000_001, Count: 1_000_000, CreatedAt: time.Unix(1_700_000_000, 0)}
	other, anew := b, b
	other.ID, other.First = 4, 2_000_001
	anew.CreatedAt = b.CreatedAt.Add(time.Hour) // the same batch of a database that was made anew
	used := func(b redeemcode.Batch, s redeemcode.Serial) bool {
		t.Helper()
		yes, err := marks.Used(t.Context(), b, s)
		musttest.OK(t, err)
		return yes
	}
	for _, s := range []redeemcode.Serial{1_000_001, 1_000_417, 2_000_000} {
		if used(b, s) {
			t.Errorf("%d is marked from the start", s)
		}
		for range 2 {
			musttest.OK(t, marks.Mark(t.Context(), b, s))
		}
		if !used(b, s) || s > b.First && used(b, s-1) || used(anew, s) || used(other, s+1_000_000) {
			t.Errorf("marking %d marks others, or nothing", s)
		}
	}
	if n, err := client.MemoryUsage(t.Context(), marksKey(b)).Result(); err != nil || n > 300_000 {
		t.Errorf("a million codes take %d bytes: %v", n, err)
	}
	if ttl, err := client.TTL(t.Context(), marksKey(b)).Result(); err != nil || ttl <= 0 || ttl > markLife {
		t.Errorf("marks live for %v: %v", ttl, err)
	}
	server.kill(t)
	if _, err := marks.Used(t.Context(), b, b.First); !errors.Is(err, redisclient.ErrUnavailable) {
		t.Errorf("without Redis: %v", err)
	}
	if err := marks.Mark(t.Context(), b, b.First); !errors.Is(err, redisclient.ErrUnavailable) {
		t.Errorf("without Redis: %v", err)
	}
}
