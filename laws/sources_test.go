package laws

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dropbell/musttest"
)

// source is one Go file of the project that is not a test.
type source struct {
	path      string // from the root of the repository, with slashes
	dir       string
	lines     int
	generated bool
	fset      *token.FileSet
	file      *ast.File
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

func (s source) imports() []string {
	list := make([]string, len(s.file.Imports))
	for i, imp := range s.file.Imports {
		list[i], _ = strconv.Unquote(imp.Path.Value)
	}
	return list
}

// TestMain runs the tests in the root of the repository, from which all paths are.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	m.Run()
}

// walk calls visit with every file of the project, in order.
func walk(t *testing.T, visit func(name string, raw []byte)) {
	t.Helper()
	musttest.OK(t, eachFile(func(name string, raw []byte) error { visit(name, raw); return nil }))
}

// eachFile calls visit with every file of the project, in order, until it returns an
// error.
func eachFile(visit func(name string, raw []byte) error) error {
	root := os.DirFS(".")
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && name != "." && d.Name() != ".ci"
			if hidden || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		raw, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return visit(name, raw)
	})
}

// parsed are the files of the project, parsed once for all tests, none of which
// changes them.
var parsed = sync.OnceValues(func() (list []source, err error) {
	err = eachFile(func(name string, raw []byte) error {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			return nil
		}
		s := source{path: name, dir: path.Dir(name), lines: strings.Count(string(raw), "\n")}
		s.fset, s.file, err = parseOnce(name, raw)
		s.generated = err == nil && ast.IsGenerated(s.file)
		list = append(list, s)
		return err
	})
	return list, err
})

// goFile is a Go file of the project, as parsed.
type goFile struct {
	fset *token.FileSet
	file *ast.File
	err  error
}

// goFiles holds each [goFile] by its name: parsing takes most of a test's time.
var goFiles sync.Map

// parseOnce parses a Go file of the project, tests included, unless another test has.
func parseOnce(name string, raw []byte) (*token.FileSet, *ast.File, error) {
	if known, ok := goFiles.Load(name); ok {
		f := known.(goFile)
		return f.fset, f.file, f.err
	}
	f := goFile{fset: token.NewFileSet()}
	f.file, f.err = parser.ParseFile(f.fset, name, raw, parser.ParseComments)
	goFiles.Store(name, f)
	return f.fset, f.file, f.err
}

func parse(t *testing.T, name string, raw []byte) (*token.FileSet, *ast.File) {
	t.Helper()
	fset, file, err := parseOnce(name, raw)
	musttest.OK(t, err)
	return fset, file
}

func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	musttest.OK(t, err)
	if len(list) < 50 {
		t.Fatalf("only %d files found; is this the root of the repository?", len(list))
	}
	return list
}
