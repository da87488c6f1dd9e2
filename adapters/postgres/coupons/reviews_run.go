package coupons

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/pass"
	"dropbell/domain/review"
)

// Reviews keeps reviews of protected drops, and carries out what was decided.
type Reviews struct {
	*pg.DB
	steps CouponSteps
}

// NewReviews returns the reviews of db.
func NewReviews(db *pg.DB) Reviews { return Reviews{db, NewCouponSteps(db)} }

// runsDueSQL returns the drops that are to be reviewed now: protected drops that have been over or
// sold out for a minute, drops that ended after their last review, and drops that staff want reviewed
// again.
const runsDueSQL = `
select t.id from templates t left join review_runs r on r.template_id = t.id
    left join lateral (select max(second) + interval '1 second' as at from claim_seconds s where s.template_id = t.id) l on true
where t.protection <> 'off' and t.state in ('published', 'paused', 'closed') and t.closes_at > now() - interval '29 days'
    and t.opens_at < now() - interval '1 minute' and l.at < now() - interval '1 minute'
    and case when r.template_id is null then t.issued >= t.stock or coalesce(t.ended_at, t.closes_at) < now() - interval '1 minute'
        else l.at > r.ran_at and coalesce(t.ended_at, t.closes_at) < now() - interval '1 minute' end
union all
select template_id from review_runs where wanted_at is not null`

// ReviewsWait asks for drops to be reviewed, for decisions to be carried out, and for suspended coupons
// that have expired.
const ReviewsWait pg.Question = `
(` + runsDueSQL + ` limit 1)
union all
(select 1 from reviews where state in ('suspending', 'returning', 'restoring') limit 1)
union all
(select 1 from coupons where state = 'suspended' and expires_at <= statement_timestamp() limit 1)`

// signedSQL returns the first $2 claims of template $1 with their signs, and how many more there are.
// A user has opened something if the page was open for $3 ms before the pass was earned, if the claim
// was made by a link, if a reminder was reserved, or if a link was opened.
const signedSQL = `
with signs as materialized (
    select *, count(*) over () as all_claims from claim_signs where template_id = $1 order by at, claim_id limit $2
)
select c.id, s.user_id, s.network, s.agent, s.program,
    least(greatest(extract(epoch from s.at - t.opens_at) * 1000, -1000000), 2000000000)::int,
    least(greatest(extract(epoch from s.at - s.passed_at) * 1000, 0), 2000000000)::int,
    s.opened_ms >= $3 or s.way = $4 or o.user_id is not null or r.user_id is not null or f.user_id is not null,
    coalesce(u.phone, ''), coalesce(nullif(u.household, ''), u.attributes ->> 'household', ''),
    array(select coalesce(d ->> 'token', d ->> 'endpoint') from jsonb_array_elements(coalesce(u.devices, '[]') || coalesce(u.push, '[]')) d
        where coalesce(d ->> 'token', d ->> 'endpoint') <> ''),
    s.all_claims
from signs s join templates t on t.id = s.template_id join coupons c on c.template_id = s.template_id and c.claim_id = s.claim_id
    left join drop_openings o on o.template_id = s.template_id and o.user_id = s.user_id
    left join reservations r on r.template_id = s.template_id and r.user_id = s.user_id
    left join former_reservations f on f.template_id = s.template_id and f.user_id = s.user_id
    left join users u on u.id = s.user_id`

// signed reads the claims of a drop.
func (s Reviews) signed(ctx context.Context, templateID int64) (claims []review.Claim, leftOut int64, err error) {
	rows := pg.Rows(ctx, s.Pool, signedSQL, templateID, review.MaxClaims, review.OpenedLong.Milliseconds(), int16(pass.Link))
	numbers := map[string]int32{}
	number := func(text string) int32 {
		if text == "" {
			return 0
		}
		if numbers[text] == 0 {
			numbers[text] = int32(len(numbers) + 1)
		}
		return numbers[text]
	}
	var c review.Claim
	var phone, household string
	var tokens []string
	var all int64
	_, err = pgx.ForEachRow(rows, []any{&c.CouponID, &c.UserID, &c.Network, &c.Agent, &c.Program, &c.After, &c.PassAge, &c.Opened, &phone, &household, &tokens, &all},
		func() error {
			c.Phone, c.Household, c.Push = number("phone:"+phone), number("household:"+household), 0
			if phone == "" {
				c.Phone = 0
			}
			if household == "" {
				c.Household = 0
			}
			if len(tokens) > 0 {
				c.Push = number("push:" + slices.Min(tokens))
			}
			claims = append(claims, c)
			return nil
		})
	return claims, max(0, all-review.MaxClaims), pg.Translate(err)
}

// RunDue reviews one drop that waits for it. It reports false if there is none. A review replaces the
// undecided groups; a coupon that is in another group stays there.
func (s Reviews) RunDue(ctx context.Context) (bool, error) {
	var id int64
	err := s.Pool.QueryRow(ctx, `select id from (`+runsDueSQL+`) d limit 1`).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	return true, s.Find(ctx, id)
}

// Find reviews a drop now.
func (s Reviews) Find(ctx context.Context, templateID int64) error {
	began := time.Now()
	claims, leftOut, err := s.signed(ctx, templateID)
	if err != nil {
		return err
	}
	groups := review.Find(claims)
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// The row is locked first, so that of two workers one review stands.
		tag, err := tx.Exec(ctx, `insert into review_runs as r (template_id, shop_number, claims, found, left_out, ran_at)
			select id, shop_number, $2, 0, $3, clock_timestamp() - $4::bigint * interval '1 microsecond' from templates where id = $1
			on conflict (template_id) do update set claims = excluded.claims, left_out = excluded.left_out, ran_at = excluded.ran_at, wanted_at = null`,
			templateID, len(claims), leftOut, time.Since(began).Microseconds())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from reviews where template_id = $1 and state = 'open'`, templateID); err != nil {
			return err
		}
		for _, g := range groups {
			if err := insertGroup(ctx, tx, templateID, g, claims); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update review_runs set found = (select coalesce(sum(coupons), 0) from reviews where template_id = $1) where template_id = $1`, templateID)
		return err
	})
}

// insertGroup stores a group. A group whose coupons are all in other groups is not stored.
func insertGroup(ctx context.Context, tx pgx.Tx, templateID int64, g review.Group, claims []review.Claim) error {
	coupons, users, rules := make([]int64, len(g.Claims)), make([]int64, len(g.Claims)), make([]string, len(g.Rules))
	for n, i := range g.Claims {
		coupons[n], users[n] = claims[i].CouponID, int64(claims[i].UserID)
	}
	for i, r := range g.Rules {
		rules[i] = string(r)
	}
	facts, err := json.Marshal(g.Facts)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		with fresh as materialized (
			select c.coupon_id, c.user_id from unnest($4::bigint[], $5::bigint[]) c (coupon_id, user_id)
			where not exists (select from review_coupons r where r.coupon_id = c.coupon_id)
		), made as (
			insert into reviews (template_id, shop_number, rules, facts, coupons)
			select id, shop_number, $2, $3, (select count(*) from fresh) from templates where id = $1 and exists (select from fresh) returning id
		)
		insert into review_coupons (review_id, coupon_id, user_id) select made.id, fresh.coupon_id, fresh.user_id from made, fresh`,
		templateID, rules, facts, coupons, users)
	return err
}
