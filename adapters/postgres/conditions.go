package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// containing returns the pattern of texts that have s in them.
func containing(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}

// A conditionList collects conditions whose "?" become numbered parameters. A
// statement has only the conditions that are asked for, so that the planner
// can choose the index made for them.
type conditionList struct {
	list []string
	args []any
}

func (c *conditionList) add(sql string, values ...any) {
	for _, v := range values {
		c.args = append(c.args, v)
		sql = strings.Replace(sql, "?", fmt.Sprintf("$%d", len(c.args)), 1)
	}
	c.list = append(c.list, sql)
}

// params are the arguments for a statement that is planned for them each time.
// A plan for any values, which PostgreSQL makes after five times, walks the
// whole table backwards for a value that is not there.
func (c *conditionList) params() []any {
	return append([]any{pgx.QueryExecModeCacheDescribe}, c.args...)
}

func (c *conditionList) where() string {
	if len(c.list) == 0 {
		return ""
	}
	return " where " + strings.Join(c.list, " and ")
}

// longestName is how long the name of a template or campaign can be. Nothing
// holds a longer text.
const longestName = 200

// findable reports whether a name can hold the text at all; PostgreSQL would
// refuse to look for some.
func findable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && utf8.RuneCountInString(text) <= longestName
}

// holds adds the condition that the column name holds the text, in any case,
// or that the column id is what the text says. The parts are what the index
// knows; they do not say whether they stand together, and cost more to look
// at in a row than the comparison, which therefore comes first.
func (c *conditionList) holds(name, id, text string) {
	found := name + " ilike ? and text_parts(" + name + ", 1) @> text_parts(?, 3)"
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		c.add("("+found+" or "+id+" = ?)", containing(text), text, n)
		return
	}
	c.add(found, containing(text), text)
}
