package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Entries stores entries of draws. Entries are committed in groups; see committer.
type Entries struct {
	Draws
	enter *pg.Committer[user.ID, draw.Attempt, draw.Answer]
}

// NewEntries starts the committer.
func NewEntries(db *pg.DB, g pg.Grouping) *Entries {
	s := &Entries{Draws: NewDraws(db)}
	cfg := g.Config(db)
	cfg.Gather, cfg.Enough = 4*time.Millisecond, 64 // as for reservations
	cfg.LockWait, cfg.Locked, cfg.Name = pg.LockWait, s.lockedOf, "entry"
	s.enter = pg.NewFairCommitter(cfg, func(a draw.Attempt) user.ID { return user.ID(a.UserID) },
		func(a draw.Attempt) int64 { return a.TemplateID }, s.enterAll)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Entries) Close() { s.enter.Close() }

// lockedDrawsSQL returns the draws among $1 for which entries would have to wait, because another
// session is changing the draw. The statement itself does not wait.
const lockedDrawsSQL = `
with free as materialized (select template_id from draws where template_id = any($1) for share skip locked)
select template_id from draws where template_id = any($1) and template_id not in (select template_id from free)`

func (s *Entries) lockedOf(ctx context.Context, templates []int64) ([]int64, error) {
	return pgx.CollectRows(pg.Rows(ctx, s.Pool, lockedDrawsSQL, templates), pgx.RowTo[int64])
}

// Enter is part of [draw.Store].
func (s *Entries) Enter(ctx context.Context, a draw.Attempt) (draw.Answer, error) {
	return s.enter.Do(ctx, a)
}

// enterSQL stores a group of entries; no two have the same user. It returns a row for each entry that
// was stored, and, if an entry was not, rows for the others: the user's earlier entry, if there is one,
// and the window of the draw. Parameters: $1 templates, $2 users, $3 tickets, $4 salts, $5 weights,
// $6 the templates, each once, $7 doors and $8 channels.
//
// FOR SHARE locks the draws. Closing a draw and changing its card update the same rows. Either this
// group commits first and the close waits for it, or the close commits first; then this statement reads
// the row again after its wait and finds it is no longer open. Comparing clocks alone would leave a gap.
// A moved opening ends the entries before the card that announces it is stored, so no receipt is later than the last card.
const enterSQL = `
with asked as not materialized (
    select * from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::uuid[], $5::smallint[], $7::smallint[], $8::smallint[])
        as a (template_id, user_id, ticket, salt, weight, door, channels)
), taking as (
    select template_id from draws
    where template_id = any($6::bigint[]) and (state = 'open') is true and opens_at <= clock_timestamp() and closes_at > clock_timestamp()
        and exists (select from templates t where t.id = draws.template_id and t.opens_at > clock_timestamp())
    order by template_id for share
), stored as (
    insert into draw_entries (template_id, user_id, ticket, salt, weight, door, channels, entered_at)
    select a.template_id, a.user_id, a.ticket, a.salt, a.weight, a.door, a.channels, date_trunc('second', clock_timestamp()) from asked a join taking using (template_id)
    order by a.template_id, a.user_id
    on conflict (template_id, user_id) do nothing
    returning template_id, user_id, entered_at
), counted as (
    insert into draw_counts as c (template_id, shard, entered)
    select template_id, pg_backend_pid() % 16, count(*) from stored group by template_id order by template_id
    on conflict (template_id, shard) do update set entered = c.entered + excluded.entered
), grown as (
    insert into draw_growth as g (template_id, minute, shard, delta)
    select template_id, date_trunc('minute', clock_timestamp()), pg_backend_pid() % 16, count(*) from stored group by template_id order by template_id
    on conflict (template_id, minute, shard) do update set delta = g.delta + excluded.delta
)
select user_id, true, null::uuid, null::uuid, null::smallint, entered_at, 'entered', '', null::timestamptz, null::timestamptz, clock_timestamp() from stored
union all
select a.user_id, false, e.ticket, e.salt, e.weight, e.entered_at, coalesce(e.state, ''), coalesce(d.state, ''), d.opens_at, least(d.closes_at, t.opens_at), clock_timestamp()
from asked a left join draws d on d.template_id = a.template_id left join templates t on t.id = d.template_id
left join draw_entries e on e.template_id = a.template_id and e.user_id = a.user_id
where (select count(*) from stored) < cardinality($1) and not exists (select from stored s where s.user_id = a.user_id)`

func (s *Entries) enterAll(ctx context.Context, group []draw.Attempt) ([]draw.Answer, error) {
	if err := killpoint.Before("draws.enter"); err != nil {
		return nil, err
	}
	n := len(group)
	templates, users, weights := make([]int64, n), make([]int64, n), make([]int16, n)
	doors, channels := make([]int16, n), make([]int16, n)
	tickets, salts, of := make([][16]byte, n), make([][16]byte, n), make(map[user.ID]int, n)
	for i := range group {
		a := &group[i]
		templates[i], users[i], weights[i], tickets[i], salts[i] = a.TemplateID, a.UserID, int16(a.Weight), a.Ticket, a.Salt
		doors[i], channels[i] = int16(a.Door), int16(a.Channels)
		of[user.ID(a.UserID)] = i
	}
	answers := make([]draw.Answer, n)
	err := s.PlannedByHash(ctx, enterSQL, []any{templates, users, tickets, salts, weights, distinct(templates), doors, channels}, func(rows pgx.Rows) error {
		for rows.Next() {
			var by user.ID
			a, r, err := scanAnswer(rows, &by)
			if err != nil {
				return err
			}
			i := of[by]
			if a.Created {
				r.Entry, r.Door, a.Record = group[i].Entry, group[i].Door, &r
			} else if r.State != "" {
				r.UserID, a.Record = int64(by), &r
			}
			answers[i] = a
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return answers, killpoint.After("draws.enter")
}

// scanAnswer reads a row of [enterSQL].
func scanAnswer(rows pgx.Rows, by *user.ID) (a draw.Answer, r draw.Record, err error) {
	var ticket, salt *[16]byte
	var weight *int16
	var entered, opens, closes *time.Time
	var w draw.Window
	if err := rows.Scan(by, &a.Created, &ticket, &salt, &weight, &entered, &r.State, &w.State, &opens, &closes, &w.Now); err != nil {
		return a, r, err
	}
	if entered != nil {
		r.EnteredAt = entered.UTC()
	}
	if ticket != nil {
		r.Ticket, r.Salt, r.Weight = *ticket, *salt, int(*weight)
	}
	if opens != nil {
		w.OpensAt, w.ClosesAt = *opens, *closes
		a.Window = &w
	}
	return a, r, nil
}

const recordColumns = `user_id, ticket, salt, weight, entered_at, state, coalesce(rank, 0), coalesce(coupon_id, 0), listed, coalesce(reason, ''),
	door, offered_until, accepted_at`

func scanRecord(row pgx.CollectableRow) (r draw.Record, err error) {
	var ticket, salt [16]byte
	err = row.Scan(&r.UserID, &ticket, &salt, &r.Weight, &r.EnteredAt, &r.State, &r.Rank, &r.CouponID, &r.Listed, &r.Reason,
		&r.Door, &r.OfferedUntil, &r.AcceptedAt)
	r.Ticket, r.Salt, r.EnteredAt = ticket, salt, r.EnteredAt.UTC()
	return r, err
}

// Entry is part of [draw.Store].
func (s Draws) Entry(ctx context.Context, templateID int64, by user.ID) (draw.Record, error) {
	return pg.One(ctx, s.Pool, scanRecord, draw.ErrNotEntered, `select `+recordColumns+` from draw_entries where template_id = $1 and user_id = $2`, templateID, by)
}

// leaveSQL removes the entry of user $2 from draw $1 and counts that. It returns whether there was an
// entry to remove, and whether the draw is open.
const leaveSQL = `
with taking as (
    select template_id from draws where template_id = $1 and state = 'open' and closes_at > clock_timestamp()
        and exists (select from templates t where t.id = $1 and t.opens_at > clock_timestamp()) for share
), gone as (
    delete from draw_entries e using taking t where e.template_id = t.template_id and e.user_id = $2 and e.state = 'entered' returning e.template_id
), counted as (
    insert into draw_counts as c (template_id, shard, departed) select template_id, pg_backend_pid() % 16, 1 from gone
    on conflict (template_id, shard) do update set departed = c.departed + 1
), shrunk as (
    insert into draw_growth as g (template_id, minute, shard, delta) select template_id, date_trunc('minute', clock_timestamp()), pg_backend_pid() % 16, -1 from gone
    on conflict (template_id, minute, shard) do update set delta = g.delta - 1
)
select exists (select from gone), exists (select from taking), exists (select from draw_entries where template_id = $1 and user_id = $2)`

// Leave is part of [draw.Store].
func (s Draws) Leave(ctx context.Context, templateID int64, by user.ID) error {
	for again := false; ; again = true {
		var gone, open, entered bool
		err := killpoint.Around("draws.leave", func() error {
			return s.Pool.QueryRow(ctx, leaveSQL, templateID, by).Scan(&gone, &open, &entered)
		})
		switch {
		case err != nil:
			return pg.Translate(err)
		case gone:
			return nil
		case !entered:
			return draw.ErrNotEntered
		case !open || again:
			return draw.ErrClosed // or struck, which cannot be left
		}
		// The statement may have waited for another request of the user that removed the entry.
	}
}
