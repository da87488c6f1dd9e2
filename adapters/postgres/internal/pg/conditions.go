package pg

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Containing returns the pattern of texts that have s in them.
func Containing(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

// Conditions collects conditions whose "?" become numbered parameters. A
// statement has only the conditions that are asked for, so that the planner
// can choose the index made for them.
type Conditions struct {
	List []string
	Args []any
}

// Add adds a condition with the values of its "?".
func (c *Conditions) Add(sql string, values ...any) {
	for _, v := range values {
		c.Args = append(c.Args, v)
		sql = strings.Replace(sql, "?", fmt.Sprintf("$%d", len(c.Args)), 1)
	}
	c.List = append(c.List, sql)
}

// Params are the arguments for a statement that is planned for them each time.
// A plan for any values, which PostgreSQL makes after five times, walks the
// whole table backwards for a value that is not there.
func (c *Conditions) Params() []any {
	return append([]any{pgx.QueryExecModeCacheDescribe}, c.Args...)
}

// Where returns the clause, "" without conditions.
func (c *Conditions) Where() string {
	if len(c.List) == 0 {
		return ""
	}
	return " where " + strings.Join(c.List, " and ")
}

// longestName is how long the name of a template or campaign can be. Nothing
// holds a longer text.
const longestName = 200

// Findable reports whether a name can hold the text at all; PostgreSQL would
// refuse to look for some.
func Findable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && utf8.RuneCountInString(text) <= longestName
}

// Holds adds the condition that the column name contains the text, in any case,
// or that the column id equals the number that the text is. The trigram
// conditions use the index; they do not imply the match, and cost more per row
// than the comparison, which therefore comes first.
func (c *Conditions) Holds(name, id, text string) {
	found := name + " ilike ? and text_parts(" + name + ", 1) @> text_parts(?, 3)"
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		c.Add("("+found+" or "+id+" = ?)", Containing(text), text, n)
		return
	}
	c.Add(found, Containing(text), text)
}
