package coupons

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/review"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

const reviewColumns = `r.id, r.template_id, r.shop_number, t.name, s.timezone, r.rules, r.facts, r.coupons, r.state, r.proposed, r.proposer,
    r.suspended, r.returned, r.restored, r.kept, r.appeals, r.reason, r.actor, r.suspended_at, r.changed_at, r.created_at`

const reviewFrom = ` from reviews r join templates t on t.id = r.template_id join shops s on s.number = r.shop_number `

func scanReview(row pgx.CollectableRow) (r review.Review, err error) {
	var rules []string
	var facts []byte
	if err := row.Scan(&r.ID, &r.TemplateID, &r.ShopNumber, &r.DropName, &r.Timezone, &rules, &facts, &r.Coupons, &r.State, &r.Proposed, &r.Proposer,
		&r.Suspended, &r.Returned, &r.Restored, &r.Kept, &r.Appeals, &r.Reason, &r.Actor, &r.SuspendedAt, &r.ChangedAt, &r.CreatedAt); err != nil {
		return r, err
	}
	r.Rules = rulesOf(rules)
	return r, json.Unmarshal(facts, &r.Facts)
}

func rulesOf(names []string) []review.Rule {
	list := make([]review.Rule, len(names))
	for i, n := range names {
		list[i] = review.Rule(n)
	}
	return list
}

// Review returns one group; see [review.Store].
func (s Reviews) Review(ctx context.Context, id int64) (r review.Review, err error) {
	return pg.One(ctx, s.Pool, scanReview, review.ErrNotFound, `select `+reviewColumns+reviewFrom+`where r.id = $1`, id)
}

// Reviews lists groups; see [review.Store]. Groups of one drop are listed whole, the largest first.
func (s Reviews) Reviews(ctx context.Context, q review.Query) ([]review.Review, error) {
	where, order := `(cardinality($1::bigint[]) = 0 or r.shop_number = any($1))`, `r.changed_at desc, r.id desc`
	args := []any{append([]int64{}, q.Shops...), max(1, q.Limit)}
	if q.TemplateID != 0 {
		args = append(args, q.TemplateID)
		where, order = where+fmt.Sprintf(` and r.template_id = $%d`, len(args)), `r.coupons desc, r.id`
	}
	if q.Asking {
		where += ` and (r.state in ('open', 'proposed', 'suspended') or r.appeals > 0)`
	}
	if q.BeforeID != 0 && q.TemplateID == 0 {
		args = append(args, q.ChangedAt, q.BeforeID)
		where += fmt.Sprintf(` and (r.changed_at, r.id) < ($%d, $%d)`, len(args)-1, len(args))
	}
	return pg.Collect(ctx, s.Pool, scanReview, `select `+reviewColumns+reviewFrom+`where `+where+` order by `+order+` limit $2`, args...)
}

// Run returns the review of a drop; see [review.Store].
func (s Reviews) Run(ctx context.Context, templateID int64) (r review.Run, ok bool, err error) {
	err = s.Pool.QueryRow(ctx, `select r.template_id, t.name, r.shop_number, s.timezone, r.claims, r.found, r.left_out, r.ran_at, r.wanted_at is not null
		from review_runs r join templates t on t.id = r.template_id join shops s on s.number = r.shop_number where r.template_id = $1`, templateID).
		Scan(&r.TemplateID, &r.DropName, &r.ShopNumber, &r.Timezone, &r.Claims, &r.Found, &r.LeftOut, &r.RanAt, &r.Wanted)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, pg.Translate(err)
}

// Members lists coupons of a group; see [review.Store].
func (s Reviews) Members(ctx context.Context, id, after int64, appealed bool, limit int) ([]review.Member, error) {
	where := ``
	if appealed {
		where = ` and appealed_at is not null and answer = ''`
	}
	rows := pg.Rows(ctx, s.Pool, `select coupon_id, user_id, state, appeal, appealed_at, answer, answered_at from review_coupons
		where review_id = $1 and coupon_id > $2`+where+` order by coupon_id limit $3`, id, after, max(1, limit))
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m review.Member, err error) {
		return m, row.Scan(&m.CouponID, &m.UserID, &m.State, &m.Appeal, &m.AppealedAt, &m.Answer, &m.AnsweredAt)
	})
	return list, pg.Translate(err)
}

// Decide stores a decision; see [review.Store].
func (s Reviews) Decide(ctx context.Context, before, after review.Review, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, review.ErrState, `update reviews set state = $3, proposed = $4, proposer = $5, reason = $6, actor = $7, suspended_at = $8, changed_at = clock_timestamp()
			where id = $1 and state = $2 and proposed = $9 and changed_at = $10`,
			before.ID, string(before.State), string(after.State), string(after.Proposed), after.Proposer, after.Reason, after.Actor, after.SuspendedAt,
			string(before.Proposed), before.ChangedAt); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// WantRun asks for another run; see [review.Store].
func (s Reviews) WantRun(ctx context.Context, templateID int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update review_runs set wanted_at = coalesce(wanted_at, now()) where template_id = $1`, templateID); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Answer stores the answer to an appeal; see [review.Store].
func (s Reviews) Answer(ctx context.Context, id, couponID int64, answer, reason string, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select from reviews where id = $1 for no key update`, id).Scan(); err != nil {
			return err
		}
		if err := pg.Change(ctx, tx, review.ErrNoAppeal, `update review_coupons set answer = $3, answered_at = clock_timestamp(), answered_by = $4
			where review_id = $1 and coupon_id = $2 and appealed_at is not null and answer = ''`, id, couponID, answer, pg.AuditActor(e.Actor)); err != nil {
			return err
		}
		var done []int64
		if answer == "restored" {
			var err error
			if done, err = reinstateOne(ctx, tx, couponID, pg.AuditActor(e.Actor), reason); err != nil {
				return err
			}
		}
		if err := noteMembers(ctx, tx, id, done, "restored", nil); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// reinstateOne gives a suspended coupon back to its owner. A coupon in another state stays as it is.
func reinstateOne(ctx context.Context, tx pgx.Tx, couponID int64, actor, reason string) ([]int64, error) {
	if _, err := tx.Exec(ctx, `select from coupons where id = $1 for no key update`, couponID); err != nil {
		return nil, err
	}
	found := make([]*coupon.Case, 1)
	rows, err := tx.Query(ctx, casesSQL, []int64{couponID}, []string{""})
	if err != nil {
		return nil, err
	}
	if err := readCases(rows, found); err != nil || found[0] == nil {
		return nil, err
	}
	m, ok := found[0].Reinstate()
	if !ok {
		return nil, nil
	}
	return moveAll(ctx, tx, []coupon.Move{m.Because(actor, reason)})
}

// Accuracies counts the decisions about groups of each rule; see [review.Store].
func (s Reviews) Accuracies(ctx context.Context) ([]review.Accuracy, error) {
	rows := pg.Rows(ctx, s.Pool, `select rule, count(*), coalesce(sum(suspended + returned + restored), 0)::bigint, coalesce(sum(restored), 0)::bigint
		from reviews cross join unnest(rules) rule where suspended_at > now() - interval '180 days' group by rule`)
	found := map[review.Rule]review.Accuracy{}
	var a review.Accuracy
	if _, err := pgx.ForEachRow(rows, []any{&a.Rule, &a.Groups, &a.Suspended, &a.Restored}, func() error { found[a.Rule] = a; return nil }); err != nil {
		return nil, pg.Translate(err)
	}
	list := make([]review.Accuracy, 0, len(review.Rules()))
	for _, r := range review.Rules() {
		a := found[r]
		a.Rule = r
		list = append(list, a)
	}
	return list, nil
}

// Counts returns the public figures of a drop; see [review.Store].
func (s Reviews) Counts(ctx context.Context, templateID int64) (c review.Counts, err error) {
	err = s.Pool.QueryRow(ctx, `
		select case when t.opening_mode = 'first_come' then t.issued + t.returned
				else coalesce((select sum(entered - departed) from draw_counts where template_id = $1), 0)::bigint end,
			greatest((select sum(claims) from claim_refusals where template_id = $1), (select sum(claims) from door_refusals where template_id = $1), 0)::bigint,
			coalesce((select sum(claims) from claim_refusals where template_id = $1 and code = 'pass_required'), 0)::bigint,
			coalesce(sum(r.suspended), 0)::bigint, coalesce(sum(r.returned), 0)::bigint, coalesce(sum(r.restored), 0)::bigint,
			(select ran_at from review_runs where template_id = $1), coalesce((select filled from waitlists where template_id = $1), 0)
		from `+pg.TemplateRow+` t left join reviews r on r.template_id = t.id group by t.issued, t.returned, t.opening_mode`, templateID).
		Scan(&c.Entries, &c.Refused, &c.WithoutPass, &c.Suspended, &c.TakenBack, &c.Restored, &c.ReviewedAt, &c.Filled)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, nil
	}
	return c, pg.Translate(err)
}

// Standing returns what an owner may read; see [review.Store].
func (s Reviews) Standing(ctx context.Context, by user.ID, couponID int64) (t review.Standing, err error) {
	var rules []string
	var facts []byte
	err = s.Pool.QueryRow(ctx, `select m.coupon_id, m.state, r.rules, r.facts, r.suspended_at, m.appeal, m.appealed_at, m.answer, m.answered_at
		from review_coupons m join reviews r on r.id = m.review_id where m.coupon_id = $1 and m.user_id = $2 and m.state in ('suspended', 'returned', 'restored')`, couponID, by).
		Scan(&t.CouponID, &t.State, &rules, &facts, &t.Since, &t.Appeal, &t.AppealedAt, &t.Answer, &t.AnsweredAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, review.ErrNotFound.Because("the coupon is not under review, or it is another user's")
	}
	if err != nil {
		return t, pg.Translate(err)
	}
	t.Rules = rulesOf(rules)
	return t, json.Unmarshal(facts, &t.Facts)
}

// Appeal stores an appeal; see [review.Store].
func (s Reviews) Appeal(ctx context.Context, by user.ID, couponID int64, text string) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var id int64
		var state string
		var of review.State
		var before bool
		err := tx.QueryRow(ctx, `select review_id from review_coupons where coupon_id = $1 and user_id = $2`, couponID, by).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return review.ErrNotFound.Because("the coupon is not under review, or it is another user's")
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select state from reviews where id = $1 for no key update`, id).Scan(&of); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select state, appealed_at is not null from review_coupons where review_id = $1 and coupon_id = $2`, id, couponID).Scan(&state, &before); err != nil {
			return err
		}
		switch {
		case state != "suspended" || of != review.Suspended && of != review.Suspending && of != review.Proposed:
			return review.ErrNotSuspended
		case before:
			return review.ErrAppealed
		}
		if _, err := tx.Exec(ctx, `update review_coupons set appeal = $3, appealed_at = clock_timestamp() where review_id = $1 and coupon_id = $2`, id, couponID, text); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update reviews set appeals = appeals + 1 where id = $1`, id)
		return err
	})
}
