package dropbell_test

import (
	"go/ast"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// marks find a comment that ends with its line, by the extensions of files other than
// Go whose comments follow the rules of words; nil = there are only block comments.
var marks = map[string]*regexp.Regexp{
	".sql": dashes, ".lua": dashes, ".templ": slashes, ".js": slashes, ".mjs": slashes, ".ts": slashes,
	".css": nil, ".html": nil,
}

func commented(ext string) bool { _, ok := marks[ext]; return ok }

var (
	// blocks finds block comments of C and of HTML.
	blocks = regexp.MustCompile(`(?s)(?:^|\s)/\*\*?(\s.*?)\*/|<!--(.*?)-->`)
	// stars begin the lines of a block comment.
	stars = regexp.MustCompile(`(?m)^[ \t]*\*`)

	dashes  = regexp.MustCompile(`(?:^|\s)(--) `)
	slashes = regexp.MustCompile(`(?:^|\s)(//) `)
)

// commentsIn returns the comments of a file that is not Go by the numbers of their
// lines. Comments in the same column of consecutive lines are one text. A description
// of the HTTP API, which a generated comment marks with @description, is its own text.
func commentsIn(ext, text string) map[int]string {
	found := map[int]string{}
	for _, at := range blocks.FindAllStringSubmatchIndex(text, -1) {
		from, to := max(at[2], at[4]), max(at[3], at[5])
		line := 1 + strings.Count(text[:from], "\n")
		for part := range strings.SplitSeq(stars.ReplaceAllString(text[from:to], ""), "@description") {
			found[line] += part + "\n\n"
			line += strings.Count(part, "\n")
		}
	}
	if marks[ext] == nil {
		return found
	}
	first, last, column := 0, 0, 0
	for i, line := range strings.Split(text, "\n") {
		at := marks[ext].FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		number, from, to := i+1, at[2], at[3]
		if continues := first > 0 && number == last+1 && from == column && strings.TrimSpace(line[:from]) == ""; !continues {
			first, column = number, from
		}
		found[first] += line[to:] + "\n"
		last = number
	}
	return found
}

// describedIn returns the descriptions in the struct tags of a Go file, which the
// document of the HTTP API shows, by the places of the tags. The other descriptions of
// the document are comments of sdk/typescript/schema.d.ts.
func describedIn(file *ast.File) map[ast.Node]string {
	found := map[ast.Node]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			tag, _ := strconv.Unquote(f.Tag.Value)
			if doc := reflect.StructTag(tag).Get("doc"); doc != "" {
				found[f.Tag] = doc
			}
		}
		return true
	})
	return found
}

func TestCommentsAreFound(t *testing.T) {
	for _, c := range []struct {
		ext, text string
		want      map[int]string
	}{
		{".sql", "-- What a slot\n-- found.\nstop text, -- what is left\n           -- is skipped\n-- Rows.\nselect '--'",
			map[int]string{1: " What a slot\n found.\n", 3: " what is left\n is skipped\n", 5: " Rows.\n"}},
		{".templ", "\t// Who asks.\n<a href=\"https://example.com\">\n<!-- What is shown. -->",
			map[int]string{1: " Who asks.\n", 3: " What is shown. \n\n"}},
		{".css", "a { /* What lies\n   above. */\n  background: url(//b/*.png) }", map[int]string{1: " What lies\n   above. \n\n"}},
		{".ts", "/**\n * Show a drop\n * @description What it shows.\n */\na // b\n/** @description Who. */",
			map[int]string{1: "\n Show a drop\n \n\n", 3: " What it shows.\n \n\n", 5: " b\n", 6: " \n\n Who. \n\n"}},
	} {
		if got := commentsIn(c.ext, c.text); !maps.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", c.text, got, c.want)
		}
	}
}
