package chaos_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dropbell/killpoint"
)

// A failing is one thing that happens at one point.
type failing struct {
	point   string
	phase   killpoint.Phase
	failure killpoint.Failure
}

// String is the failing as a line of the table names it.
func (f failing) String() string {
	return f.point + " " + string(f.phase) + " " + string(f.failure)
}

// everyFailing returns all possible failures at the points, in a fixed order.
func everyFailing(points []string) (list []failing) {
	for _, p := range points {
		for _, phase := range []killpoint.Phase{killpoint.BeforeIt, killpoint.AfterIt} {
			for _, f := range killpoint.Failures(phase) {
				list = append(list, failing{p, phase, f})
			}
		}
	}
	return list
}

var namedPoint = regexp.MustCompile(`killpoint\.(?:Before|After|Around)\("([a-z_.]+)"`)

// namedPoints returns the points that the sources name.
func namedPoints(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir("../../adapters", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range namedPoint.FindAllStringSubmatch(string(text), -1) {
			list = append(list, m[1])
		}
		return err
	})
	if err != nil || len(list) < 15 {
		t.Fatalf("%d points are named in the sources: %v", len(list), err)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// eveningPoints returns the points that the sources name but those of rehearsals, of which an evening has none; see [TestRehearsalsShort].
func eveningPoints(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(namedPoints(t), func(p string) bool { return strings.HasPrefix(p, rehearsalPoint) })
}

// reachedPoints returns the points that processes have passed.
func reachedPoints(t *testing.T, dir string) (list []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if point, ok := strings.CutPrefix(f.Name(), killpoint.Reached("")); ok {
			list = append(list, point)
		}
	}
	return list
}
