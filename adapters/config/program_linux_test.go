package config

import (
	"os"
	"strings"
	"testing"
)

// TestReleasedPagesOfTheProgram: the test's own program goes on after its code and
// constants were unmapped, and occupies less then.
func TestReleasedPagesOfTheProgram(t *testing.T) {
	mapped := func() (pages string) {
		t.Helper()
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "RssFile:")
		pages, _, _ = strings.Cut(rest, "\n")
		return strings.TrimSpace(pages)
	}
	if list := programMappings(); len(list) == 0 {
		t.Fatal("the program is mapped nowhere")
	} else if last := list[len(list)-1]; last.from >= last.to {
		t.Fatalf("mapped at %+v", list)
	}
	before := mapped()
	releaseProgram()
	after := mapped()
	if len(after) > len(before) || len(after) == len(before) && after >= before {
		t.Errorf("%s before, %s after", before, after)
	}
}
