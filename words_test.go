package dropbell_test

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vague are words that hide the subject of a sentence, and terms that have a
// usual name in the trade.
var vague = map[string]string{
	"somebody": "name the user, member, worker or caller", "someone": "name the user, member, worker or caller",
	"anybody": "name the user, member, worker or caller", "anyone": "name the user, member, worker or caller",
	"whoever": "name the user, member, worker or caller", "nobody": "name the user, member, worker or caller",
	"everybody": "all users, each recipient", "everyone": "all users, each recipient",
	"shelves": "shards", "latch": "lock", "at a blow": "in one step",
}

var vagueList = slices.Collect(maps.Keys(vague))

var vagueWords = regexp.MustCompile(`(?i)\b(somebody|someone|anybody|anyone|whoever|nobody|everybody|everyone|shelves|latch|at a blow)\b`)

// lineComments finds comments in files that are not Go.
var lineComments = regexp.MustCompile(`(?m)^\s*(?://|--) .*$`)

func TestCommentsNameTheirSubjects(t *testing.T) {
	walk(t, func(name string, raw []byte) {
		switch {
		case within(name, "docs", "node_modules") || strings.Contains(name, "testdata/"):
		case path.Ext(name) == ".go":
			for where, text := range goTexts(t, name, raw) {
				complain(t, where, text)
			}
		case slices.Contains([]string{".templ", ".js", ".lua"}, path.Ext(name)) && !strings.HasSuffix(name, ".min.js"):
			for _, at := range lineComments.FindAllIndex(raw, -1) {
				complain(t, name+":"+strconv.Itoa(1+strings.Count(string(raw[:at[0]]), "\n")), string(raw[at[0]:at[1]]))
			}
		}
	})
}

func complain(t *testing.T, where, text string) {
	for _, word := range vagueIn(text) {
		t.Errorf("%s says %q\n\tthe subject of a sentence is the thing's name: %s", where, word, vague[strings.ToLower(word)])
	}
}

// vagueIn returns the vague words of a text, without those that are the name of
// the declaration that the text begins with.
func vagueIn(text string) []string {
	words := strings.TrimLeft(text, "/*- \t")
	name, _, _ := strings.Cut(words, " ")
	if vague[strings.ToLower(name)] != "" && name != strings.ToLower(name) {
		if _, rest, ok := strings.Cut(words, name+" is "); ok {
			words = rest
		}
	}
	if lower := strings.ToLower(words); !slices.ContainsFunc(vagueList, func(word string) bool { return strings.Contains(lower, word) }) {
		return nil // nearly every text, without the cost of the pattern
	}
	return vagueWords.FindAllString(words, -1)
}

// goTexts returns the comments of a file and the descriptions of API fields, by
// position. Generated files are as good as what they are made from.
func goTexts(t *testing.T, name string, raw []byte) map[string]string {
	t.Helper()
	fset, file := parse(t, name, raw)
	texts := map[string]string{}
	if ast.IsGenerated(file) {
		return texts
	}
	for _, g := range file.Comments {
		texts[fset.Position(g.Pos()).String()] = g.Text()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Tag != nil {
			texts[fset.Position(f.Tag.Pos()).String()] = f.Tag.Value
		}
		return true
	})
	return texts
}

func TestVagueWordsAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		"Take returns groups that nobody has in hand.":                        {"nobody"},
		"Whoever publishes says so by the version.":                           {"Whoever"},
		"Of two who divide the shelves at a blow":                             {"shelves", "at a blow"},
		`json:"stock_left" doc:"Coupons that somebody else can have."`:        {"somebody"},
		"Everybody is the rule that a new segment begins with.":               nil,
		"Take returns groups that no writer holds, with the key of each user": nil,
	} {
		if got := vagueIn(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
