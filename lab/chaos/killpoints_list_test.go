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

// rehearsalPoint begins the names of the points around the writes of rehearsals. An evening has none: see [TestRehearsalsShort].
const rehearsalPoint = "rehearsal."

var namedRehearsalPoint = regexp.MustCompile(`"(rehearsal\.[a-z_]+)"`)

// rehearsalPoints returns the points around the writes of rehearsals, most of which the sources hand to functions.
func rehearsalPoints(t *testing.T) []string {
	t.Helper()
	return pointsNamed(t, namedRehearsalPoint, 9)
}

// eveningPoints returns the points that the sources name, without those of rehearsals.
func eveningPoints(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(pointsNamed(t, namedPoint, 15), func(p string) bool { return strings.HasPrefix(p, rehearsalPoint) })
}

// pointsNamed returns what the sources name as the expression says: atLeast points.
func pointsNamed(t *testing.T, as *regexp.Regexp, atLeast int) (list []string) {
	t.Helper()
	err := filepath.WalkDir("../../adapters", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range as.FindAllStringSubmatch(string(text), -1) {
			list = append(list, m[1])
		}
		return err
	})
	slices.Sort(list)
	if list = slices.Compact(list); err != nil || len(list) < atLeast {
		t.Fatalf("%d points are named in the sources: %v", len(list), err)
	}
	return list
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
