// Package docs_test holds the documents to the code.
package docs_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"dropbell/musttest"
)

// TestDefectsNameTheirTests reads the table of defects in proof.md and looks
// for each test that it names in the test files of the project.
func TestDefectsNameTheirTests(t *testing.T) {
	raw, err := os.ReadFile("proof.md")
	musttest.OK(t, err)
	_, table, ok := strings.Cut(string(raw), "\n## Defects found so far\n")
	if !ok {
		t.Fatal("proof.md has no table of defects")
	}
	existing := testNames(t)
	name := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| defect |") {
			continue
		}
		rows++
		if cells := strings.Count(line, "|") - 1; cells != 4 {
			t.Errorf("%d cells, want 4: %s", cells, line)
		}
		named := name.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range named {
			if !existing[n[1]] {
				t.Errorf("%s does not exist: %s", n[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d defects were read", rows)
	}
}

// testNames returns the names of all tests of the project.
func testNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	decl := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for _, m := range decl.FindAllStringSubmatch(string(raw), -1) {
			names[m[1]] = true
		}
		return nil
	})
	musttest.OK(t, err)
	return names
}
