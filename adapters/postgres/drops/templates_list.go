package drops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/field"
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
	return pg.Collect(ctx, s.Pool, pg.ScanTemplate, sql, c.Params()...)
}

func templateConditions(c *pg.Conditions, q template.Query) {
	if q.Search != "" {
		var names []string
		for _, f := range template.Fields.With(field.Found) {
			names = append(names, "t."+f.Name)
		}
		c.HoldsAny(names, "t.id", q.Search)
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

// inState are the conditions of the rows in each visible state; they agree with
// [template.Template.State]. States such as "open" follow from the clock and the counters and
// are not stored. Each condition can be read from an index in the order of the list, so one
// state needs three conditions.
var inState = map[template.State][]string{
	template.Draft:     {"t.state = 'draft'"},
	template.Cancelled: {"t.state = 'cancelled'"},
	template.Closed: {"t.state = 'closed'", "t.state in ('published', 'paused') and t.closes_at <= now()",
		"t.state in ('published', 'paused') and t.valid_until <= now() and t.closes_at > now()"},
	template.Paused:    {"t.state = 'paused' and " + pg.TemplateEndsAt + " > now()"},
	template.Scheduled: {"t.state = 'published' and t.opens_at > now()"},
	template.Open:      {selling + " and t.issued + t.held < t.stock"},
	template.SoldOut:   {selling + " and t.issued + t.held >= t.stock"},
}

const selling = "t.state = 'published' and t.opens_at <= now() and " + pg.TemplateEndsAt + " > now()"

// conditionsOf returns the conditions of [inState]. If all contains both open and sold-out,
// they share one condition: during a rush PostgreSQL keeps many row versions of such drops,
// and one condition visits them only once.
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

// templateListSQL returns the statement for a page of the list. No index has several states
// together in order, so the statement selects a page of each state and then the first rows of
// all pages. ok is false if q asks only for states that do not exist.
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
