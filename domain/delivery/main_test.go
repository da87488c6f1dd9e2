package delivery

import (
	"os"
	"runtime"
	"testing"
)

// TestMain runs this package's tests on one processor. In a synctest bubble two
// processors may run expired channel timers at the same time, and under the
// race detector both then use the bubble's single race context, which crashes
// the detector (runtime/time.go, unlockAndRun, of Go 1.25 and 1.26). The
// detector compares happens-before relations, so it finds races on one
// processor too.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
