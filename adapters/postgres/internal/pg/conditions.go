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

// Conditions collects SQL conditions whose "?" become numbered parameters. A
// statement contains only the conditions that the caller asks for, so that the
// planner can choose the index made for these conditions.
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

// Params returns the arguments for a statement that PostgreSQL plans anew for
// each set of values. A generic plan, which PostgreSQL may use after five
// executions, walks the whole table backwards for a value that no row has.
func (c *Conditions) Params() []any {
	return append([]any{pgx.QueryExecModeCacheDescribe}, c.Args...)
}

// Where returns the WHERE clause, or "" if there are no conditions.
func (c *Conditions) Where() string {
	if len(c.List) == 0 {
		return ""
	}
	return " where " + strings.Join(c.List, " and ")
}

// longestName is the maximum length, in characters, of a template's or campaign's
// name.
const longestName = 200

// Findable reports whether a name can contain the text at all. PostgreSQL returns
// an error for text that is not valid UTF-8 or contains U+0000.
func Findable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && utf8.RuneCountInString(text) <= longestName
}

// Holds adds the condition that the column name contains the text, ignoring case.
// If the text is a number, rows whose column id equals the number match too. The
// trigram condition uses the index. It does not imply a match and costs more for
// each row than the comparison, so the comparison comes first.
func (c *Conditions) Holds(name, id, text string) {
	found := name + " ilike ? and text_parts(" + name + ", 1) @> text_parts(?, 3)"
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		c.Add("("+found+" or "+id+" = ?)", Containing(text), text, n)
		return
	}
	c.Add(found, Containing(text), text)
}

// HoldsAny adds the condition of [Conditions.Holds] for several columns, of which one must contain
// the text. Indexes may leave out rows with an empty column.
func (c *Conditions) HoldsAny(names []string, id, text string) {
	var found []string
	var args []any
	for _, name := range names {
		found = append(found, name+" <> '' and "+name+" ilike ? and text_parts("+name+", 1) @> text_parts(?, 3)")
		args = append(args, Containing(text), text)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		found, args = append(found, id+" = ?"), append(args, n)
	}
	c.Add("("+strings.Join(found, " or ")+")", args...)
}
