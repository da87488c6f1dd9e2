package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// householdOf is the household for which coupons of template $1 of user u count: the household of the user's
// first coupon of the template, otherwise the user's present one; null = none.
const householdOf = `(select case when c.user_id is not null then c.household else household_number(u.household) end
    from (select u.user_id as id) i left join claim_counts c on c.template_id = $1 and c.user_id = i.id left join users u on u.id = i.id)`

// countHousehold is how many coupons of template $1 the users of household h.household have. With $3 it leaves
// out the coupons that staff gave beyond the limit; see [claim.Decider].
const countHousehold = `(select coalesce(sum(o.issued), 0) - case when $3::boolean then (` + givenOverSQL + ` and c.template_id = $1
        and c.user_id in (select user_id from claim_counts where template_id = $1 and household = h.household)) else 0 end
    from claim_counts o where o.template_id = $1 and o.household = h.household)`

// readHouseholds reads the households of the holders of q, for templates with a household limit alone. The
// templates are locked, so no other transaction changes the counts of a household.
func readHouseholds(ctx context.Context, conn *pgx.Conn, d *claim.Decider, q readSet) error {
	limited := false
	for _, t := range d.Templates {
		limited = limited || t.HouseholdLimit > 0
	}
	if !limited {
		return nil
	}
	users := map[int64][]int64{}
	for i, id := range q.holderTemplates {
		if d.Templates[id].HouseholdLimit > 0 {
			users[id] = append(users[id], q.holderUsers[i])
		}
	}
	for id, list := range users {
		if err := readHouseholdsOf(ctx, conn, d, id, list, len(q.acceptedIDs) > 0); err != nil {
			return err
		}
	}
	return nil
}

func readHouseholdsOf(ctx context.Context, conn *pgx.Conn, d *claim.Decider, templateID int64, users []int64, accepted bool) error {
	rows, err := conn.Query(ctx, `select h.user_id, h.household, `+countHousehold+`
		from (select u.user_id, `+householdOf+` as household from unnest($2::bigint[]) as u (user_id)) h where h.household is not null`, templateID, users, accepted)
	if err != nil {
		return err
	}
	if d.Households == nil {
		d.Households, d.HouseholdCounts = map[claim.Holder]int64{}, map[claim.Household]int{}
	}
	var by user.ID
	var household int64
	var count int
	_, err = pgx.ForEachRow(rows, []any{&by, &household, &count}, func() error {
		d.Households[claim.Holder{TemplateID: templateID, UserID: by}] = household
		d.HouseholdCounts[claim.Household{TemplateID: templateID, Number: household}] = count
		return nil
	})
	return err
}

// householdColumn has the household of each of [countColumns]; it is empty if none of the holders has one.
func householdColumn(d *claim.Decider) []*int64 {
	if len(d.Households) == 0 {
		return nil
	}
	holders, _ := holdersOf(d.Fresh())
	list := make([]*int64, len(holders))
	for i, h := range holders {
		if n := d.Households[h]; n != 0 {
			list[i] = &n
		}
	}
	return list
}

// householdOfRecord is the household of user u.user_id of template $1, 0 = none, or the template has no household
// limit.
const householdOfRecord = `case when (select household_limit from templates where id = $1) > 0 then coalesce(` + householdOf + `, 0) else 0 end`

// householdsOf reads the household of each holder; 0 = none.
func householdsOf(ctx context.Context, db *pg.DB, holders []claim.Holder) ([]int64, error) {
	templates, users := make([]int64, len(holders)), make([]int64, len(holders))
	for i, h := range holders {
		templates[i], users[i] = h.TemplateID, int64(h.UserID)
	}
	b := &pgx.Batch{} // a transaction of its own
	b.Queue(pg.IndexesOnly)
	list := make([]int64, 0, len(holders))
	b.Queue(`select coalesce(case when c.user_id is not null then c.household else household_number(u.household) end, 0)
		from unnest($1::bigint[], $2::bigint[]) with ordinality as a (template_id, user_id, place)
		left join claim_counts c on c.template_id = a.template_id and c.user_id = a.user_id left join users u on u.id = a.user_id order by a.place`,
		templates, users).Query(func(rows pgx.Rows) (err error) {
		list, err = pgx.AppendRows(list, rows, pgx.RowTo[int64])
		return err
	})
	return list, db.Pool.SendBatch(ctx, b).Close()
}

func (s *Claims) households(ctx context.Context, holders []claim.Holder) ([]int64, error) {
	return householdsOf(ctx, s.DB, holders)
}

// Household returns the number of the household for which a coupon of the template counts for the user; 0 = none.
// Concurrent calls share one query.
func (s *Claims) Household(ctx context.Context, templateID int64, by user.ID) (int64, error) {
	n, err := s.homes.Do(ctx, claim.Holder{TemplateID: templateID, UserID: by})
	return n, pg.Translate(err)
}

// Household returns the number of the household for which a coupon of the template counts for the user; 0 = none.
func (s Gates) Household(ctx context.Context, templateID int64, by user.ID) (int64, error) {
	list, err := householdsOf(ctx, s.DB, []claim.Holder{{TemplateID: templateID, UserID: by}})
	if err != nil {
		return 0, pg.Translate(err)
	}
	return list[0], nil
}
