package dropbell_test

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unnamed finds clauses whose subject is a bare pronoun, and relative clauses without
// a noun: the beginning of a text, or the word after the end of a clause, or after a
// verb or preposition. A heading that is a question word with its verb is no clause.
var unnamed = regexp.MustCompile(`(?i)(?:^|[.:;] )(?:who|whom|whoever|whatever|nobody|what) [a-zA-Z']+` +
	`|\b(?:by|for|to|of|from|with|returns|is|are|says|reads|keeps|notes|counts|decides) who(?:ever)? [a-z']+` +
	`|\b(?:returns|is|are|says|reads|keeps|lists) whom [a-z']+`)

// unnamedIn returns the clauses of a text without a named subject. declared is the
// name that a doc comment begins with; empty = none.
func unnamedIn(text, declared string) []string {
	if !pronouns(text) {
		return nil // nine of ten texts, without the cost of the pattern
	}
	text = strings.Join(strings.Fields(text), " ")
	if declared != "" {
		text = strings.Replace(text, declared, "the name", 1)
	}
	return unnamed.FindAllString(text, -1)
}

// pronouns reports whether a text has the letters of a pronoun that [unnamed] finds.
func pronouns(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "who") || strings.Contains(text, "what") || strings.Contains(text, "nobody")
}

// declaredBy returns the names of a file's declarations and fields by their comments.
func declaredBy(file *ast.File) map[*ast.CommentGroup]string {
	names := map[*ast.CommentGroup]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names[n.Doc] = n.Name.Name
		case *ast.Field:
			if len(n.Names) > 0 {
				names[n.Doc] = n.Names[0].Name
			}
		}
		return true
	})
	return names
}

func TestClausesNameTheirSubjects(t *testing.T) {
	const advice = "begin the clause with the noun: the user, the caller, the row, the value"
	walk(t, func(name string, raw []byte) {
		switch {
		case within(name, "node_modules", "changelog.d") || strings.Contains(name, "testdata/") || name == "CHANGELOG.md":
		case path.Ext(name) == ".go":
			fset, file := parse(t, name, raw)
			if ast.IsGenerated(file) {
				return
			}
			declared := declaredBy(file)
			for _, g := range file.Comments {
				for _, clause := range unnamedIn(g.Text(), declared[g]) {
					t.Errorf("%s says %q\n\t%s", fset.Position(g.Pos()), clause, advice)
				}
			}
			for at, text := range describedIn(file) {
				for _, clause := range unnamedIn(text, "") {
					t.Errorf("%s says %q\n\t%s", fset.Position(at.Pos()), clause, advice)
				}
			}
		case strings.Contains(name, ".min."): // not ours
		case commented(path.Ext(name)):
			comments := commentsIn(path.Ext(name), string(raw))
			for _, line := range slices.Sorted(maps.Keys(comments)) {
				for paragraph := range strings.SplitSeq(comments[line], "\n\n") {
					for _, clause := range unnamedIn(paragraph, "") {
						t.Errorf("%s:%d says %q\n\t%s", name, line, clause, advice)
					}
				}
			}
		case path.Ext(name) == ".md":
			for _, paragraph := range strings.Split(string(raw), "\n\n") {
				if strings.ContainsAny(paragraph[:min(1, len(paragraph))], "#|") {
					continue // headings and tables are no sentences
				}
				for _, clause := range unnamedIn(paragraph, "") {
					t.Errorf("%s says %q\n\t%s", name, clause, advice)
				}
			}
		}
	})
}

func TestUnnamedSubjectsAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		"Caller is who makes a request.":                                        {"is who makes"},
		"TemplatePatch is a change: what is absent stays.":                      {": what is"},
		"The books are kept. Who reads\nthem pays; whoever writes does not.":    {". Who reads", "; whoever writes"},
		"UserOf returns whom the request is about.":                             {"returns whom the"},
		"The message is for who may see it.":                                    {"for who may"},
		"Assigned are the users of the audience whom the group has.":            nil,
		"The caller, who waits, is told. It says which users may, and to whom.": nil,
	} {
		if got := unnamedIn(text, ""); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := unnamedIn("What returns the cause.", "What"); got != nil {
		t.Errorf("the name of a declaration is found: %q", got)
	}
}
