package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReleasedPagesOfTheProgram: the test's own program continues after its code and constants
// were unmapped, and occupies less memory then.
func TestReleasedPagesOfTheProgram(t *testing.T) {
	// A program in a file system in memory counts as shared memory.
	mapped := func() (kB int) {
		t.Helper()
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			var n int
			if _, err := fmt.Sscanf(line, "RssFile: %d kB", &n); err == nil {
				kB += n
			}
			if _, err := fmt.Sscanf(line, "RssShmem: %d kB", &n); err == nil {
				kB += n
			}
		}
		return kB
	}
	if list := programMappings(); len(list) == 0 {
		t.Fatal("the program is mapped nowhere")
	} else if last := list[len(list)-1]; last.from >= last.to {
		t.Fatalf("mapped at %+v", list)
	}
	before := mapped()
	releaseProgram()
	if after := mapped(); after >= before {
		t.Errorf("%d kB before, %d kB after", before, after)
	}
}
