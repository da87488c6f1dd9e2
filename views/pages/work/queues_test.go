package work

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dropbell/musttest"
	"dropbell/views/i18n"
)

// TestQueuesAndTasksHaveNames: the pages of the queues show each queue and each task of
// the worker in words, in every language. It reads the constants of domain/task.
func TestQueuesAndTasksHaveNames(t *testing.T) {
	files, err := filepath.Glob("../../../domain/task/*.go")
	musttest.OK(t, err)
	catalogue, err := i18n.Load()
	musttest.OK(t, err)
	version := regexp.MustCompile(`\.v\d$`)
	found := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		musttest.OK(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			value, _ := strconv.Unquote(literal.Value)
			key := ""
			switch {
			case strings.HasSuffix(spec.Names[0].Name, "Queue"):
				key = "queues.of." + value
			case version.MatchString(value):
				key = "queues.task." + version.ReplaceAllString(value, "")
			default:
				return true
			}
			found++
			for _, l := range catalogue.All() {
				if !l.Has(key) {
					t.Errorf("%s: no text %s for %s", l.Tag, key, spec.Names[0].Name)
				}
			}
			return true
		})
	}
	if found < 15 {
		t.Errorf("only %d queues and tasks were found", found)
	}
}
