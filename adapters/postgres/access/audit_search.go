package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// searchWindow is how many records with a reason one search for a text reads.
const searchWindow = 5_000

// Search returns a page of the audit log, newest first.
func (a Audit) Search(ctx context.Context, q staff.AuditQuery) (page staff.AuditPage, err error) {
	a.DB = a.Reports(ctx)
	c := &pg.Conditions{}
	if known, err := a.auditConditions(ctx, c, q); err != nil || !known {
		return page, err
	}
	floor := int64(0)
	if q.Text != "" {
		if floor, err = a.windowFloor(ctx, q.BeforeID); err != nil {
			return page, err
		}
		c.Add("id >= ?", floor)
	}
	limit := max(1, q.Limit)
	rows := pg.Rows(ctx, a.Pool, `select id, at, actor, action, object_kind, object_id, coalesce(shop_number, 0), reason, before, after,
		coalesce(address, ''), coalesce(request_id, '')
		from audit`+c.Where()+fmt.Sprintf(" order by id desc limit %d", limit+1), c.Params()...)
	if page.List, err = pgx.CollectRows(rows, pgx.RowToStructByPos[staff.Record]); err != nil {
		return page, pg.Translate(err)
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
	c := &pg.Conditions{}
	c.Add("reason <> ''")
	if before > 0 {
		c.Add("id < ?", before)
	}
	err = a.Pool.QueryRow(ctx, `select id from audit`+c.Where()+fmt.Sprintf(" order by id desc offset %d limit 1", searchWindow), c.Args...).Scan(&floor)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return floor, pg.Translate(err)
}

// auditConditions translates q into SQL; known is false if no actor has the name in q.
func (a Audit) auditConditions(ctx context.Context, c *pg.Conditions, q staff.AuditQuery) (known bool, err error) {
	if q.Actor != "" {
		if known, err := a.actorCondition(ctx, c, q.Actor); err != nil || !known {
			return false, err
		}
	}
	if q.ObjectKind != "" {
		c.Add("object_kind = ?", q.ObjectKind)
	}
	if q.ObjectID != "" {
		c.Add("object_id = ?", q.ObjectID)
	}
	switch {
	case q.Action == "":
	case q.Action == "campaign.publish": // with approval or without
		c.Add("action = any(?)", []string{"campaign.publish", "campaign.approve"})
	case strings.Contains(q.Action, "."):
		c.Add("action = ?", q.Action)
	default:
		// As a list of values: the planner estimates the number of rows from it.
		names, err := a.actionsOf(ctx, q.Action)
		if err != nil || len(names) == 0 {
			return false, err
		}
		c.Add("action = any(?)", names)
	}
	if q.Security {
		c.Add("(" + securityCondition() + ")")
	}
	if len(q.Without) > 0 {
		c.Add("action <> all(?)", q.Without)
	}
	if q.Text != "" {
		found, args := "reason ilike ?", []any{pg.Containing(q.Text)}
		if len(q.Reasons) > 0 {
			found, args = found+" or split_part(actor, ' ', 1) = 'system' and reason = any(?)", append(args, q.Reasons)
		}
		c.Add("reason <> '' and ("+found+")", args...)
	}
	if q.ShopNumber != 0 {
		c.Add("shop_number = ?", q.ShopNumber)
	}
	if q.From != nil {
		c.Add("at >= ?", *q.From)
	}
	if q.To != nil {
		c.Add("at < ?", *q.To)
	}
	if len(q.Shops) > 0 {
		c.Add("shop_number = any(?)", q.Shops)
	}
	if q.BeforeID > 0 {
		c.Add("id < ?", q.BeforeID)
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

// actorCondition selects by the actor's label, which is the column of the index. A name is first
// translated into labels.
func (a Audit) actorCondition(ctx context.Context, c *pg.Conditions, actor string) (known bool, err error) {
	label, name, _ := strings.Cut(actor, " ")
	if strings.Contains(label, ":") || actor == "system" {
		c.Add("split_part(actor, ' ', 1) = ?", label)
		if name != "" { // "staff:1" must not find "staff:12", nor "Ann" "Anna"
			c.Add("(actor = ? or starts_with(actor, ? || ' '))", actor, actor)
		}
		return true, nil
	}
	rows := pg.Rows(ctx, a.Pool, `
		select 'staff:' || id from staff where name ilike $1 or email ilike $1
		union all select 'key:' || id from api_keys where name ilike $1
		union all select 'system' where 'Dropbell' ilike $1 limit 200`, pg.Containing(actor))
	labels, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(labels) == 0 {
		return false, pg.Translate(err)
	}
	c.Add("split_part(actor, ' ', 1) = any(?)", labels)
	return true, nil
}

// Actions lists every action that has a record, with one index lookup per action.
func (a Audit) Actions(ctx context.Context) ([]string, error) {
	a.DB = a.Reports(ctx)
	return pg.Collect(ctx, a.Pool, pgx.RowTo[string], `
		with recursive names (action) as (
			(select action from audit order by action limit 1)
			union all
			select (select action from audit where action > n.action order by action limit 1) from names n where n.action is not null
		)
		select action from names where action is not null`)
}

// actionsOf returns the actions that begin with the word.
func (a Audit) actionsOf(ctx context.Context, word string) ([]string, error) {
	names, err := a.Actions(ctx)
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, word+".") }), err
}
