package audience

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// uncountedDoors selects the drops with doors that are to come or open and whose shares were estimated longer than
// five minutes ago. The first door has the instant for all of them.
const uncountedDoors = ` from doors d cross join lateral (select state, closes_at from templates where id = d.template_id limit 1) t
where d.place = 1 and (d.counted_at is null or d.counted_at < statement_timestamp() - interval '5 minutes')
	and t.state in ('published', 'paused') and t.closes_at > statement_timestamp()`

// DoorSharesWait asks for drops whose shares are to be estimated.
const DoorSharesWait pg.Question = `(select 1` + uncountedDoors + ` limit 1)`

// sampleOf selects up to 20,000 users of template $1 in a table whose key is (template_id, user_id): a thousand after each of
// twenty places that are spread evenly between the first and the last user id.
func sampleOf(table string) string {
	return `with bounds as (select min(user_id) as first, max(user_id) as last from ` + table + ` where template_id = $1),
places as (select distinct first + (last - first) / 20 * n as place from bounds, generate_series(0, 19) n where first is not null)
select distinct r.user_id from places, lateral (select user_id from ` + table + ` where template_id = $1 and user_id >= place order by user_id limit 1000) r order by 1`
}

// CountNext implements [door.FreezeStore]. An estimate that was lost with its process is made again five minutes later.
func (s Doors) CountNext(ctx context.Context) (more bool, err error) {
	var id int64
	err = s.Pool.QueryRow(ctx, `update doors set counted_at = clock_timestamp() where (template_id, place) in (
		select d.template_id, d.place`+uncountedDoors+` order by d.counted_at nulls first, d.template_id limit 1 for update of d skip locked) returning template_id`).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	booked, err := s.sharesOf(ctx, id, "reservations")
	if err != nil {
		return false, err
	}
	claimed, err := s.sharesOf(ctx, id, "claim_counts")
	if err != nil {
		return false, err
	}
	_, err = s.Pool.Exec(ctx, `update doors d set booked_share = n.booked, claimed_share = n.claimed
		from unnest($2::smallint[], $3::smallint[]) with ordinality as n (booked, claimed, place) where d.template_id = $1 and d.place = n.place`, id, booked, claimed)
	return true, pg.Translate(err)
}

// sharesOf returns how many thousandths of the users of the table come through each door; nulls if there are no users.
func (s Doors) sharesOf(ctx context.Context, templateID int64, table string) ([]*int16, error) {
	shares := make([]*int16, template.MaxDoors)
	users, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, sampleOf(table), templateID), pgx.RowTo[user.ID])
	if err != nil || len(users) == 0 {
		return shares, pg.Translate(err)
	}
	places, err := s.Places(ctx, templateID, users)
	if err != nil {
		return nil, err
	}
	var counts [template.MaxDoors + 1]int
	for _, p := range places {
		counts[p]++
	}
	for i := range shares {
		n := int16((counts[i+1]*1000 + len(users)/2) / len(users))
		shares[i] = &n
	}
	return shares, nil
}
