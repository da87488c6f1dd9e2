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

// WaitlistsWait asks for stock that is kept for users who wait, for offers that end, for waitlists of
// drops that are over, and for coupons that are to return to the stock; see [Waitlists.Unfilled].
const WaitlistsWait pg.Question = `
(select from templates t left join waitlists l on l.template_id = t.id where t.held > 0 and t.held > coalesce(l.offered, 0) order by t.id limit 1)
union all
(select from waiters where state = 'offered' and offer_until <= statement_timestamp() limit 1)
union all
(select from waitlists l join templates t on t.id = l.template_id where l.offered > 0 and t.state = 'paused' limit 1)
union all
(select from waitlists l join templates t on t.id = l.template_id where not l.settled and ` + overSQL + ` limit 1)
union all
(select from coupon_returns where due_at <= statement_timestamp() limit 1)`

// overSQL is a condition that template t gives no more coupons.
const overSQL = `(t.state in ('closed', 'cancelled') or least(t.closes_at, t.valid_until) <= statement_timestamp())`

// unfilledSQL returns the next $2 templates after $1 with something to do: stock that is kept and
// offered to no user, unless the users who wait were told of it in the last hour ($3); offers that
// have ended, or that are withdrawn while the drop is paused; and waitlists that are to be settled.
var unfilledSQL = `
select id from (
    (select t.id from templates t left join waitlists l on l.template_id = t.id
        where t.held > 0 and t.held > coalesce(l.offered, 0) and t.id > $1 and (t.state <> 'paused' or ` + overSQL + `)
            and not coalesce(l.told_to = ` + told + ` and l.waiting > l.offered and t.waitlist = 'offer'
                and clock_timestamp() between ` + givesUntilSQL + ` - $3::interval and ` + givesUntilSQL + `, false)
        order by t.id limit $2)
    union
    (select w.template_id from waiters w join templates t on t.id = w.template_id
        where w.state = 'offered' and w.offer_until <= clock_timestamp() and w.template_id > $1 and t.state <> 'paused' order by 1 limit $2)
    union
    (select t.id from waitlists l join templates t on t.id = l.template_id where l.offered > 0 and t.state = 'paused' and t.id > $1 order by t.id limit $2)
    union
    (select t.id from waitlists l join templates t on t.id = l.template_id
        where not l.settled and ` + overSQL + ` and t.id > $1 order by t.id limit $2)
) u order by id limit $2`

// Unfilled implements [waitlist.FillStore].
func (s *Waitlists) Unfilled(ctx context.Context, after int64, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], unfilledSQL, after, limit, waitlist.LastHour)
}

// candidateFacts are the columns of a user w who waits that decide about a coupon. A coupon that was
// taken back still counts for its user, so most users need no look at their coupons.
const candidateFacts = `w.user_id, w.channels, coalesce(c.issued, 0),
    coalesce(c.issued, 0) > 0 and exists (select from coupons o where o.user_id = w.user_id and o.template_id = w.template_id and o.returned),
    exists (select from erased_users e where e.user_id = w.user_id), w.door`

const countOfUser = ` left join claim_counts c on c.template_id = w.template_id and c.user_id = w.user_id`

// candidatesSQL returns the $2 users who are next on the waitlist of template $1.
const candidatesSQL = `select ` + candidateFacts + ` from waiters w` + countOfUser + `
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

// A turn is one transaction of the filler, or of users who accept offers.
type turn struct {
	template template.Template
	decider  *claim.Decider
	filled   map[user.ID]waitlist.Candidate
	skipped  []int64 // users
	reasons  []string
	offers   []offer
	lapses   []lapse
	told     []waitlist.Candidate // users who are told that the first of them get coupons
	// The counters after the turn. waiting has the users to whom a coupon is offered.
	waiting, offered, toldTo int64
	changed                  bool  // the counters changed otherwise than by the lists above
	more                     bool  // another turn would find something to do
	known                    bool  // there are counters; those of a drop that moves to another cell are in one database only
	settled                  bool  // the drop is over, no user waits and no stock is kept
	release                  int64 // stock that goes back on sale
}

func newTurn(size int) *turn {
	return &turn{decider: newDecider(readSet{}, size), filled: map[user.ID]waitlist.Candidate{}}
}

func (s *Waitlists) fill(ctx context.Context, conn *pgx.Conn, templateID int64, limit int) (f waitlist.Filling, err error) {
	u := newTurn(limit)
	if err := u.lock(ctx, conn, templateID); err != nil {
		return f, err
	}
	gives, over := waitlist.Gives(u.template, u.decider.At)
	switch {
	case !u.known || !gives && !over && u.offered == 0:
		return f, rollback(conn)
	case over:
		err = u.end(ctx, conn, limit)
	case !gives:
		err = u.withdraw(ctx, conn)
	case u.template.Waitlist == template.OfferNext:
		err = u.offer(ctx, conn, limit)
	default:
		err = u.decide(ctx, conn, limit)
	}
	if err != nil {
		return f, err
	}
	f = waitlist.Filling{Filled: len(u.filled), Skipped: len(u.skipped), Offered: len(u.offers), Lapsed: len(u.lapses), Released: u.release, More: u.more}
	if f.Filled+f.Skipped+f.Offered+f.Lapsed+len(u.told) == 0 && f.Released == 0 && !over && !u.changed {
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
	b.Queue(`select waiting, offered, told_to from waitlists where template_id = $1`, templateID).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&u.waiting, &u.offered, &u.toldTo}, func() error { u.known = true; return nil })
		return err
	})
	err := conn.SendBatch(ctx, b).Close()
	u.template = d.Templates[templateID]
	u.known = u.known && u.template.ID != 0
	return err
}

// candidates reads the next users.
func (u *turn) candidates(ctx context.Context, conn *pgx.Conn, limit int64) ([]waitlist.Candidate, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, conn, candidatesSQL, u.template.ID, limit), pgx.RowToStructByPos[waitlist.Candidate])
	if err != nil {
		return nil, err
	}
	users := make([]int64, len(list))
	for i, c := range list {
		users[i] = int64(c.UserID)
	}
	return list, u.readHouseholds(ctx, conn, users)
}

// readHouseholds reads the households of the users if the drop has a household limit.
func (u *turn) readHouseholds(ctx context.Context, conn *pgx.Conn, users []int64) error {
	if u.template.HouseholdLimit == 0 {
		return nil
	}
	return readHouseholdsOf(ctx, conn, u.decider, u.template.ID, users, false)
}

func (u *turn) skip(who user.ID, why string) {
	u.skipped, u.reasons = append(u.skipped, int64(who)), append(u.reasons, why)
	u.waiting--
}

// give decides about a coupon for the user. It returns the reason why the user is skipped instead; "" = the
// user gets one.
func (u *turn) give(c waitlist.Candidate) (claim.Verdict, string) {
	r := claim.Request{ID: claim.NewID(rand.Uint64(), u.template.ID), TemplateID: u.template.ID, UserID: c.UserID,
		Origin: claim.ByWaitlist, Key: waitlist.Key(u.template.ID, c.UserID)}
	v, why := waitlist.Turn(u.decider, r, c)
	if why == "" {
		u.filled[c.UserID] = c
		u.waiting--
	}
	return v, why
}

// decide reads the next users and decides about them.
func (u *turn) decide(ctx context.Context, conn *pgx.Conn, limit int) error {
	list, err := u.candidates(ctx, conn, min(u.template.Held, int64(limit)))
	if err != nil {
		return err
	}
	for _, c := range list {
		if _, why := u.give(c); why != "" {
			u.skip(c.UserID, why)
		}
	}
	if u.waiting <= 0 {
		u.release = u.held()
	}
	u.more = u.waiting > 0 && u.held() > 0
	return nil
}

// end skips the next users of a drop that is over. The stock that was kept is released.
func (u *turn) end(ctx context.Context, conn *pgx.Conn, limit int) error {
	rows := pg.Rows(ctx, conn, `(select user_id, state = 'offered' from waiters where template_id = $1 and state = 'waiting' limit $2)
		union all (select user_id, true from waiters where template_id = $1 and state = 'offered' limit $2) limit $2`, u.template.ID, limit)
	var who user.ID
	var offered bool
	_, err := pgx.ForEachRow(rows, []any{&who, &offered}, func() error {
		u.skip(who, waitlist.ReasonOver)
		if offered {
			u.offered--
		}
		return nil
	})
	u.release = u.held()
	u.settled, u.more = u.waiting <= 0, u.waiting > 0
	return err
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
		b.Queue(listFilled, id, users)
		// These coupons are issued outside of the epoch of a gate.
		b.Queue(`update gates set base = base + $2 where template_id = $1`, id, filled)
	}
	if len(u.skipped) > 0 {
		b.Queue(skippedSQL, id, u.skipped, u.reasons)
	}
	u.queueOffers(b)
	if err := u.queueMessages(b, &batches); err != nil {
		return nil, err
	}
	b.Queue(`update waitlists set waiting = $2, offered = $3, told_to = $4, filled = filled + $5, skipped = skipped + $6, lapsed = lapsed + $7, released = released + $8,
		settled = $9, put_at = clock_timestamp() where template_id = $1`, id, u.waiting, u.offered, u.toldTo, filled, len(u.skipped), u.out(), u.release, u.settled)
	if u.release > 0 { // a keeper allots it, and taps are no longer refused from memory
		b.Queue(`insert into outbox (topic, payload) select $2, jsonb_build_object('template_id', id::text, 'shop_number', shop_number::text, 'version', version,
			'opens_at', opens_at, 'sequence', nextval('hook_sequence')::text, 'at', clock_timestamp()) from templates where id = $1`, id, event.TemplateChanged)
	}
	b.Queue(`commit`)
	err = conn.SendBatch(ctx, b).Close()
	return batches, err
}

// messagesSQL stores one announcement with a batch for each channel, and returns the id and the
// channel of each batch. The announcement ends when its batches have ended. $9 is the kind.
const messagesSQL = `
with a as (
    insert into announcements (template_id, kind, opens_at, state, created_by, created_at, worthless_after, cut_at, superseded_at)
    select id, $9, opens_at, 'sending', 'system', clock_timestamp(), $2, clock_timestamp(), clock_timestamp() from templates where id = $1
    returning id, template_id, kind, created_at, worthless_after
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, worthless_after, priority, next_run_at)
select a.kind, a.id, a.template_id, c.channel, c.from_user, c.to_user, c.n, c.due, a.created_at, a.worthless_after, $3, clock_timestamp()
from a, unnest($4::smallint[], $5::bigint[], $6::bigint[], $7::int[], $8::bytea[]) as c (channel, from_user, to_user, n, due)
returning id, channel`

// queueMessages queues the messages to the users whom the filler gave or offers a coupon, over the channels that
// they chose. A user who accepts an offer needs none.
func (u *turn) queueMessages(b *pgx.Batch, batches *[]waitlist.Batch) error {
	var readers []waitlist.Candidate
	kind, worthless := delivery.KindOffer, time.Time{}
	switch {
	case len(u.offers) > 0:
		for _, o := range u.offers {
			readers = append(readers, o.Candidate)
			if o.until.After(worthless) {
				worthless = o.until
			}
		}
	case len(u.told) > 0:
		readers, worthless = u.told, waitlist.GivesUntil(u.template)
	case u.template.Waitlist == template.IssueNext:
		kind = delivery.KindWaitlist
		for _, n := range u.decider.Fresh() {
			readers = append(readers, u.filled[n.Request.UserID])
			if worthless.IsZero() || n.ExpiresAt.Before(worthless) {
				worthless = n.ExpiresAt
			}
		}
	}
	return queueMessages(b, u.template.ID, kind, worthless, readers, batches)
}

func queueMessages(b *pgx.Batch, templateID int64, kind delivery.Kind, worthless time.Time, readers []waitlist.Candidate, batches *[]waitlist.Batch) error {
	var channels []int16
	var from, to []int64
	var counts []int32
	var dues [][]byte
	for _, c := range delivery.AllChannels() {
		var users []user.ID
		for _, w := range readers {
			if w.Channels.Has(c) {
				users = append(users, w.UserID)
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
	if len(channels) == 0 {
		return nil
	}
	b.Queue(messagesSQL, templateID, worthless, pg.AnnouncementPriority, channels, from, to, counts, dues, kind).Query(func(rows pgx.Rows) (err error) {
		*batches, err = pgx.CollectRows(rows, pgx.RowToStructByPos[waitlist.Batch])
		return err
	})
	return nil
}
