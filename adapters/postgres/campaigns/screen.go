package campaigns

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const factsSQL = `
	select coalesce(c.grant_template_id, 0), coalesce(c.shop_number, 0), c.state, coalesce(l.per_day, 0), coalesce(l.per_week, 0),
		-- A batch lies within one message.
		(select m.strangers from campaign_messages m where m.campaign_id = c.id and m.from_user <= $2 and m.to_user >= $3
			order by m.seq limit 1),
		exists (select from budgets b join templates t on t.id = c.grant_template_id where b.scope = 'campaign' and b.subject = c.id and t.claim_mode = 'gate'),
		exists (select from recipe_rounds o where o.campaign_id = c.id)
	from campaigns c left join campaign_limits l on l.shop_number = coalesce(c.shop_number, 0) where c.id = $1`

// Facts returns the facts by which a campaign's batch is screened; see [campaign.ScreenStore].
// The statements are sent together in one round trip: a large campaign has thousands of batches.
func (s Campaigns) Facts(ctx context.Context, b *delivery.Batch) (f campaign.Facts, err error) {
	first, last := b.Left[0], b.Left[len(b.Left)-1]
	var ask pgx.Batch // one transaction
	ask.Queue(pg.IndexesOnly)
	ask.Queue(factsSQL, b.Owner, first, last)
	where, args := pg.UsersAmong(b.Left)
	ask.Queue(quietSQL+where, args...)
	if b.Asked == nil {
		ask.Queue(knownIDs+where, args...)
	}
	ofRecipe, err := s.answers(ctx, &ask, b, &f)
	if err == nil && ofRecipe {
		f.Gone, err = s.gone(ctx, b.Owner, b.Left)
	}
	if err != nil {
		return f, pg.Translate(err)
	}
	if f.PerDay > 0 || f.PerWeek > 0 {
		err = s.touches(ctx, b, &f)
	}
	return f, err
}

// answers reads the results of the queries of [Campaigns.Facts], and whether a recipe made the campaign.
func (s Campaigns) answers(ctx context.Context, ask *pgx.Batch, b *delivery.Batch, f *campaign.Facts) (ofRecipe bool, err error) {
	told := s.Pool.SendBatch(ctx, ask)
	defer func() { err = errors.Join(err, told.Close()) }()
	if _, err := told.Exec(); err != nil {
		return false, err
	}
	var strangers []byte
	if err := told.QueryRow().Scan(&f.GrantTemplate, &f.Shop, &f.State, &f.PerDay, &f.PerWeek, &strangers, &f.Budgeted, &ofRecipe); err != nil {
		return false, err
	}
	rows, err := told.Query()
	if err != nil {
		return false, err
	}
	if f.Quiet, err = readQuiet(rows); err != nil {
		return false, err
	}
	missing := unknownAmong(b)
	if b.Asked == nil {
		if rows, err = told.Query(); err != nil {
			return false, err
		}
		missing, err = missingFrom(rows, b.Left)
	}
	if err != nil || len(missing) == 0 {
		return ofRecipe, err
	}
	set, err := pg.DecodeSet(strangers)
	f.Deleted = slices.DeleteFunc(missing, func(id user.ID) bool { return set.Contains(uint64(id)) })
	return ofRecipe, err
}

// quietSQL returns the users with quiet hours among others.
const quietSQL = `select id, quiet_from, quiet_to, timezone from users where quiet_from <> quiet_to and `

// Quiet returns the users who have quiet hours; see [campaign.ScreenStore].
func (s Campaigns) Quiet(ctx context.Context, ids []user.ID) (quiet map[user.ID]user.User, err error) {
	where, args := pg.UsersAmong(ids)
	err = s.PlannedOnce(ctx, quietSQL+where, args, func(rows pgx.Rows) error {
		quiet, err = readQuiet(rows)
		return err
	})
	return quiet, pg.Translate(err)
}

func readQuiet(rows pgx.Rows) (map[user.ID]user.User, error) {
	quiet := map[user.ID]user.User{}
	var u user.User
	_, err := pgx.ForEachRow(rows, []any{&u.ID, &u.Quiet.From, &u.Quiet.To, &u.Timezone}, func() error {
		quiet[u.ID] = u
		return nil
	})
	return quiet, err
}

// unknownAmong returns the users of the batch who were asked for and of whom nothing is known.
func unknownAmong(b *delivery.Batch) (missing []user.ID) {
	known := b.Known // includes further users that were read with them
	for _, id := range b.Asked {
		for len(known) > 0 && known[0].ID < id {
			known = known[1:]
		}
		if len(known) == 0 || known[0].ID != id {
			missing = append(missing, id)
		}
	}
	return missing
}

// touches counts the messages of the shop's other campaigns to the batch's users, from the
// bitmaps of overlapping batches. Batches of one shop run touches one after the other. A user is
// busy if another leased batch has run touches before and may be about to reach that user. Of
// concurrently leased batches the first therefore continues and the others wait for it, without
// a cycle.
func (s Campaigns) touches(ctx context.Context, b *delivery.Batch, f *campaign.Facts) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// At read committed each statement sees all rows committed before it began, so also all
		// counts of the shop's earlier batches.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:caps', $1))`, f.Shop); err != nil {
			return err
		}
		if err := readTouches(ctx, tx, b, f); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update batches set screened = lease_token where id = $1 and state = 'running'`, b.ID)
		return err
	})
}

// touchesSQL returns the batches of other campaigns of shop $2 that may have reached users from
// $3 to $4 within a week. Its columns are whether the batch may be reaching users now, whether
// it ran within a day, and the batch's sets.
const touchesSQL = `
	select o.state = 'running' and o.screened is not distinct from o.lease_token,
		coalesce(o.finished_at, o.started_at) > clock_timestamp() - interval '1 day', o.due, o.sent
	from campaigns c cross join lateral (
		select b.* from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.channel = c.channel
			and b.from_user <= $4 and b.from_user >= coalesce((select max(x.from_user) from batches x
				where x.kind = 'campaign' and x.owner_id = c.id and x.channel = c.channel and x.from_user <= $3), $3)
			and b.to_user >= $3 and b.started_at is not null
	) o` + touchesWhere

// sparseTouchesSQL is touchesSQL for the users $3, whose ids lie far apart: most batches of a
// large campaign may lie between the first and the last of these users.
const sparseTouchesSQL = `
	select o.state = 'running' and o.screened is not distinct from o.lease_token,
		coalesce(o.finished_at, o.started_at) > clock_timestamp() - interval '1 day', o.due, o.sent
	from campaigns c cross join lateral (
		select b.* from batches b where b.started_at is not null and b.id in (
			select x.id from unnest($3::bigint[]) as u (id) cross join lateral (
				select id, to_user from batches where kind = 'campaign' and owner_id = c.id and channel = c.channel and from_user <= u.id
				order by from_user desc limit 1) x
			where x.to_user >= u.id)
	) o` + touchesWhere

const touchesWhere = `
	where c.id <> $1 and coalesce(c.shop_number, 0) = $2 and c.started_at is not null
		and (c.settled_at is null or c.settled_at > clock_timestamp() - interval '7 days')
		and coalesce(o.finished_at, o.started_at) > clock_timestamp() - interval '7 days'`

func readTouches(ctx context.Context, tx pgx.Tx, b *delivery.Batch, f *campaign.Facts) error {
	first, last := b.Left[0], b.Left[len(b.Left)-1]
	sql, args := touchesSQL, []any{b.Owner, f.Shop, first, last}
	if !pg.CloseTogether(b.Left) {
		sql, args = sparseTouchesSQL, []any{b.Owner, f.Shop, b.Left}
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	mine := make(map[user.ID]bool, len(b.Left))
	for _, id := range b.Left {
		mine[id] = true
	}
	f.Day, f.Week, f.Busy = map[user.ID]int{}, map[user.ID]int{}, map[user.ID]bool{}
	var running, today bool
	var due, sent []byte
	_, err = pgx.ForEachRow(rows, []any{&running, &today, &due, &sent}, func() error {
		sentSet, err := pg.DecodeSet(sent)
		if err != nil {
			return err
		}
		for _, id := range pg.SetWithin(sentSet, delivery.Range{From: first, To: last}) {
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
		dueSet, err := pg.DecodeSet(due)
		if err != nil {
			return err
		}
		dueSet.AndNot(sentSet)
		for _, id := range pg.SetWithin(dueSet, delivery.Range{From: first, To: last}) {
			f.Busy[id] = f.Busy[id] || mine[id]
		}
		return nil
	})
	return err
}

// Limits returns the limits of a shop's campaigns; shop 0 = campaigns of no
// shop.
func (s Campaigns) Limits(ctx context.Context, shop int64) (l campaign.Limits, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(per_day), 0), coalesce(max(per_week), 0), coalesce(max(approval_above), 0)
		from campaign_limits where shop_number = $1`, shop).Scan(&l.PerDay, &l.PerWeek, &l.ApprovalAbove)
	return l, pg.Translate(err)
}

// StrictestApproval returns the smallest number of users above which a shop requires approval;
// see [campaign.Store].
func (s Campaigns) StrictestApproval(ctx context.Context) (above int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(min(approval_above), 0) from campaign_limits where approval_above > 0`).Scan(&above)
	return above, pg.Translate(err)
}

// Control returns the state and the rate, in messages per second, that staff set for a running
// campaign.
func (s Campaigns) Control(ctx context.Context, id int64) (state campaign.State, rate int, err error) {
	err = s.Pool.QueryRow(ctx, `select state, rate_per_second from campaigns where id = $1`, id).Scan(&state, &rate)
	return state, rate, pg.Translate(err)
}

// Urgent reports whether a channel has batches with a lower priority number: Ready batches wait,
// Running batches are leased.
type Urgent struct{ Ready, Running bool }

// MoreUrgent looks for batches of the channel that go before priority. A deferred batch with
// untried recipients waits for the channel and goes first. A batch that only waits for retries
// does not go first.
func (s Campaigns) MoreUrgent(ctx context.Context, c delivery.Channel, priority int) (u Urgent, err error) {
	err = s.Pool.QueryRow(ctx, `select
		exists (select from batches where channel = $1 and state = 'ready' and not held and priority < $2 and (next_run_at <= clock_timestamp()
			or due_count > sent_count + skipped_count + expired_count + dead_count + failed_count)),
		exists (select from batches where channel = $1 and state = 'running' and priority < $2)`, c, priority).Scan(&u.Ready, &u.Running)
	return u, pg.Translate(err)
}
