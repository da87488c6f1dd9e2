package laws

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !s.generated {
				t.Errorf("%s declares init\n\twhat happens at start is written in run, in the order in which it happens", s.at(f))
			}
		}
	}
}

func TestNoGlobalState(t *testing.T) {
	globals := map[string]map[string]*ast.ValueSpec{}
	all := sources(t)
	for _, s := range all {
		if globals[s.dir] == nil {
			globals[s.dir] = map[string]*ast.ValueSpec{}
		}
		for _, spec := range packageVars(s.file) {
			for _, name := range spec.Names {
				globals[s.dir][name.Name] = spec
			}
			if kind := mutable(spec.Type); kind != "" && !s.generated {
				t.Errorf("%s declares a package variable of type %s\n\tstate belongs to values that somebody creates and owns", s.at(spec), kind)
			}
		}
	}
	for _, s := range all {
		for _, id := range assigned(s.file) {
			spec, known := globals[s.dir][id.Name]
			local := id.Obj != nil && id.Obj.Decl != spec
			// Kill points are handled once for a process, as TestPointsFailInBenchmarksAlone has it.
			if s.dir == "killpoint" && id.Name == "handle" {
				continue
			}
			if known && !local && !s.generated {
				t.Errorf("%s changes the package variable %s\n\ttwo instances in one process must not share state", s.at(id), id.Name)
			}
		}
	}
}

func packageVars(file *ast.File) []*ast.ValueSpec {
	var list []*ast.ValueSpec
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				list = append(list, spec.(*ast.ValueSpec))
			}
		}
	}
	return list
}

// mutable names types whose only purpose is to be changed.
func mutable(typ ast.Expr) string {
	switch e := typ.(type) {
	case *ast.ChanType:
		return "chan"
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok && (id.Name == "sync" || id.Name == "atomic") {
			return id.Name + "." + e.Sel.Name
		}
	case *ast.IndexExpr:
		return mutable(e.X)
	}
	return ""
}

// assigned returns the root variables of the file's assignments.
func assigned(file *ast.File) []*ast.Ident {
	var list []*ast.Ident
	add := func(e ast.Expr) {
		if id := root(e); id != nil && id.Name != "_" {
			list = append(list, id)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch st := n.(type) {
		case *ast.AssignStmt:
			if st.Tok != token.DEFINE {
				for _, e := range st.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(st.X)
		}
		return true
	})
	return list
}

func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return nil
}

// maxLines is where a file has become two subjects.
const maxLines = 400

func TestFilesStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxLines && !s.generated {
			t.Errorf("%s has %d lines\n\tabove %d a file holds more than one subject; divide it", s.path, s.lines, maxLines)
		}
	}
}

func TestPackageComments(t *testing.T) {
	commented, files := map[string]bool{}, map[string]int{}
	for _, s := range sources(t) {
		commented[s.dir] = commented[s.dir] || s.file.Doc.Text() != ""
		if !s.generated && slices.ContainsFunc(s.file.Decls, declares) {
			files[s.dir]++
		}
	}
	for dir := range files {
		if !commented[dir] {
			t.Errorf("package %s has no comment\n\twhoever opens it first wants to know what it is for", dir)
		}
	}
}

// declares reports whether d is more than an import; a package of imports alone
// needs no comment.
func declares(d ast.Decl) bool {
	g, ok := d.(*ast.GenDecl)
	return !ok || g.Tok != token.IMPORT
}

func TestNoMachinePaths(t *testing.T) {
	homes := []string{"/home/", "/root/", "/work/", "/Users/"}
	somebodys := regexp.MustCompile(`(?:^|[^\w.~}-])(?:` + strings.Join(homes, "|") + `)\w`)
	text := []string{".go", ".templ", ".md", ".yml", ".yaml", ".sql", ".js", ".css", ".sh", ".mod", ""}
	walk(t, func(name string, raw []byte) {
		if !slices.Contains(text, path.Ext(name)) || within(name, "views/static") {
			return
		}
		for i, line := range strings.Split(string(raw), "\n") {
			if !slices.ContainsFunc(homes, func(home string) bool { return strings.Contains(line, home) }) {
				continue // without the cost of the pattern, which nearly no line has
			}
			if found := somebodys.FindString(line); found != "" {
				t.Errorf("%s:%d mentions %q\n\tthe project runs on everybody's machine; a path of one of them helps nobody", name, i+1, strings.TrimSpace(found))
			}
		}
	})
}
