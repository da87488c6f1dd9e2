package drops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
)

// Templates lists templates by opening.
func (s Templates) Templates(ctx context.Context, q template.Query) ([]template.Template, error) {
	s.DB = s.Reports(ctx)
	if !pg.Findable(q.Search) {
		return nil, nil
	}
	c := &pg.Conditions{}
	templateConditions(c, q)
	sql, ok := templateListSQL(c, q)
	if !ok {
		return nil, nil // there is no such state
	}
	rows, err := s.Pool.Query(ctx, sql, c.Params()...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pg.ScanTemplate)
	return list, pg.Translate(err)
}

func templateConditions(c *pg.Conditions, q template.Query) {
	if q.Search != "" {
		c.Holds("t.name", "t.id", q.Search)
	}
	if len(q.IDs) > 0 {
		c.Add("t.id = any(?)", q.IDs)
	}
	if len(q.Shops) > 0 {
		c.Add("t.shop_number = any(?)", q.Shops)
	}
	if q.From != nil {
		c.Add("t.opens_at >= ?", *q.From)
	}
	if q.To != nil {
		c.Add("t.opens_at < ?", *q.To)
	}
	if q.After.ID != 0 {
		past := ">"
		if q.Descending {
			past = "<"
		}
		c.Add("(t.opens_at, t.id) "+past+" (?, ?)", q.After.OpensAt, q.After.ID)
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
	template.Paused:    {"t.state = 'paused' and " + pg.TemplateEndsAt + " > now()"},
	template.Scheduled: {"t.state = 'published' and t.opens_at > now()"},
	template.Open:      {selling + " and t.issued < t.stock"},
	template.SoldOut:   {selling + " and t.issued >= t.stock"},
}

const selling = "t.state = 'published' and t.opens_at <= now() and " + pg.TemplateEndsAt + " > now()"

// conditionsOf are those of [inState], where one of the states is not asked together
// with another one: of open and sold-out drops PostgreSQL keeps many versions during a
// rush, which are visited once for both.
func conditionsOf(state template.State, all []template.State) []string {
	if slices.Contains(all, template.Open) && slices.Contains(all, template.SoldOut) {
		switch state {
		case template.Open:
			return []string{selling}
		case template.SoldOut:
			return nil
		}
	}
	return inState[state]
}

// templateListSQL is the statement for a page. With states it selects a page of
// each, of which the first rows are taken: no index has them together in order.
// It is not ok if q asks for states that do not exist only.
func templateListSQL(c *pg.Conditions, q template.Query) (sql string, ok bool) {
	order := " order by t.opens_at, t.id"
	if q.Descending {
		order = " order by t.opens_at desc, t.id desc"
	}
	order += fmt.Sprintf(" limit %d", max(1, q.Limit))
	if len(q.States) == 0 {
		return `select ` + pg.TemplateColumns + pg.TemplateFrom + c.Where() + order, true
	}
	var parts []string
	for _, state := range template.States() {
		if !slices.Contains(q.States, state) {
			continue
		}
		for _, condition := range conditionsOf(state, q.States) {
			parts = append(parts, "(select t.* from templates t where "+strings.Join(append([]string{condition}, c.List...), " and ")+order+")")
		}
	}
	return `select ` + pg.TemplateColumns + ` from (` + strings.Join(parts, " union all ") + `) t join shops s on s.number = t.shop_number` + order, len(parts) > 0
}
