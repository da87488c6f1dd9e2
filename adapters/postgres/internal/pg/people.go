package pg

import (
	"context"
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/report"
)

// keptPeopleSQL returns the counts of the users of template $1 that were made before its
// reservations were removed. It returns no row before that.
const keptPeopleSQL = `select booked, reminded, opened, claimed, used, others, partial, counted_at from drop_archives where template_id = $1`

// peopleSQL counts users of template $1: users who booked; who booked and opened a link in a
// message about the template; who booked and got a coupon; who booked and used a coupon; who
// got a coupon without having booked. The last column says whether rows for these counts were
// removed after their retention.
const peopleSQL = `
select (select count(*) from reservations r where r.template_id = $1),
    (select count(*) from drop_openings o join reservations r on r.template_id = o.template_id and r.user_id = o.user_id where o.template_id = $1),
    (select count(*) from claim_counts n join reservations r on r.template_id = n.template_id and r.user_id = n.user_id where n.template_id = $1),
    (select count(distinct c.user_id) from coupons c join reservations r on r.template_id = c.template_id and r.user_id = c.user_id
        where c.template_id = $1 and c.state = 'used'),
    (select count(*) from claim_counts n where n.template_id = $1
        and not exists (select from reservations r where r.template_id = n.template_id and r.user_id = n.user_id)),
    exists (select from removed_coupons g where g.template_id = $1)
        or exists (select from slots s join slot_results r on r.slot_id = s.id where s.template_id = $1 and r.archived)`

// People returns the counts of the users of a drop, in the transaction's snapshot: from the
// rows, or as they were counted before the rows were removed.
func People(ctx context.Context, tx pgx.Tx, templateID int64) (p report.People, err error) {
	err = tx.QueryRow(ctx, keptPeopleSQL, templateID).Scan(&p.Booked, &p.Reminded, &p.Opened, &p.Claimed, &p.Used, &p.Others, &p.Partial, &p.CountedAt)
	if !errors.Is(err, pgx.ErrNoRows) {
		return p, err
	}
	if err := tx.QueryRow(ctx, peopleSQL, templateID).Scan(&p.Booked, &p.Opened, &p.Claimed, &p.Used, &p.Others, &p.Partial); err != nil {
		return p, err
	}
	p.Reminded, err = reminded(ctx, tx, templateID)
	return p, err
}

// reminded counts the users who were reminded of the present opening, on any slot and channel,
// and still have a reservation.
func reminded(ctx context.Context, tx pgx.Tx, templateID int64) (int64, error) {
	rows, err := tx.Query(ctx, `select b.sent from slots s join templates t on t.id = s.template_id and `+OfOpening+`
		join batches b on b.kind = 'reminder' and b.owner_id = s.id where s.template_id = $1 and b.sent_count > 0`, templateID)
	if err != nil {
		return 0, err
	}
	reached := roaring64.New()
	var raw []byte
	if _, err := pgx.ForEachRow(rows, []any{&raw}, func() error {
		sent, err := DecodeSet(raw)
		reached.Or(sent)
		return err
	}); err != nil || reached.IsEmpty() {
		return 0, err
	}
	booked := roaring64.New()
	var id uint64
	if rows, err = tx.Query(ctx, `select user_id from reservations where template_id = $1`, templateID); err != nil {
		return 0, err
	}
	if _, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		booked.Add(id)
		return nil
	}); err != nil {
		return 0, err
	}
	return int64(reached.AndCardinality(booked)), nil
}
