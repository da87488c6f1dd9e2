// Package dropbell_test holds the project to its architecture: who may import
// whom, where a context may appear, how large a file may grow.
package dropbell_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "dropbell"

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

// walk calls visit with every file of the project, in order.
func walk(t *testing.T, visit func(name string, raw []byte)) {
	t.Helper()
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
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
		visit(name, raw)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	walk(t, func(name string, raw []byte) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			return
		}
		s := source{path: name, dir: path.Dir(name), fset: token.NewFileSet(), lines: strings.Count(string(raw), "\n")}
		file, err := parser.ParseFile(s.fset, name, raw, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.file, s.generated = file, ast.IsGenerated(file)
		list = append(list, s)
	})
	if len(list) < 50 {
		t.Fatalf("only %d files found; is this the root of the repository?", len(list))
	}
	return list
}

// pureStd is what of the standard library the domain may use: nothing that
// reads, writes, listens or logs. (runtime/debug tells where a panic came from.)
var pureStd = []string{
	"bytes", "cmp", "container/heap", "context", "crypto/hmac", "crypto/rand", "crypto/sha256", "crypto/subtle",
	"embed",
	"encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/fnv",
	"html", "html/template", "io", "iter", "maps", "math", "math/big", "math/bits", "math/rand/v2", "net/mail", "net/netip", "net/url",
	"regexp", "runtime/debug", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "text/template", "time", "time/tzdata", "unicode",
	"unicode/utf16", "unicode/utf8",
}

// viewLibraries is what the views may use beside the standard library.
var viewLibraries = []string{"github.com/a-h/templ", "github.com/nicksnyder/go-i18n", "golang.org/x/text"}

func within(name string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return name == r || strings.HasPrefix(name, r+"/") })
}

func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return first != module && !strings.Contains(first, ".")
}

// refusal says why a file in dir may not import imp; "" means that it may.
func refusal(s source, imp string) string {
	if imp == "unsafe" {
		return "nothing here needs it, and neither the race detector nor the compiler can see through it"
	}
	own, isOwn := strings.CutPrefix(imp, module+"/")
	if isOwn && within(own, "deps", "bench") && !within(s.dir, "bench") {
		return "programs and packages of the product do not depend on its benchmarks or on the list of its libraries"
	}
	top, _, _ := strings.Cut(s.dir, "/")
	switch top {
	case "domain":
		return domainRefusal(imp, own, isOwn)
	case "adapters":
		return adapterRefusal(s, own, isOwn)
	case "views":
		return viewRefusal(s, imp, own, isOwn)
	case "killpoint":
		if isOwn {
			return "points are named by those who pass them, and know nobody"
		}
	case "migrations":
		if isOwn {
			return "migrations are history: what they mean may not change with the code"
		}
	case "web", "worker":
		other := map[string]string{"web": "worker", "worker": "web"}[top]
		if isOwn && within(own, other) {
			return "the two programs are deployed apart; what both need belongs to the domain or an adapter"
		}
		return consoleRefusal(s, own, isOwn)
	}
	return ""
}

// consoleRefusal keeps the subjects of the console apart: web/console gathers
// their routes, and each knows the shell alone.
func consoleRefusal(s source, own string, isOwn bool) string {
	const console, shell = "web/console", "web/console/shell"
	if !isOwn || !within(s.dir, console) || s.dir == console || !within(own, console) || within(own, s.dir) {
		return ""
	}
	if within(s.dir, shell) {
		return "the shell knows no subject, so that every subject can stand on it"
	}
	if own != shell {
		return "a subject of the console knows the shell and no other subject; what two need belongs to the shell or to the domain"
	}
	return ""
}

func domainRefusal(imp, own string, isOwn bool) string {
	switch {
	case isOwn && !within(own, "domain"):
		return "the domain knows only itself, so that rules can be read and tested without a database"
	case !isOwn && !isStd(imp):
		return "the domain uses no library: its rules must outlive every one of them"
	case !isOwn && !slices.Contains(pureStd, imp):
		return "the domain does no I/O; time, randomness and stores come in as parameters (a package that does none may join pureStd)"
	}
	return ""
}

func adapterRefusal(s source, own string, isOwn bool) string {
	if !isOwn || within(own, "domain", "migrations", "killpoint") {
		return ""
	}
	room := strings.Join(strings.SplitN(s.dir, "/", 3)[:2], "/")
	switch {
	case within(own, room), room == "adapters/localstack" && s.file.Name.Name == "main" && within(own, "adapters"):
		return ""
	case within(own, "adapters"):
		return "adapters meet in web and worker only, so that each technology can be replaced alone"
	}
	return "an adapter serves the domain and knows nobody above it"
}

func viewRefusal(s source, imp, own string, isOwn bool) string {
	switch {
	case isOwn && !within(own, "domain", "views"):
		return "views show domain values and reach for nothing, so that every page can be drawn from canned data"
	case !isOwn && !isStd(imp) && !within(imp, viewLibraries...):
		return "views use templ and what formats text (viewLibraries), nothing else"
	case s.file.Name.Name == "main" || isOwn: // the storybook is a program
		return ""
	case imp == "net/http" && !within(s.dir, "views/static", "views/stories"):
		return "pages know nothing of requests; only the static files and the storybook serve themselves"
	case within(imp, "os", "log", "database/sql", "net", "syscall") && imp != "net/url" && imp != "net/http":
		return "views do no I/O"
	}
	return ""
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports() {
			if why := refusal(s, imp); why != "" {
				t.Errorf("%s imports %s\n\t%s", s.path, imp, why)
			}
		}
	}
}

// TestImportLaw holds the law itself to examples, since a rule that forbids
// nothing would pass over a clean house unnoticed.
func TestImportLaw(t *testing.T) {
	main, other := &ast.File{Name: ast.NewIdent("main")}, &ast.File{Name: ast.NewIdent("other")}
	for _, c := range []struct {
		dir     string
		file    *ast.File
		imp     string
		allowed bool
	}{
		{"domain/reminder", other, "dropbell/domain/delivery", true},
		{"domain/reminder", other, "net/url", true},
		{"domain/reminder", other, "net/http", false},
		{"domain/reminder", other, "os", false},
		{"domain/reminder", other, "log/slog", false},
		{"domain/reminder", other, "io/fs", false},
		{"domain/reminder", other, "database/sql", false},
		{"domain/reminder", other, "dropbell/adapters/postgres", false},
		{"domain/reminder", other, "dropbell/migrations", false},
		{"domain/reminder", other, "github.com/jackc/pgx/v5", false},
		{"adapters/postgres", other, "dropbell/migrations", true},
		{"adapters/postgres", other, "dropbell/killpoint", true},
		{"domain/reminder", other, "dropbell/killpoint", false},
		{"killpoint", other, "dropbell/domain/reminder", false},
		{"adapters/postgres", other, "dropbell/adapters/redis", false},
		{"adapters/postgres", other, "dropbell/adapters/postgresql", false},
		{"adapters/postgres", other, "dropbell/views/ui", false},
		{"adapters/postgres", other, "dropbell/web/api", false},
		{"adapters/localstack/up", other, "dropbell/adapters/localstack/child", true},
		{"adapters/localstack/up", main, "dropbell/adapters/config", true},
		{"adapters/localstack", other, "dropbell/adapters/config", false},
		{"views/pages", other, "dropbell/domain/reminder", true},
		{"views/pages", other, "github.com/a-h/templ", true},
		{"views/pages", other, "github.com/go-chi/chi/v5", false},
		{"views/pages", other, "dropbell/adapters/postgres", false},
		{"views/pages", other, "net/http", false},
		{"views/pages", other, "os", false},
		{"views/pages", other, "net/url", true},
		{"views/pages", other, "log/slog", false},
		{"views/pages", other, "net/smtp", false},
		{"views/static", other, "net/http", true},
		{"views/storybook", main, "log", true},
		{"views/storybook", main, "dropbell/adapters/postgres", false},
		{"web", main, "dropbell/adapters/postgres", true},
		{"web", main, "dropbell/worker", false},
		{"web/api", other, "dropbell/adapters/postgres", true},
		{"web/api", other, "dropbell/worker", false},
		{"web/console", other, "dropbell/web/console/work", true},
		{"web/console/work", other, "dropbell/web/console/shell", true},
		{"web/console/work", other, "dropbell/web/security", true},
		{"web/console/work", other, "dropbell/web/console/coupons", false},
		{"web/console/work", other, "dropbell/web/console", false},
		{"web/console/shell", other, "dropbell/web/console/work", false},
		{"web/console/shell", other, "dropbell/web/middleware", true},
		{"worker", main, "dropbell/web/api", false},
		{"worker", main, "dropbell/bench/stack", false},
		{"worker", main, "unsafe", false},
		{"bench/fanout", main, "dropbell/bench/stack", true},
		{"migrations", other, "dropbell/domain/user", false},
	} {
		why := refusal(source{dir: c.dir, file: c.file}, c.imp)
		if (why == "") != c.allowed {
			t.Errorf("%s (%s) importing %s: allowed %v, want %v (%s)", c.dir, c.file.Name, c.imp, why == "", c.allowed, why)
		}
	}
}

// contextFiles are the files of each room, beside service.go, in which a
// context appears: use cases too long for one file, and ports.
var contextFiles = map[string][]string{
	"domain/coupon":   {"desk.go", "granter.go", "grants.go", "notices.go", "takeback.go"},
	"domain/claim":    {"doorman.go"},
	"domain/campaign": {"approval.go", "calendar.go", "launch.go", "look.go", "outlet.go", "received.go", "recipients.go", "screen.go", "shops.go", "size.go"},
	"domain/delivery": {"batch.go", "calls.go", "channeltest.go", "control.go", "deadletter.go", "isolate.go", "journal.go", "keep.go", "ledger.go", "run.go", "sender.go"},
	"domain/job":      {"table.go", "worker.go"},
	"domain/reminder": {"announce.go", "announcer.go", "board.go", "cockpit.go", "cutting.go", "explain.go", "firing.go", "forecast.go", "receipts.go"},
	"domain/segment":  {"jobs.go", "look.go", "shops.go"},
	"domain/staff":    {"factorchange.go", "keys.go", "origin.go", "passwordlink.go", "secondfactors.go", "signin.go", "sso.go"},
	"domain/user":     {"erasure.go", "importer.go"},
	"domain/template": {"bulk.go"},
	"domain/stock":    {"building.go", "whereabouts.go", "writer.go"},

	"domain/redeemcode": {"check.go", "generate.go", "redeem.go"},
}

func TestContextStaysInUseCases(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !within(s.dir, "domain") {
			continue
		}
		name := path.Base(s.path)
		for _, n := range uses(s.file, "context", "Context", "Background", "TODO", "WithCancel", "WithTimeout", "WithoutCancel", "WithValue") {
			used[s.path] = true
			if name != "service.go" && !slices.Contains(contextFiles[s.dir], name) {
				t.Errorf("%s uses a context\n\tpure rules take values and return values; use cases and ports stand in service.go "+
					"(or, when a room needs more files, in one that contextFiles lists)", s.at(n))
				break
			}
		}
	}
	for dir, names := range contextFiles {
		for _, name := range names {
			if !used[dir+"/"+name] {
				t.Errorf("%s/%s is on the list of files with a context and has none; take it off", dir, name)
			}
		}
	}
}

// uses returns where the file says pkg.name for one of the names.
func uses(file *ast.File, pkg string, names ...string) []ast.Node {
	var found []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg && id.Obj == nil && slices.Contains(names, sel.Sel.Name) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func TestDomainHasNoClockAndNoVoice(t *testing.T) {
	for _, s := range sources(t) {
		if !within(s.dir, "domain") {
			continue
		}
		for _, n := range uses(s.file, "time", "Now", "Since", "Until", "Sleep") {
			t.Errorf("%s reads the clock or sleeps\n\ttime comes in as a parameter, so that every instant can be tested", s.at(n))
		}
		for _, n := range uses(s.file, "fmt", "Print", "Printf", "Println") {
			t.Errorf("%s prints\n\tthe domain returns errors and values; programs print", s.at(n))
		}
	}
}
