package docs_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestFirstTests compares each test that first-test.md shows with the file that the page
// names, and the command below it with the file's folder and test.
func TestFirstTests(t *testing.T) {
	page, err := os.ReadFile("first-test.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n`([^`\n]+_test\\.go)`\n\n```go\n(.*?)```\n\n```\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 4 {
		t.Fatalf("%d tests are shown, want a rule, a statement, a page and the worker", len(shown))
	}
	for _, s := range shown {
		name, code, command := s[1], s[2], s[3]
		file, err := os.ReadFile(path.Join("..", name))
		if err != nil || string(file) != code {
			t.Errorf("%s is not what the page shows (%v)", name, err)
		}
		test := regexp.MustCompile(`func (Test\w+)`).FindStringSubmatch(code)[1]
		if !strings.HasSuffix(command, " ./"+path.Dir(name)+" -run "+test) {
			t.Errorf("%q does not run %s of %s", command, test, name)
		}
	}
}
