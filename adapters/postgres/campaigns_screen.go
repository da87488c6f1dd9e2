package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// Facts returns what is to be known about the recipients of a campaign's
// batch; see [campaign.ScreenStore].
func (s Campaigns) Facts(ctx context.Context, b *delivery.Batch) (f campaign.Facts, err error) {
	first, last := b.Left[0], b.Left[len(b.Left)-1]
	var strangers []byte
	err = s.pool.QueryRow(ctx, `
		select coalesce(c.grant_template_id, 0), coalesce(c.shop_number, 0), c.state, coalesce(l.per_day, 0), coalesce(l.per_week, 0),
			-- A batch lies within one message.
			(select m.strangers from campaign_messages m where m.campaign_id = c.id and m.from_user <= $2 and m.to_user >= $3
				order by m.seq limit 1)
		from campaigns c left join campaign_limits l on l.shop_number = coalesce(c.shop_number, 0) where c.id = $1`, b.Owner, first, last).
		Scan(&f.GrantTemplate, &f.Shop, &f.State, &f.PerDay, &f.PerWeek, &strangers)
	if err != nil {
		return f, translate(err)
	}
	if f.Quiet, err = s.quiet(ctx, first, last); err != nil {
		return f, err
	}
	unknown, err := s.unknown(ctx, b.Left)
	if err != nil {
		return f, err
	}
	set, err := decodeSet(strangers)
	if err != nil {
		return f, err
	}
	for _, id := range unknown {
		if !set.Contains(uint64(id)) {
			f.Deleted = append(f.Deleted, id)
		}
	}
	if f.PerDay > 0 || f.PerWeek > 0 {
		err = s.touches(ctx, b, &f)
	}
	return f, err
}

func (s Campaigns) quiet(ctx context.Context, first, last user.ID) (map[user.ID]user.User, error) {
	rows, err := s.pool.Query(ctx, `select id, quiet_from, quiet_to, timezone from users where quiet_from <> quiet_to and id between $1 and $2`, first, last)
	if err != nil {
		return nil, translate(err)
	}
	list := map[user.ID]user.User{}
	var u user.User
	_, err = pgx.ForEachRow(rows, []any{&u.ID, &u.Quiet.From, &u.Quiet.To, &u.Timezone}, func() error {
		list[u.ID] = u
		return nil
	})
	return list, translate(err)
}

// unknown returns those of the ascending users that have no row.
func (s Campaigns) unknown(ctx context.Context, ids []user.ID) ([]user.ID, error) {
	where, args := `id = any($1)`, []any{ids}
	if first, last := ids[0], ids[len(ids)-1]; int64(last-first) < 4*int64(len(ids)) {
		where, args = `id between $1 and $2`, []any{first, last}
	}
	rows, err := s.pool.Query(ctx, `select id from users where `+where, args...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	known := make(map[user.ID]struct{}, len(ids))
	for rows.Next() {
		known[user.ID(beUint64(rows.RawValues()[0]))] = struct{}{}
	}
	var missing []user.ID
	for _, id := range ids {
		if _, ok := known[id]; !ok {
			missing = append(missing, id)
		}
	}
	return missing, translate(rows.Err())
}

// touches counts the messages of the shop's other campaigns to the batch's
// users, from the bitmaps of the batches that overlap it. A batch that is in
// somebody's hands right now may be about to reach them: those users are busy.
// Of two batches that are leased at once at least one sees the other, since
// this runs after the lease is committed.
func (s Campaigns) touches(ctx context.Context, b *delivery.Batch, f *campaign.Facts) error {
	first, last := b.Left[0], b.Left[len(b.Left)-1]
	rows, err := s.pool.Query(ctx, `
		select o.state = 'running', coalesce(o.finished_at, o.started_at) > clock_timestamp() - interval '1 day', o.due, o.sent
		from campaigns c cross join lateral (
			select b.* from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.channel = c.channel
				and b.from_user <= $3 and b.from_user >= coalesce((select max(x.from_user) from batches x
					where x.kind = 'campaign' and x.owner_id = c.id and x.channel = c.channel and x.from_user <= $2), $2)
				and b.to_user >= $2 and b.started_at is not null
		) o
		where c.id <> $1 and coalesce(c.shop_number, 0) = $4 and c.started_at is not null
			and (c.settled_at is null or c.settled_at > clock_timestamp() - interval '7 days')
			and coalesce(o.finished_at, o.started_at) > clock_timestamp() - interval '7 days'`, b.Owner, first, last, f.Shop)
	if err != nil {
		return translate(err)
	}
	mine := make(map[user.ID]bool, len(b.Left))
	for _, id := range b.Left {
		mine[id] = true
	}
	f.Day, f.Week, f.Busy = map[user.ID]int{}, map[user.ID]int{}, map[user.ID]bool{}
	var running, today bool
	var due, sent []byte
	_, err = pgx.ForEachRow(rows, []any{&running, &today, &due, &sent}, func() error {
		sentSet, err := decodeSet(sent)
		if err != nil {
			return err
		}
		for _, id := range idsWithin(sentSet, delivery.Range{From: first, To: last}) {
			if mine[id] {
				f.Week[id]++
				if today {
					f.Day[id]++
				}
			}
		}
		if !running {
			return nil
		}
		dueSet, err := decodeSet(due)
		if err != nil {
			return err
		}
		dueSet.AndNot(sentSet)
		for _, id := range idsWithin(dueSet, delivery.Range{From: first, To: last}) {
			f.Busy[id] = f.Busy[id] || mine[id]
		}
		return nil
	})
	return translate(err)
}

// Limits returns what a shop allows its campaigns; shop 0 stands for
// campaigns of no shop.
func (s Campaigns) Limits(ctx context.Context, shop int64) (l campaign.Limits, err error) {
	err = s.pool.QueryRow(ctx, `select coalesce(max(per_day), 0), coalesce(max(per_week), 0), coalesce(max(approval_above), 0)
		from campaign_limits where shop_number = $1`, shop).Scan(&l.PerDay, &l.PerWeek, &l.ApprovalAbove)
	return l, translate(err)
}

// Control returns what staff decided about a campaign that is going out.
func (s Campaigns) Control(ctx context.Context, id int64) (state campaign.State, rate int, err error) {
	err = s.pool.QueryRow(ctx, `select state, rate_per_second from campaigns where id = $1`, id).Scan(&state, &rate)
	return state, rate, translate(err)
}

// Urgent says whether a channel has batches of a lower priority number to
// deliver now, waiting for a worker or in the hands of one.
type Urgent struct{ Ready, Running bool }

// MoreUrgent looks for batches of the channel that go before priority.
func (s Campaigns) MoreUrgent(ctx context.Context, c delivery.Channel, priority int) (u Urgent, err error) {
	err = s.pool.QueryRow(ctx, `select
		exists (select from batches where channel = $1 and state = 'ready' and not held and priority < $2 and next_run_at <= clock_timestamp()),
		exists (select from batches where channel = $1 and state = 'running' and priority < $2)`, c, priority).Scan(&u.Ready, &u.Running)
	return u, translate(err)
}
