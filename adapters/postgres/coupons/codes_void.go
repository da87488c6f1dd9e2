package coupons

import (
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/claim"
	"dropbell/domain/redeemcode"
)

// loadVoid finds codes of revoked batches. It runs after the templates' rows are
// locked; revoking takes the same locks.
const loadVoid = `
select a.serial from unnest($1::bigint[]) as a (serial)
join lateral (select state, first_serial + count as past from code_batches
    where first_serial <= a.serial order by first_serial desc limit 1) b on a.serial < b.past
where b.state = 'revoked'`

// addUses counts the used codes of each batch. The locks on the templates' rows
// prevent two groups from updating batches in different orders.
const addUses = `
update code_batches b set used = b.used + a.n from (
    select o.id, count(*) as n from unnest($1::bigint[]) as a (serial)
    join lateral (select id, first_serial + count as past from code_batches
        where first_serial <= a.serial order by first_serial desc limit 1) o on a.serial < o.past
    group by o.id) a
where b.id = a.id`

// serialOf returns the serial number of a request that redeems a code.
func serialOf(r claim.Request) (int64, bool) {
	if r.Origin != claim.ByCode {
		return 0, false
	}
	n, err := strconv.ParseInt(r.Key, 10, 64)
	return n, err == nil
}

// queueVoid queues the query for revoked codes of the group. It queues nothing
// for a group without codes.
func queueVoid(b *pgx.Batch, d *claim.Decider, group []claim.Request) {
	var serials []int64
	for _, r := range group {
		if n, ok := serialOf(r); ok {
			serials = append(serials, n)
		}
	}
	if len(serials) == 0 {
		return
	}
	b.Queue(loadVoid, serials).Query(func(rows pgx.Rows) error {
		d.Void = map[claim.RepeatKey]error{}
		for rows.Next() {
			var n int64
			if err := rows.Scan(&n); err != nil {
				return err
			}
			d.Void[claim.RepeatKey{Origin: claim.ByCode, Key: strconv.FormatInt(n, 10)}] = redeemcode.ErrInvalid
		}
		return nil
	})
}

// queueUses counts the codes for which the group issues coupons.
func queueUses(b *pgx.Batch, list []claim.Issue) {
	var serials []int64
	for _, n := range list {
		if serial, ok := serialOf(n.Request); ok {
			serials = append(serials, serial)
		}
	}
	if len(serials) > 0 {
		b.Queue(addUses, serials)
	}
}
