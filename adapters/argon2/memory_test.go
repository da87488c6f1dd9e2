package argon2

import (
	"runtime"
	"testing"
	"time"
)

// TestMemoryGoesBack: an idle program must not keep the memory of a sign-in.
func TestMemoryGoesBack(t *testing.T) {
	h := New(1)
	if _, err := h.Hash(t.Context(), "correct horse battery staple"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var m runtime.MemStats
	for deadline := time.Now().Add(20 * time.Second); ; {
		runtime.ReadMemStats(&m)
		held := m.HeapSys - m.HeapReleased
		if held < Memory<<10 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d MiB are held", held>>20)
		}
		<-tick.C
	}
}
