package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/template"
)

// Templates lists templates by opening.
func (s Templates) Templates(ctx context.Context, q template.Query) ([]template.Template, error) {
	if !findable(q.Search) {
		return nil, nil
	}
	c := &conditionList{}
	templateConditions(c, q)
	sql, ok := templateListSQL(c, q)
	if !ok {
		return nil, nil // there is no such state
	}
	rows, err := s.pool.Query(ctx, sql, c.params()...)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanTemplate)
	return list, translate(err)
}

func templateConditions(c *conditionList, q template.Query) {
	if q.Search != "" {
		c.holds("t.name", "t.id", q.Search)
	}
	if len(q.IDs) > 0 {
		c.add("t.id = any(?)", q.IDs)
	}
	if len(q.Shops) > 0 {
		c.add("t.shop_number = any(?)", q.Shops)
	}
	if q.From != nil {
		c.add("t.opens_at >= ?", *q.From)
	}
	if q.To != nil {
		c.add("t.opens_at < ?", *q.To)
	}
	if q.After.ID != 0 {
		past := ">"
		if q.Descending {
			past = "<"
		}
		c.add("(t.opens_at, t.id) "+past+" (?, ?)", q.After.OpensAt, q.After.ID)
	}
}

// inState are the rows in a visible state, which agrees with
// [template.Template.State]. "Open" and others follow from the clock and the
// counters and are not stored, so each state has conditions that an index
// yields in the order of the list, and one of them three.
var inState = map[template.State][]string{
	template.Draft:     {"t.state = 'draft'"},
	template.Cancelled: {"t.state = 'cancelled'"},
	template.Closed: {"t.state = 'closed'", "t.state in ('published', 'paused') and t.closes_at <= now()",
		"t.state in ('published', 'paused') and t.valid_until <= now() and t.closes_at > now()"},
	template.Paused:    {"t.state = 'paused' and " + endsAt + " > now()"},
	template.Scheduled: {"t.state = 'published' and t.opens_at > now()"},
	template.Open:      {"t.state = 'published' and t.opens_at <= now() and " + endsAt + " > now() and t.issued < t.stock"},
	template.SoldOut:   {"t.state = 'published' and t.opens_at <= now() and " + endsAt + " > now() and t.issued >= t.stock"},
}

// templateListSQL is the statement for a page. With states it is a page of
// each, of which the first are taken: no index knows them together in order.
// It is not ok if q asks for states that do not exist only.
func templateListSQL(c *conditionList, q template.Query) (sql string, ok bool) {
	order := " order by t.opens_at, t.id"
	if q.Descending {
		order = " order by t.opens_at desc, t.id desc"
	}
	order += fmt.Sprintf(" limit %d", max(1, q.Limit))
	if len(q.States) == 0 {
		return `select ` + templateColumns + templateFrom + c.where() + order, true
	}
	var parts []string
	for _, state := range template.States() {
		if !slices.Contains(q.States, state) {
			continue
		}
		for _, condition := range inState[state] {
			parts = append(parts, "(select t.* from templates t where "+strings.Join(append([]string{condition}, c.list...), " and ")+order+")")
		}
	}
	return `select ` + templateColumns + ` from (` + strings.Join(parts, " union all ") + `) t join shops s on s.number = t.shop_number` + order, len(parts) > 0
}
