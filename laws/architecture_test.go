// Package laws holds the tests of the whole tree: the permitted imports of each
// package, the use of contexts, the size of files, and the words that users read.
package laws

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "dropbell"

// pureStd is the part of the standard library the domain may use: nothing that
// reads, writes, listens or logs. (runtime/debug returns the stack of a panic.)
var pureStd = []string{
	"bytes", "cmp", "compress/gzip", "container/heap", "context", "crypto/aes", "crypto/cipher", "crypto/ed25519", "crypto/hkdf", "crypto/hmac", "crypto/rand", "crypto/sha256", "crypto/subtle",
	"embed",
	"encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/fnv",
	"html", "html/template", "io", "iter", "maps", "math", "math/big", "math/bits", "math/rand/v2", "net/mail", "net/netip", "net/url", "reflect",
	"regexp", "runtime/debug", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "text/template", "time", "time/tzdata", "unicode",
	"unicode/utf16", "unicode/utf8",
}

// textLibraries turn text into text, and are used by the texts of messages only.
var textLibraries = []string{"github.com/yuin/goldmark", "golang.org/x/text/language"}

// drawLibraries are the Merkle tree and the signed notes of Go's checksum database. They do no I/O, and whoever
// checks a draw uses them too.
var drawLibraries = []string{"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog"}

// seriesLibraries compute the days of a rule of RFC 5545, without I/O.
var seriesLibraries = []string{"github.com/teambition/rrule-go"}

// viewLibraries are the libraries, besides the standard library, that the views may use.
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
	if isOwn && within(own, "lab") && !within(s.dir, "lab") {
		return "the product and its packages do not depend on the laboratory: its benchmarks, chaos tests and tools"
	}
	if isOwn && isFixture(own) && !isFixture(s.dir) && !within(s.dir, "bench", "lab", "tools") {
		return "what the programs run does not depend on fakes and fixtures of tests"
	}
	top, _, _ := strings.Cut(s.dir, "/")
	switch top {
	case "domain":
		if s.dir == "domain/message" && within(imp, textLibraries...) {
			return ""
		}
		if s.dir == "domain/draw" && within(imp, drawLibraries...) {
			return ""
		}
		if s.dir == "domain/series" && within(imp, seriesLibraries...) {
			return ""
		}
		return domainRefusal(imp, own, isOwn)
	case "adapters":
		if s.dir == "adapters/mute" && domainRefusal(imp, own, isOwn) != "" {
			return "the senders of rehearsals import what rules may import alone, by which no provider can be reached"
		}
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
	case "sdk", "examples":
		if isOwn && !within(own, "sdk") {
			return "shops import the SDK, and get nothing of the server with it; examples are programs of shops"
		}
	case "app":
		if isOwn && within(own, "web", "worker", "views", "dropbell") {
			return "app is what both programs share, and knows neither"
		}
	case "web", "worker":
		other := map[string]string{"web": "worker", "worker": "web"}[top]
		if isOwn && within(own, other) {
			return "the two programs are deployed apart; what both need belongs to the domain or an adapter"
		}
		if isOwn && within(s.dir, api) {
			return apiRefusal(s.dir, own)
		}
		if top == "worker" {
			return workerRefusal(s, own, isOwn)
		}
		return consoleRefusal(s, own, isOwn)
	}
	return ""
}

// api joins the operations of the subjects of the JSON API, which have a package each.
const api = "web/api"

// apiRefusal says why the package dir below api may not import own. Subjects may import
// the pipeline, which every request passes, and the parts, which the answers of several
// subjects share.
func apiRefusal(dir, own string) string {
	const pipeline, parts = api + "/pipeline", api + "/parts"
	switch {
	case dir == api || !within(own, api) || within(own, dir):
		return ""
	case within(dir, pipeline, parts):
		return "the pipeline and the parts of the API know no subject, so that every subject can stand on them"
	case !within(own, pipeline, parts):
		return "a subject of the API knows the pipeline and the parts, and no other subject; what two need belongs there or to the domain"
	}
	return ""
}

// workerRefusal keeps the packages of worker apart: worker/program opens their dependencies
// and runs them, and each of them imports only worker/shell.
func workerRefusal(s source, own string, isOwn bool) string {
	const shell, program, fixture = "worker/shell", "worker/program", "worker/workertest"
	switch {
	case isOwn && own == fixture:
		return "what the program runs does not depend on a fixture of tests"
	case !isOwn || s.dir == "worker" || s.dir == program || !within(own, "worker") || within(own, s.dir):
		return ""
	case s.dir == shell:
		return "the shell knows no room, so that every room can stand on it"
	case own != shell:
		return "a room of worker knows the shell and no other room; what two need comes in through an interface, from worker/program"
	}
	return ""
}

// isFixture reports whether a package serves tests alone: fakes of providers, fixtures and
// contracts, whose names end in "test".
func isFixture(dir string) bool { return strings.HasSuffix(dir, "test") }

// consoleRefusal keeps the subjects of the console apart: web/console gathers their
// routes, and each subject imports only the shell and the packages below the
// subject itself.
func consoleRefusal(s source, own string, isOwn bool) string {
	const console, shell, fixture = "web/console", "web/console/shell", "web/console/consoletest"
	switch {
	case !isOwn || !within(s.dir, console) || s.dir == console || s.dir == fixture || !within(own, console) || within(own, s.dir):
		return ""
	case within(s.dir, shell) && !within(own, shell):
		return "the shell knows no subject, so that every subject can stand on it"
	case !within(own, shell):
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
	if !isOwn || within(own, "domain", "migrations", "killpoint", "adapters/redisclient", "adapters/sender") {
		return ""
	}
	room := strings.Join(strings.SplitN(s.dir, "/", 3)[:2], "/")
	if room == stores && within(own, room) {
		return storeRefusal(s.dir, own)
	}
	switch {
	case within(own, room), s.dir == stores+"/pgtest" && own == "adapters/localstack":
		return ""
	case within(own, "adapters"):
		return "adapters meet in app and the programs only, so that each technology can be replaced alone"
	}
	return "an adapter serves the domain and knows nobody above it"
}

// stores is the folder of the database adapter, with one package per subject below
// it; the package stores itself only opens the database.
const stores = "adapters/postgres"

// storeRefusal says why the package dir below stores may not import own, which
// is below it, too.
func storeRefusal(dir, own string) string {
	switch {
	case dir == stores+"/pgtest":
		return ""
	case within(own, stores+"/pgtest"):
		return "what the program runs does not depend on a fixture of tests"
	case own != stores+"/internal/pg":
		return "subjects know internal/pg and not each other: what two of them need is there, or comes in through an interface"
	}
	return ""
}

// pages is where the pages of the console are, a package per subject.
const pages = "views/pages"

// pageRefusal says why the package dir below pages may not import own, which
// is below it, too.
func pageRefusal(dir, own string) string {
	switch {
	case dir == pages+"/parts":
		return "parts are shared by the pages of all subjects and know none of them"
	case own != pages+"/parts":
		return "the pages of a subject know parts and no other subject; what two of them show belongs to parts or to views/ui"
	}
	return ""
}

func viewRefusal(s source, imp, own string, isOwn bool) string {
	switch {
	case isOwn && !within(own, "domain", "views"):
		return "views show domain values and reach for nothing, so that every page can be drawn from canned data"
	case isOwn && within(own, pages) && within(s.dir, "views/ui", "views/i18n", "views/static"):
		return "pages stand on views/ui, which knows none of them"
	case isOwn && within(own, pages) && within(s.dir, pages):
		return pageRefusal(s.dir, own)
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

// storesSubject returns the subject of a path below stores, "" if the path belongs
// to no subject.
func storesSubject(name string) string {
	below, ok := strings.CutPrefix(name, stores+"/")
	subject, _, _ := strings.Cut(below, "/")
	if !ok || slices.Contains([]string{"internal", "pgtest"}, subject) || strings.HasSuffix(subject, ".go") {
		return ""
	}
	return subject
}

// TestSubjectsOfStores: the folder of the stores opens the database, and each
// subject's stores have a folder. Packages are named like the packages of the
// domain and the console, so an import calls one <subject>db. The tests of a
// subject get the stores of other subjects from pgtest.
func TestSubjectsOfStores(t *testing.T) {
	walk(t, func(name string, raw []byte) {
		if path.Ext(name) != ".go" {
			return
		}
		if path.Dir(name) == stores && !strings.HasSuffix(name, "_test.go") && name != stores+"/postgres.go" {
			t.Errorf("%s: a store belongs to the folder of its subject", name)
		}
		_, file := parse(t, name, raw)
		for _, imp := range file.Imports {
			full, _ := strconv.Unquote(imp.Path.Value)
			subject := storesSubject(strings.TrimPrefix(full, module+"/"))
			if subject == "" {
				continue
			}
			if imp.Name == nil || imp.Name.Name != subject+"db" {
				t.Errorf("%s: %s is imported as %sdb", name, full, subject)
			}
			if own := storesSubject(name); own != "" && own != subject {
				t.Errorf("%s imports %s\n\tthe stores of another subject come from pgtest", name, full)
			}
		}
	})
}

// TestImportLaw tests the import law itself by examples, since a law that forbids
// nothing would pass unnoticed while all imports are permitted ones.
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
		{"adapters/mute", other, "dropbell/domain/delivery", true},
		{"adapters/mute", other, "dropbell/adapters/sender", false},
		{"adapters/mute", other, "net", false},
		{"adapters/mute", other, "os/exec", false},
		{"adapters/postgres", other, "dropbell/migrations", true},
		{"adapters/postgres", other, "dropbell/killpoint", true},
		{"domain/reminder", other, "dropbell/killpoint", false},
		{"killpoint", other, "dropbell/domain/reminder", false},
		{"adapters/postgres", other, "dropbell/adapters/redis", false},
		{"adapters/asynq", other, "dropbell/adapters/redisclient", true},
		{"adapters/sms", other, "dropbell/adapters/sender", true},
		{"adapters/sms", other, "dropbell/adapters/push", false},
		{"adapters/sms", other, "dropbell/adapters/sms/smstest", false},
		{"adapters/sms/smstest", other, "dropbell/adapters/sender/providertest", true},
		{"adapters/asynq", other, "dropbell/adapters/redis", false},
		{"adapters/postgres", other, "dropbell/adapters/postgresql", false},
		{"adapters/postgres", other, "dropbell/views/ui", false},
		{"adapters/postgres", other, "dropbell/adapters/postgres/internal/pg", true},
		{"adapters/postgres/access", other, "dropbell/adapters/postgres/internal/pg", true},
		{"adapters/postgres/access", other, "dropbell/adapters/postgres/work", false},
		{"adapters/postgres/access", other, "dropbell/adapters/postgres", false},
		{"adapters/postgres/access", other, "dropbell/adapters/postgres/pgtest", false},
		{"adapters/postgres/access", other, "dropbell/adapters/postgres/pgtest/rows", false},
		{"adapters/postgres/drops", other, "dropbell/adapters/postgres/delivery", false},
		{"adapters/postgres/coupons", other, "dropbell/adapters/postgres/drops", false},
		{"adapters/postgres", other, "dropbell/adapters/postgres/drops", false},
		{"adapters/postgres/pgtest", other, "dropbell/adapters/postgres/access", true},
		{"adapters/postgres/pgtest", other, "dropbell/adapters/localstack", true},
		{"adapters/postgres/access", other, "dropbell/adapters/localstack", false},
		{"adapters/postgres/internal/pg", other, "dropbell/adapters/postgres", false},
		{"adapters/postgres", other, "dropbell/web/api", false},
		{"lab/tools/dev/up", other, "dropbell/adapters/localstack/child", true},
		{"lab/tools/dev/up", main, "dropbell/adapters/config", true},
		{"sdk/go", other, "dropbell/sdk/go/api", true},
		{"sdk/go", other, "dropbell/domain/event/hook", false},
		{"examples/go-backend", main, "dropbell/sdk/go", true},
		{"examples/go-backend", main, "dropbell/web/api", false},
		{"web", main, "dropbell/lab/tools/dev/demo", false},
		{"app", other, "dropbell/adapters/postgres", true},
		{"app", other, "dropbell/web/api", false},
		{"adapters/postgres", other, "dropbell/app", false},
		{"adapters/localstack", other, "dropbell/lab/tools/dev/catcher", false},
		{"adapters/localstack", other, "dropbell/adapters/config", false},
		{"adapters/localstack/standin", main, "dropbell/adapters/config", false},
		{"views/pages/work", other, "dropbell/domain/reminder", true},
		{"views/pages/work", other, "dropbell/views/pages/parts", true},
		{"views/pages/work", other, "dropbell/views/ui", true},
		{"views/pages/work", other, "dropbell/views/pages/coupons", false},
		{"views/pages/parts", other, "dropbell/views/ui", true},
		{"views/pages/parts", other, "dropbell/views/pages/work", false},
		{"views/ui", other, "dropbell/views/pages/parts", false},
		{"views/stories", other, "dropbell/views/pages/work", true},
		{"views/pages/work", other, "github.com/a-h/templ", true},
		{"views/pages/work", other, "github.com/go-chi/chi/v5", false},
		{"views/pages/work", other, "dropbell/adapters/postgres", false},
		{"views/pages/work", other, "net/http", false},
		{"views/pages/work", other, "os", false},
		{"views/pages/work", other, "net/url", true},
		{"views/pages/work", other, "log/slog", false},
		{"views/pages/work", other, "net/smtp", false},
		{"views/static", other, "net/http", true},
		{"views/storybook", main, "log", true},
		{"views/storybook", main, "dropbell/adapters/postgres", false},
		{"web", main, "dropbell/adapters/postgres", true},
		{"web", main, "dropbell/worker", false},
		{"web/api", other, "dropbell/adapters/postgres", true},
		{"web/api", other, "dropbell/worker", false},
		{"web/api", other, "dropbell/web/api/pipeline", true},
		{"web/api", other, "dropbell/web/api/drops", true},
		{"web/api/drops", other, "dropbell/web/api/pipeline", true},
		{"web/api/drops", other, "dropbell/web/api/parts", true},
		{"web/api/drops", other, "dropbell/web/wallet", true},
		{"web/api/drops", other, "dropbell/web/api", false},
		{"web/api/drops", other, "dropbell/web/api/coupons", false},
		{"web/api/parts", other, "dropbell/web/api/pipeline", false},
		{"web/api/pipeline", other, "dropbell/web/api", false},
		{"web/api/pipeline", other, "dropbell/web/api/drops", false},
		{"web/api/pipeline", other, "dropbell/web/middleware", true},
		{"web/console", other, "dropbell/web/console/work", true},
		{"web/console/work", other, "dropbell/web/console/shell", true},
		{"web/console/work", other, "dropbell/web/security", true},
		{"web/console/work", other, "dropbell/web/console/coupons", false},
		{"web/console/work", other, "dropbell/web/console", false},
		{"web/console/shell", other, "dropbell/web/console/work", false},
		{"web/console/shell", other, "dropbell/web/middleware", true},
		{"web/console/work", other, "dropbell/web/console/shell/upload", true},
		{"web/console/shell/upload", other, "dropbell/web/console/shell", true},
		{"web/console/shell/upload", other, "dropbell/web/console/work", false},
		{"web/console/consoletest", other, "dropbell/web/console", true},
		{"web/console/work", other, "dropbell/web/console/consoletest", false},
		{"web/program", other, "dropbell/web/console/consoletest", false},
		{"worker", main, "dropbell/web/api", false},
		{"worker/program", other, "dropbell/web/program", false},
		{"worker/program", other, "dropbell/worker/coupons", true},
		{"worker/coupons", other, "dropbell/worker/shell", true},
		{"worker/coupons", other, "dropbell/worker/campaigns", false},
		{"worker/coupons", other, "dropbell/worker/program", false},
		{"worker/shell", other, "dropbell/worker/coupons", false},
		{"worker/coupons", other, "dropbell/worker/workertest", false},
		{"web/program", other, "dropbell/worker/program", false},
		{"dropbell", main, "dropbell/web/program", true},
		{"dropbell", main, "dropbell/worker/program", true},
		{"dropbell", main, "dropbell/lab/bench/stack", false},
		{"worker", main, "dropbell/lab/bench/stack", false},
		{"worker", main, "unsafe", false},
		{"lab/bench/fanout", main, "dropbell/lab/bench/stack", true},
		{"migrations", other, "dropbell/domain/user", false},
	} {
		why := refusal(source{dir: c.dir, file: c.file}, c.imp)
		if (why == "") != c.allowed {
			t.Errorf("%s (%s) importing %s: allowed %v, want %v (%s)", c.dir, c.file.Name, c.imp, why == "", c.allowed, why)
		}
	}
}

// TestContextsArePassed: a context is the first parameter of the function that
// needs it and is stored nowhere, so that a deadline applies to exactly one call.
func TestContextsArePassed(t *testing.T) {
	for _, s := range sources(t) {
		if !within(s.dir, "domain") {
			continue
		}
		isContext := func(e ast.Expr) bool {
			sel, ok := e.(*ast.SelectorExpr)
			return ok && sel.Sel.Name == "Context" && fmt.Sprint(sel.X) == "context"
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, f := range n.Fields.List {
					if isContext(f.Type) {
						t.Errorf("%s keeps a context in a struct", s.at(f))
					}
				}
			case *ast.FuncType:
				for i, f := range n.Params.List {
					if i > 0 && isContext(f.Type) {
						t.Errorf("%s takes a context that is not its first parameter", s.at(f))
					}
				}
			}
			return true
		})
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

// TestPointsFailInBenchmarksAlone: no program of the product can be made to fail.
func TestPointsFailInBenchmarksAlone(t *testing.T) {
	handled := 0
	for _, s := range sources(t) {
		for _, n := range uses(s.file, "killpoint", "Handle") {
			if handled++; !within(s.dir, "lab") {
				t.Errorf("%s decides what happens at kill points\n\tonly the programs of lab/chaos/killable do", s.at(n))
			}
		}
	}
	if handled == 0 {
		t.Error("nothing decides what happens at kill points")
	}
}

// TestDrawsGoByTheDatabase: the workers that take the steps of a draw have clocks that differ, so all instants of a
// draw come from the clock of the database.
func TestDrawsGoByTheDatabase(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if s.dir != "adapters/beacon" && !strings.HasPrefix(s.path, "adapters/postgres/drops/draws") {
			continue
		}
		seen++
		for _, n := range append(uses(s.file, "time", "Now", "Since", "Until"), uses(s.file, "app", "Clock")...) {
			t.Errorf("%s reads the clock of the machine\n\ta draw goes by clock_timestamp() of the database", s.at(n))
		}
	}
	if seen < 5 {
		t.Errorf("%d files of draws were looked at", seen)
	}
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
