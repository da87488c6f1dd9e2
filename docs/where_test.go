package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dropbell/musttest"
)

// TestWhereIsWhat holds the table of subjects in development.md to the tree:
// every folder and file that it names exists, and every room that holds a
// subject's rows, pages or handlers is named.
func TestWhereIsWhat(t *testing.T) {
	text, err := os.ReadFile("development.md")
	musttest.OK(t, err)
	_, section, found := strings.Cut(string(text), "## Where is what")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("development.md has no section \"Where is what\"")
	}
	if n := strings.Count(section, "\n"); n > 60 {
		t.Errorf("the section has %d lines, at most 60 are wanted", n)
	}
	roots := [][]string{nil, nil, {"../domain"}, {"../adapters/postgres"}, {"../web/api"}, {"../web/console", "../views/pages"}}
	named := regexp.MustCompile("`([^`]+)`")
	known := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != len(roots)+1 || strings.Contains(cells[2], "domain/") || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for i, cell := range cells[:len(roots)] {
			for _, name := range named.FindAllStringSubmatch(cell, -1) {
				for _, root := range roots[i] {
					path := filepath.Join(root, name[1])
					known[path] = true
					if list, err := filepath.Glob(path); err != nil || len(list) == 0 {
						t.Errorf("%s, which the table names, does not exist", path)
					}
				}
			}
		}
	}
	for _, floor := range []string{"../adapters/postgres", "../web/api", "../web/console", "../views/pages"} {
		entries, err := os.ReadDir(floor)
		musttest.OK(t, err)
		for _, e := range entries {
			switch path := filepath.Join(floor, e.Name()); {
			case !e.IsDir(), known[path], e.Name() == "internal", strings.HasSuffix(e.Name(), "test"), e.Name() == "shell", e.Name() == "parts", e.Name() == "testdata":
			default:
				t.Errorf("%s is in no row of the table", path)
			}
		}
	}
}
