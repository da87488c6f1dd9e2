package drops

import (
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
)

// TemplateListSQL returns the statement of [Templates.Templates].
func TemplateListSQL(q template.Query) (sql string, args []any) {
	c := &pg.Conditions{}
	templateConditions(c, q)
	sql, _ = templateListSQL(c, q)
	return sql, c.Args
}

// WithoutSQL is the statement about orders without coupons.
const WithoutSQL = withoutSQL
