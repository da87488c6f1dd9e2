package coupons

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
	"dropbell/killpoint"
)

// WaitlistsWait asks for stock that is kept for users who wait, and for waitlists of drops that are
// over; see [Waitlists.Unfilled].
const WaitlistsWait pg.Question = `
(select from templates where held > 0 order by id limit 1)
union all
(select from waitlists l join templates t on t.id = l.template_id where not l.settled and ` + overSQL + ` limit 1)`

// overSQL is a condition that template t gives no more coupons.
const overSQL = `(t.state in ('closed', 'cancelled') or least(t.closes_at, t.valid_until) <= statement_timestamp())`

// Unfilled implements [waitlist.FillStore].
func (s *Waitlists) Unfilled(ctx context.Context, after int64, limit int) ([]int64, error) {
	rows, err := s.Pool.Query(ctx, `
		select id from (
			(select t.id from templates t where t.held > 0 and t.id > $1 and (t.state <> 'paused' or `+overSQL+`) order by t.id limit $2)
			union
			(select t.id from waitlists l join templates t on t.id = l.template_id
				where not l.settled and `+overSQL+` and t.id > $1 order by t.id limit $2)
		) u order by id limit $2`, after, limit)
	if err != nil {
		return nil, pg.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, pg.Translate(err)
}

// candidatesSQL returns the $2 users who are next on the waitlist of template $1. A coupon that was
// taken back still counts for its user, so most users need no look at their coupons.
const candidatesSQL = `
select w.user_id, w.channels, coalesce(c.issued, 0),
    coalesce(c.issued, 0) > 0 and exists (select from coupons o where o.user_id = w.user_id and o.template_id = w.template_id and o.returned),
    exists (select from erased_users e where e.user_id = w.user_id)
from waiters w left join claim_counts c on c.template_id = w.template_id and c.user_id = w.user_id
where w.template_id = $1 and w.state = 'waiting' order by w.rank, w.joined_at, w.user_id limit $2`

// Fill implements [waitlist.FillStore]. It locks what a claim's group locks, so claims and fillers of
// one template exclude each other.
func (s *Waitlists) Fill(ctx context.Context, templateID int64, limit int) (f waitlist.Filling, err error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return f, pg.Translate(err)
	}
	defer conn.Release() // closes a connection whose transaction is not over
	f, err = s.fill(ctx, conn.Conn(), templateID, limit)
	if err != nil {
		return waitlist.Filling{}, pg.Translate(errors.Join(err, rollback(conn.Conn())))
	}
	return f, nil
}

// A turn is one transaction of the filler.
type turn struct {
	template template.Template
	decider  *claim.Decider
	filled   map[user.ID]waitlist.Candidate
	skipped  []int64 // users
	reasons  []string
	waiting  int64 // users who wait after it
	known    bool  // there are counters; those of a drop that moves to another cell are in one database only
	settled  bool  // the drop is over, no user waits and no stock is kept
	release  int64 // stock that goes back on sale
}

func (s *Waitlists) fill(ctx context.Context, conn *pgx.Conn, templateID int64, limit int) (f waitlist.Filling, err error) {
	u := turn{decider: newDecider(readSet{}, limit), filled: map[user.ID]waitlist.Candidate{}}
	if err := u.lock(ctx, conn, templateID); err != nil {
		return f, err
	}
	gives, over := waitlist.Gives(u.template, u.decider.At)
	if !u.known || !gives && !over {
		return f, rollback(conn)
	}
	if err := u.decide(ctx, conn, limit, over); err != nil {
		return f, err
	}
	f = waitlist.Filling{Filled: len(u.filled), Skipped: len(u.skipped), Released: u.release, More: u.waiting > 0 && (over || u.held() > 0)}
	if f.Filled+f.Skipped == 0 && f.Released == 0 && !over {
		return f, rollback(conn)
	}
	err = killpoint.Around("waitlist.fill", func() (err error) {
		f.Batches, err = u.store(ctx, conn)
		return err
	})
	return f, err
}

// held is the stock that is kept after the turn.
func (u *turn) held() int64 { return u.template.Held - int64(len(u.filled)) - u.release }

// lock begins the transaction and locks the template and its waitlist.
func (u *turn) lock(ctx context.Context, conn *pgx.Conn, templateID int64) error {
	id, d := []int64{templateID}, u.decider
	b := &pgx.Batch{}
	b.Queue(`begin`)
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockExclusive, id)
	b.Queue(lockTemplates, id).Query(func(rows pgx.Rows) error { return readTerms(d, rows) })
	b.Queue(pg.LockWaitlist, templateID)
	b.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&d.At) })
	b.Queue(`select waiting from waitlists where template_id = $1`, templateID).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&u.waiting}, func() error { u.known = true; return nil })
		return err
	})
	err := conn.SendBatch(ctx, b).Close()
	u.template = d.Templates[templateID]
	u.known = u.known && u.template.ID != 0
	return err
}

// decide reads the next users and decides about them. After the end of the drop no user gets
// a coupon: users who wait are skipped, and the stock that was kept is released.
func (u *turn) decide(ctx context.Context, conn *pgx.Conn, limit int, over bool) error {
	if n := u.template.Held; !over && n < int64(limit) {
		limit = int(n)
	}
	rows, err := conn.Query(ctx, candidatesSQL, u.template.ID, limit)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[waitlist.Candidate])
	if err != nil {
		return err
	}
	for _, c := range list {
		why := waitlist.ReasonOver
		if !over {
			r := claim.Request{ID: claim.NewID(rand.Uint64(), u.template.ID), TemplateID: u.template.ID, UserID: c.UserID,
				Origin: claim.ByWaitlist, Key: waitlist.Key(u.template.ID, c.UserID)}
			if _, why = waitlist.Turn(u.decider, r, c); why == "" {
				u.filled[c.UserID] = c
				continue
			}
		}
		u.skipped, u.reasons = append(u.skipped, int64(c.UserID)), append(u.reasons, why)
	}
	u.waiting -= int64(len(list))
	if over || u.waiting <= 0 {
		u.release = u.held()
	}
	u.settled = over && u.waiting <= 0
	return nil
}

// filledSQL marks users $2 as filled with the coupons of the claims $3.
const filledSQL = `
update waiters w set state = 'filled', changed_at = clock_timestamp(), coupon_id = c.id
from unnest($2::bigint[], $3::bigint[]) as a (user_id, claim_id) join coupons c on c.user_id = a.user_id and c.claim_id = a.claim_id
where w.template_id = $1 and w.user_id = a.user_id`

const skippedSQL = `
update waiters w set state = 'skipped', changed_at = clock_timestamp(), reason = a.reason
from unnest($2::bigint[], $3::text[]) as a (user_id, reason) where w.template_id = $1 and w.user_id = a.user_id`

// store writes the decisions and commits. It returns the batches of messages.
func (u *turn) store(ctx context.Context, conn *pgx.Conn) (batches []waitlist.Batch, err error) {
	id, filled := u.template.ID, int64(len(u.filled))
	b := &pgx.Batch{}
	b.Queue(`update templates set held = held - $2 where id = $1`, id, filled+u.release) // first: held and issued together are never more than the stock
	if filled > 0 {
		if err := queueIssues(ctx, b, u.decider); err != nil {
			return nil, err
		}
		users, claims := make([]int64, filled), make([]int64, filled)
		for i, n := range u.decider.Fresh() {
			users[i], claims[i] = int64(n.Request.UserID), int64(n.Request.ID)
		}
		b.Queue(filledSQL, id, users, claims)
		// These coupons are issued outside of the epoch of a gate.
		b.Queue(`update gates set base = base + $2 where template_id = $1`, id, filled)
		if err := u.queueMessages(b, &batches); err != nil {
			return nil, err
		}
	}
	if len(u.skipped) > 0 {
		b.Queue(skippedSQL, id, u.skipped, u.reasons)
	}
	b.Queue(`update waitlists set waiting = waiting - $2 - $3, filled = filled + $2, skipped = skipped + $3, released = released + $4,
		settled = $5 where template_id = $1`, id, filled, len(u.skipped), u.release, u.settled)
	if u.release > 0 { // a keeper allots it, and taps are no longer refused from memory
		b.Queue(`insert into outbox (topic, payload) select $2, jsonb_build_object('template_id', id::text, 'shop_number', shop_number::text, 'version', version,
			'opens_at', opens_at, 'sequence', nextval('hook_sequence')::text, 'at', clock_timestamp()) from templates where id = $1`, id, event.TemplateChanged)
	}
	b.Queue(`commit`)
	err = conn.SendBatch(ctx, b).Close()
	return batches, err
}

// messagesSQL stores one announcement with a batch for each channel, and returns the id and the
// channel of each batch. The announcement ends when its batches have ended.
const messagesSQL = `
with a as (
    insert into announcements (template_id, kind, opens_at, state, created_by, created_at, worthless_after, cut_at, superseded_at)
    select id, 'waitlist', opens_at, 'sending', 'system', clock_timestamp(), $2, clock_timestamp(), clock_timestamp() from templates where id = $1
    returning id, template_id, created_at, worthless_after
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, worthless_after, priority, next_run_at)
select 'waitlist', a.id, a.template_id, c.channel, c.from_user, c.to_user, c.n, c.due, a.created_at, a.worthless_after, $3, clock_timestamp()
from a, unnest($4::smallint[], $5::bigint[], $6::bigint[], $7::int[], $8::bytea[]) as c (channel, from_user, to_user, n, due)
returning id, channel`

// queueMessages queues the messages to the users who got a coupon, over the channels that they chose.
func (u *turn) queueMessages(b *pgx.Batch, batches *[]waitlist.Batch) error {
	var channels []int16
	var from, to []int64
	var counts []int32
	var dues [][]byte
	worthless := time.Time{}
	for _, n := range u.decider.Fresh() {
		if worthless.IsZero() || n.ExpiresAt.Before(worthless) {
			worthless = n.ExpiresAt
		}
	}
	for _, c := range delivery.AllChannels() {
		var users []user.ID
		for id, w := range u.filled {
			if w.Channels.Has(c) {
				users = append(users, id)
			}
		}
		if len(users) == 0 {
			continue
		}
		slices.Sort(users)
		due, err := pg.EncodeSet(users)
		if err != nil {
			return err
		}
		channels, counts, dues = append(channels, int16(c)), append(counts, int32(len(users))), append(dues, due)
		from, to = append(from, int64(users[0])), append(to, int64(users[len(users)-1]))
	}
	b.Queue(messagesSQL, u.template.ID, worthless, pg.AnnouncementPriority, channels, from, to, counts, dues).Query(func(rows pgx.Rows) (err error) {
		*batches, err = pgx.CollectRows(rows, pgx.RowToStructByPos[waitlist.Batch])
		return err
	})
	return nil
}
