package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/staff"
)

// searchWindow is how many records with a reason one search for a text looks at.
const searchWindow = 5_000

// Search returns a page of the audit log, newest first.
func (a Audit) Search(ctx context.Context, q staff.AuditQuery) (page staff.AuditPage, err error) {
	c := &conditionList{}
	if known, err := a.auditConditions(ctx, c, q); err != nil || !known {
		return page, err
	}
	floor := int64(0)
	if q.Text != "" {
		if floor, err = a.windowFloor(ctx, q.BeforeID); err != nil {
			return page, err
		}
		c.add("id >= ?", floor)
	}
	limit := max(1, q.Limit)
	rows, err := a.pool.Query(ctx, `select id, at, actor, action, object_kind, object_id, coalesce(shop_number, 0), reason, before, after,
		coalesce(address, ''), coalesce(request_id, '')
		from audit`+c.where()+fmt.Sprintf(" order by id desc limit %d", limit+1), c.params()...)
	if err != nil {
		return page, translate(err)
	}
	if page.List, err = pgx.CollectRows(rows, pgx.RowToStructByPos[staff.Record]); err != nil {
		return page, translate(err)
	}
	if len(page.List) > limit {
		page.List, page.More = page.List[:limit], true
		page.Next = page.List[limit-1].ID
	} else if floor > 0 {
		page.More, page.Next = true, floor
	}
	return page, nil
}

// windowFloor returns the id down to which a search looks, 0 = to the end.
func (a Audit) windowFloor(ctx context.Context, before int64) (floor int64, err error) {
	c := &conditionList{}
	c.add("reason <> ''")
	if before > 0 {
		c.add("id < ?", before)
	}
	err = a.pool.QueryRow(ctx, `select id from audit`+c.where()+fmt.Sprintf(" order by id desc offset %d limit 1", searchWindow), c.args...).Scan(&floor)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return floor, translate(err)
}

// auditConditions writes q as SQL; known is false if nobody is called like
// the actor that is looked for.
func (a Audit) auditConditions(ctx context.Context, c *conditionList, q staff.AuditQuery) (known bool, err error) {
	if q.Actor != "" {
		if known, err := a.actorCondition(ctx, c, q.Actor); err != nil || !known {
			return false, err
		}
	}
	if q.ObjectKind != "" {
		c.add("object_kind = ?", q.ObjectKind)
	}
	if q.ObjectID != "" {
		c.add("object_id = ?", q.ObjectID)
	}
	switch {
	case q.Action == "":
	case q.Action == "campaign.publish": // with a second person or without
		c.add("action = any(?)", []string{"campaign.publish", "campaign.approve"})
	case strings.Contains(q.Action, "."):
		c.add("action = ?", q.Action)
	default:
		// Named one by one: of a list the planner knows how many there are.
		names, err := a.actionsOf(ctx, q.Action)
		if err != nil || len(names) == 0 {
			return false, err
		}
		c.add("action = any(?)", names)
	}
	if q.Security {
		c.add("(" + securityCondition() + ")")
	}
	if len(q.Without) > 0 {
		c.add("action <> all(?)", q.Without)
	}
	if q.Text != "" {
		found, args := "reason ilike ?", []any{containing(q.Text)}
		if len(q.Reasons) > 0 {
			found, args = found+" or split_part(actor, ' ', 1) = 'system' and reason = any(?)", append(args, staff.Recorded(q.Reasons))
		}
		c.add("reason <> '' and ("+found+")", args...)
	}
	if q.ShopNumber != 0 {
		c.add("shop_number = ?", q.ShopNumber)
	}
	if q.From != nil {
		c.add("at >= ?", *q.From)
	}
	if q.To != nil {
		c.add("at < ?", *q.To)
	}
	if len(q.Shops) > 0 {
		c.add("shop_number = any(?)", q.Shops)
	}
	if q.BeforeID > 0 {
		c.add("id < ?", q.BeforeID)
	}
	return true, nil
}

// securityCondition selects [staff.SecurityActions].
func securityCondition() string {
	var list []string
	for _, a := range staff.SecurityActions() {
		if strings.HasSuffix(a, ".") {
			list = append(list, "starts_with(action, '"+a+"')")
		} else {
			list = append(list, "action = '"+a+"'")
		}
	}
	return strings.Join(list, " or ")
}

// actorCondition selects by label, which is what the index is made of; a name
// is looked up first.
func (a Audit) actorCondition(ctx context.Context, c *conditionList, actor string) (known bool, err error) {
	label, name, _ := strings.Cut(actor, " ")
	if strings.Contains(label, ":") || actor == "system" {
		c.add("split_part(actor, ' ', 1) = ?", label)
		if name != "" { // "staff:1" must not find "staff:12", nor "Ann" "Anna"
			c.add("(actor = ? or starts_with(actor, ? || ' '))", actor, actor)
		}
		return true, nil
	}
	rows, err := a.pool.Query(ctx, `
		select 'staff:' || id from staff where name ilike $1 or email ilike $1
		union all select 'key:' || id from api_keys where name ilike $1
		union all select 'system' where 'Dropbell' ilike $1 limit 200`, containing(actor))
	if err != nil {
		return false, translate(err)
	}
	labels, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(labels) == 0 {
		return false, translate(err)
	}
	c.add("split_part(actor, ' ', 1) = any(?)", labels)
	return true, nil
}

// Actions lists every action there is a record of, each by one step into the
// index.
func (a Audit) Actions(ctx context.Context) ([]string, error) {
	rows, err := a.pool.Query(ctx, `
		with recursive names (action) as (
			(select action from audit order by action limit 1)
			union all
			select (select action from audit where action > n.action order by action limit 1) from names n where n.action is not null
		)
		select action from names where action is not null`)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return list, translate(err)
}

// actionsOf returns the actions that begin with the word.
func (a Audit) actionsOf(ctx context.Context, word string) ([]string, error) {
	names, err := a.Actions(ctx)
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, word+".") }), err
}
