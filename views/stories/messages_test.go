package stories

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dropbell/domain/delivery"
	"dropbell/domain/review"
	"dropbell/domain/template"
	"dropbell/musttest"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/security"
)

// A key need not be a literal in the call that uses it: every string that begins like a message key
// must be a message key.
func TestWhateverLooksLikeAKeyHasAMessage(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	// Names of other things: files, events of scripts, live values, beginnings.
	other := regexp.MustCompile(`\.(csv|xlsx|js|css|svg|json|html)$|^dropbell\.|^state\.class$|_$`)
	actions := inAuditLog(t, "Action")
	keys, err := literals()
	musttest.OK(t, err)
	for _, l := range book.Languages.All() {
		families := map[string]bool{}
		for _, key := range l.Keys() {
			family, _, _ := strings.Cut(key, ".")
			families[family] = true
		}
		for _, key := range keys {
			family, _, _ := strings.Cut(key, ".")
			if !families[family] || other.MatchString(key) || actions[key] != "" || l.Has(key) || begins(l.Keys(), key+".") {
				continue
			}
			t.Errorf("%s: %q looks like a key and has no message", l.Tag, key)
		}
	}
}

func begins(keys []string, with string) bool {
	i, _ := slices.BinarySearch(keys, with)
	return i < len(keys) && strings.HasPrefix(keys[i], with)
}

// T takes a message with one form and N one with two.
func TestCountedMessagesHaveForms(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	code := sources(t)
	for _, l := range book.Languages.All() {
		for _, m := range regexp.MustCompile(`\b([TN]|say)\((?:ctx, |r, )?"([a-z0-9_.-]+)"[,)]`).FindAllStringSubmatch(code, -1) {
			key := m[2]
			if m[1] == "N" {
				key += ".other"
			}
			if !l.Has(key) {
				t.Errorf("%s lacks %q, which is used", l.Tag, key)
			}
		}
	}
	for _, key := range book.Languages.Default().Keys() {
		if stem, ok := strings.CutSuffix(key, ".one"); ok && !book.Languages.Default().Has(stem+".other") {
			t.Errorf("%q has no form for other numbers", stem)
		}
	}
}

// Every action that is written to the audit log has a text, for the line and for the filter.
func TestEveryActionOfTheAuditLogHasWords(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	actions, kinds := inAuditLog(t, "Action"), inAuditLog(t, "ObjectKind")
	if len(actions) < 40 || len(kinds) < 10 {
		t.Fatalf("found only %d actions and %d kinds of objects", len(actions), len(kinds))
	}
	for _, l := range book.Languages.All() {
		for action, where := range actions {
			if !l.Has("action." + action) {
				t.Errorf("%s: the action %q of %s has no message", l.Tag, action, where)
			}
		}
		for kind, where := range kinds {
			if !l.Has("object."+kind) || !l.Has("kind_of."+kind) {
				t.Errorf("%s: the kind %q of %s has no message", l.Tag, kind, where)
			}
		}
	}
	var options bytes.Buffer
	page := accesspages.Audit{}
	for a := range actions {
		page.Actions = append(page.Actions, a)
	}
	musttest.OK(t, page.Page().Render(book.Context(t.Context(), Story{}, Looks()[0], "nonce"), &options))
	for kind := range kinds {
		if !strings.Contains(options.String(), `<option value="`+kind+`"`) {
			t.Errorf("the log cannot be filtered by %q", kind)
		}
	}
	// A label that ends in "of" in front of a name would be incomplete.
	for _, m := range regexp.MustCompile(`<option value="[^"]*"[^>]*>([^<]* (?:of|for|in|on|over|to)|[^<]*[:：])</option>`).FindAllStringSubmatch(options.String(), -1) {
		t.Errorf("the option %q lacks its end", m[1])
	}
}

// ends returns the possible last parts of composed actions.
func ends() map[string][]string {
	words := func(list ...any) (out []string) {
		for _, v := range list {
			out = append(out, fmt.Sprint(v))
		}
		return out
	}
	var steps []string
	for _, s := range template.Transitions() {
		steps = append(steps, string(s))
	}
	var events []any
	for _, e := range security.Events() {
		if e != security.TokenRefused { // which is not recorded
			events = append(events, e)
		}
	}
	return map[string][]string{
		"dead_letters.": words(delivery.Replay, delivery.Discard), "dead_message.": words("requeue", "discard"),
		"queue.": words("pause", "resume", "change"), "security.": words(events...),
		"template.": steps, "campaign.": words("publish", "pause", "resume", "cancel"), "coupon.": words("revoke"),
		"webhook.":  words("create", "change", "rotate", "remove", "test", "replay", "replay_since"),
		"review.":   words(review.Suspend, review.Return, review.Restore, review.Leave, review.Approve, review.Decline, "appeal_restored", "appeal_upheld"),
		"provider.": words("create", "change", "enable", "disable", "delete"),
	}
}

// A book of functions of one package, for following an argument to its callers.
type scope struct {
	files []*ast.File
	at    func(ast.Node) string
}

// inAuditLog finds every value in the program's sources that a field of an entry of the audit log
// can have, with a place that writes it.
func inAuditLog(t *testing.T, field string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for dir, s := range packages(t) {
		for _, f := range s.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					lit, ok := n.(*ast.CompositeLit)
					if !ok || !strings.HasSuffix(name(lit.Type), "Entry") {
						return true
					}
					for _, e := range lit.Elts {
						if kv, ok := e.(*ast.KeyValueExpr); ok && name(kv.Key) == field {
							values := s.values(fn, kv.Value, 0)
							if len(values) == 0 {
								t.Errorf("%s: what is the %s that is written at %s?", dir, field, s.at(kv))
							}
							for _, v := range values {
								found[v] = s.at(kv)
							}
						}
					}
					return true
				})
			}
		}
	}
	return found
}

// packages parses everything that may write to the audit log.
func packages(t *testing.T) map[string]*scope {
	t.Helper()
	all, err := parsePackages()
	musttest.OK(t, err)
	return all
}

var parsePackages = sync.OnceValues(func() (map[string]*scope, error) {
	set, all := token.NewFileSet(), map[string]*scope{}
	for _, root := range []string{"../../domain", "../../adapters", "../../web", "../../worker"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasSuffix(path, "test") {
				return filepath.SkipDir // fixtures of tests, such as pgtest
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			if all[dir] == nil {
				all[dir] = &scope{at: func(n ast.Node) string { return set.Position(n.Pos()).String() }}
			}
			all[dir].files = append(all[dir].files, f)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// values returns the possible values of an expression inside fn: texts, texts with a known end, and
// texts that callers pass.
func (s *scope) values(fn *ast.FuncDecl, e ast.Expr, depth int) (list []string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if v, err := strconv.Unquote(e.Value); err == nil {
			return []string{v}
		}
	case *ast.BinaryExpr:
		for _, head := range s.values(fn, e.X, depth) {
			for _, end := range ends()[head] {
				list = append(list, head+end)
			}
		}
		return list
	case *ast.Ident:
		if i := parameter(fn, e.Name); i >= 0 && depth < 4 {
			return s.passed(fn.Name.Name, i, depth+1)
		}
		return s.assigned(fn, e.Name, depth)
	}
	return nil
}

// parameter is the place of a parameter, or -1.
func parameter(fn *ast.FuncDecl, called string) int {
	i := 0
	for _, f := range fn.Type.Params.List {
		for _, n := range f.Names {
			if n.Name == called {
				return i
			}
			i++
		}
	}
	return -1
}

// passed are the values that callers in the package pass at a place.
func (s *scope) passed(called string, place, depth int) (list []string) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && name(call.Fun) == called && len(call.Args) > place {
					list = append(list, s.values(fn, call.Args[place], depth)...)
				}
				return true
			})
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// assigned are the values that a variable of fn is given.
func (s *scope) assigned(fn *ast.FuncDecl, called string, depth int) (list []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i := range a.Lhs {
				if name(a.Lhs[i]) == called {
					list = append(list, s.values(fn, a.Rhs[i], depth)...)
				}
			}
		}
		return true
	})
	return list
}

// name is the last word of an identifier, a selector or a pointer to it.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return name(e.X)
	}
	return ""
}
