package drops

import (
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
)

// TemplateListSQL is the statement with which [Templates.Templates] looks.
func TemplateListSQL(q template.Query) (sql string, args []any) {
	c := &pg.Conditions{}
	templateConditions(c, q)
	sql, _ = templateListSQL(c, q)
	return sql, c.Args
}
