package coupons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
	"dropbell/killpoint"
)

// Waitlists stores the users who wait for stock that comes back. Users who join or leave at the
// same time are stored together. It implements [waitlist.Store] and [waitlist.FillStore].
type Waitlists struct {
	*pg.DB
	joins  *pg.Committer[claim.Holder, waitlist.Wish, joined]
	leaves *pg.Committer[claim.Holder, waitlist.Wish, joined]
	// accepts give offered coupons; a transaction of theirs is one of the filler.
	accepts *pg.Committer[claim.Holder, waitlist.Wish, joined]
}

// joined is the answer to one user of a group.
type joined struct {
	waitlist.Waiter
	stored bool  // by this group
	err    error // why not
}

// NewWaitlists starts the committers. Groups have at most 512 users unless g says otherwise.
func NewWaitlists(db *pg.DB, g pg.Grouping) *Waitlists {
	s := &Waitlists{DB: db}
	if g.MaxGroup == 0 {
		g.MaxGroup = 512
	}
	cfg := g.Config(db)
	cfg.LockWait, cfg.Name, cfg.Locked = pg.LockWait, "waitlist", s.lockedWaitlists
	key := func(w waitlist.Wish) claim.Holder { return claim.Holder{TemplateID: w.TemplateID, UserID: w.UserID} }
	template := func(w waitlist.Wish) int64 { return w.TemplateID }
	s.joins = pg.NewFairCommitter(cfg, key, template, s.joinAll)
	s.leaves = pg.NewFairCommitter(cfg, key, template, s.leaveAll)
	s.accepts = pg.NewFairCommitter(cfg, key, template, s.acceptAll)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Waitlists) Close() {
	s.joins.Close()
	s.leaves.Close()
	s.accepts.Close()
}

// lockWaitlists excludes other groups, the filler, and transactions that return or raise stock.
const lockWaitlists = `select from waitlists where template_id = any($1) order by template_id for update`

// lockedWaitlists returns the templates whose waitlist another session has locked.
func (s *Waitlists) lockedWaitlists(ctx context.Context, templates []int64) ([]int64, error) {
	rows := pg.Rows(ctx, s.Pool, `with free as materialized (select template_id from waitlists where template_id = any($1) for update skip locked)
		select l.template_id from waitlists l where l.template_id = any($1) and not exists (select from free where free.template_id = l.template_id)`, templates)
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// joinSQL returns the users who were put at the end of their waitlists, and when. A user who has
// left before, or was skipped at the end of a drop that was reopened, is put at the end again. Within a group the order of arrival decides, to the
// microsecond. The templates are found by their ids: is true keeps the plan from the index of all
// published drops. $1 to $3 are templates, users and channels, $4 the templates, each once, and $6 to $8
// the rank, the door and the limit of each user. A user who once did not accept an offer in time stays last.
var joinSQL = `
with asked as (
    select * from unnest($1::bigint[], $2::bigint[], $3::smallint[], $6::bigint[], $7::smallint[], $8::int[]) with ordinality
        as a (template_id, user_id, channels, rank, door, most, n)
), open as materialized (
    select t.id, clock_timestamp() as now from templates t
    where t.id = any($4) and t.waitlist <> 'off' and (t.state in ('published', 'paused')) is true and t.opens_at <= clock_timestamp()
        and clock_timestamp() < ` + givesUntilSQL + ` and (t.claim_mode = 'gate' or t.issued + t.held >= t.stock)
        and exists (select from waitlists l where l.template_id = t.id)
), former as materialized (
    select w.template_id, w.user_id, w.state from asked a join waiters w on w.template_id = a.template_id and w.user_id = a.user_id
), stored as (
    insert into waiters as w (template_id, user_id, joined_at, channels, rank, door)
    select a.template_id, a.user_id, o.now + a.n * interval '1 microsecond', a.channels, a.rank, a.door
    from asked a join open o on o.id = a.template_id
    where not exists (select from claim_counts c where c.template_id = a.template_id and c.user_id = a.user_id and c.issued >= a.most)
        and (select count(*) from waiters b where b.user_id = a.user_id and b.state in ('waiting', 'offered')) < $5
    order by a.template_id, a.user_id
    on conflict (template_id, user_id) do update set state = 'waiting', joined_at = excluded.joined_at, channels = excluded.channels,
        rank = case when w.lapses > 0 then greatest(w.rank, excluded.rank) else excluded.rank end, door = excluded.door,
        changed_at = clock_timestamp(), reason = '' where w.state = 'left' or w.reason = '` + waitlist.ReasonOver + `'
    returning template_id, user_id, rank, joined_at, changed_at, channels, lapses
), counted as (
    update waitlists l set joined = l.joined + c.n - c."left" - c.skipped, waiting = l.waiting + c.n, "left" = l."left" - c."left", skipped = l.skipped - c.skipped
    from (select s.template_id, count(*) as n, count(*) filter (where f.state = 'left') as "left", count(*) filter (where f.state = 'skipped') as skipped
        from stored s left join former f on f.template_id = s.template_id and f.user_id = s.user_id group by 1) c
    where l.template_id = c.template_id
)
select template_id, user_id, 'waiting', rank, joined_at, changed_at, channels, 0, '', lapses, '0001-01-01 00:00Z'::timestamptz from stored`

// givesUntilSQL is [waitlist.GivesUntil] of the row t.
var givesUntilSQL = fmt.Sprintf(`least(t.closes_at, t.valid_until - interval '%d seconds')`, int(waitlist.MinValidity.Seconds()))

// leaveSQL returns the users who were taken off their waitlists. A coupon that was offered to one of them
// is free again.
const leaveSQL = `
with asked as (
    select * from unnest($1::bigint[], $2::bigint[]) as a (template_id, user_id)
), former as materialized (
    select w.template_id, w.user_id, w.state from asked a join waiters w on w.template_id = a.template_id and w.user_id = a.user_id
    where w.state in ('waiting', 'offered')
), stored as (
    update waiters w set state = 'left', changed_at = clock_timestamp() from former f
    where w.template_id = f.template_id and w.user_id = f.user_id
    returning w.template_id, w.user_id, w.rank, w.joined_at, w.changed_at, w.channels, w.lapses, f.state as was
), counted as (
    update waitlists l set waiting = l.waiting - c.n, offered = l.offered - c.offered, "left" = l."left" + c.n
    from (select template_id, count(*) as n, count(*) filter (where was = 'offered') as offered from stored group by 1) c where l.template_id = c.template_id
)
select template_id, user_id, 'left', rank, joined_at, changed_at, channels, 0, '', lapses, '0001-01-01 00:00Z'::timestamptz from stored`

const waiterColumns = `w.template_id, w.user_id, w.state, w.rank, w.joined_at, w.changed_at, w.channels, coalesce(w.coupon_id, 0), w.reason, w.lapses,
    coalesce(case when w.state = 'offered' then w.offer_until end, '0001-01-01 00:00Z')`

func waiterFields(w *waitlist.Waiter) []any {
	return []any{&w.TemplateID, &w.UserID, &w.State, &w.Rank, &w.JoinedAt, &w.ChangedAt, &w.Channels, &w.CouponID, &w.Reason, &w.Lapses, &w.OfferUntil}
}

// foundSQL returns the place of each user $2 of template $1 who has one, and for the others whether
// they have as many coupons as they may, which $4 says, and as many waits.
const foundSQL = `
select a.template_id, a.user_id, coalesce(w.state, ''), coalesce(w.rank, 0), coalesce(w.joined_at, 'epoch'), coalesce(w.changed_at, 'epoch'), coalesce(w.channels, 0),
    coalesce(w.coupon_id, 0), coalesce(w.reason, ''), coalesce(w.lapses, 0), coalesce(case when w.state = 'offered' then w.offer_until end, '0001-01-01 00:00Z'),
    exists (select from claim_counts c where c.template_id = a.template_id and c.user_id = a.user_id and c.issued >= a.most),
    (select count(*) from waiters b where b.user_id = a.user_id and b.state in ('waiting', 'offered')) >= $3
from unnest($1::bigint[], $2::bigint[], $4::int[]) as a (template_id, user_id, most)
left join waiters w on w.template_id = a.template_id and w.user_id = a.user_id`

// Join implements [waitlist.Store].
func (s *Waitlists) Join(ctx context.Context, w waitlist.Wish) (waitlist.Waiter, bool, error) {
	j, err := s.joins.Do(ctx, w)
	if err == nil {
		err = j.err
	}
	return j.Waiter, j.stored, err
}

// Leave implements [waitlist.Store].
func (s *Waitlists) Leave(ctx context.Context, templateID int64, by user.ID) (waitlist.Waiter, error) {
	j, err := s.leaves.Do(ctx, waitlist.Wish{TemplateID: templateID, UserID: by})
	if err == nil {
		err = j.err
	}
	return j.Waiter, err
}

// waiterSQL returns the place of user $2 of template $1, until when the user could take one of the coupons
// that are kept in the last hour ($3) of a drop with offers, and whether there is such a coupon.
var waiterSQL = `select ` + waiterColumns + `, ` + givesUntilSQL + `,
    w.state = 'waiting' and t.waitlist = 'offer' and t.state = 'published' and t.held > l.offered
        and clock_timestamp() between ` + givesUntilSQL + ` - $3::interval and ` + givesUntilSQL + `
from waiters w join templates t on t.id = w.template_id join waitlists l on l.template_id = w.template_id where w.template_id = $1 and w.user_id = $2`

// Waiter implements [waitlist.Store].
func (s *Waitlists) Waiter(ctx context.Context, templateID int64, by user.ID) (w waitlist.Waiter, err error) {
	var until time.Time
	err = s.Pool.QueryRow(ctx, waiterSQL, templateID, by, waitlist.LastHour).Scan(append(waiterFields(&w), &until, &w.Shared)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, waitlist.ErrNotWaiting
	}
	if w.Shared {
		w.OfferUntil = until
	}
	return w, pg.Translate(err)
}

// outlookSQL counts the users before user $2 of the waitlist of template $1, up to $5, and the last
// $6 waitlists of its shop that are over. $3 and $4 are the user's rank and instant of joining.
const outlookSQL = `
with ahead as (
    select count(*) as n from (select from waiters w where w.template_id = $1 and w.state = 'waiting' and (w.rank, w.joined_at, w.user_id) < ($3, $4, $2) limit $5) a
), past as (
    select l.filled from templates t join waitlists l on l.template_id = t.id
    where t.shop_number = (select shop_number from templates where id = $1) and t.opens_at < now() and t.id <> $1 and l.joined > 0 and ` + overSQL + `
    order by t.opens_at desc limit $6
)
select a.n, (select count(*) from past where filled > a.n), (select count(*) from past) from ahead a`

// Outlook implements [waitlist.Store].
func (s *Waitlists) Outlook(ctx context.Context, w waitlist.Waiter) (ahead, reached, lists int64, err error) {
	err = s.Pool.QueryRow(ctx, outlookSQL, w.TemplateID, w.UserID, w.Rank, w.JoinedAt, waitlist.MaxAhead, waitlist.MaxHistory).Scan(&ahead, &reached, &lists)
	return ahead, reached, lists, pg.Translate(err)
}

func (s *Waitlists) joinAll(ctx context.Context, group []waitlist.Wish) ([]joined, error) {
	n := len(group)
	templates, users, channels := make([]int64, n), make([]int64, n), make([]int16, n)
	ranks, doors, most := make([]int64, n), make([]int16, n), make([]int32, n)
	for i, w := range group {
		templates[i], users[i], channels[i] = w.TemplateID, int64(w.UserID), int16(w.Channels)
		ranks[i], doors[i], most[i] = w.Rank, int16(w.Door), int32(w.Limit)
	}
	once := distinct(templates)
	return s.storeAll(ctx, group, once, joinSQL, []any{templates, users, channels, once, waitlist.MaxWaits, ranks, doors, most}, waitlist.ErrNotOpen)
}

func (s *Waitlists) leaveAll(ctx context.Context, group []waitlist.Wish) ([]joined, error) {
	templates, users := make([]int64, len(group)), make([]int64, len(group))
	for i, w := range group {
		templates[i], users[i] = w.TemplateID, int64(w.UserID)
	}
	return s.storeAll(ctx, group, distinct(templates), leaveSQL, []any{templates, users}, waitlist.ErrNotWaiting)
}

// storeAll runs one of the statements in a transaction of its own. Users whom it left as they were
// are answered with their place, or with a refusal: refusal if neither their coupons nor their
// waits are the reason.
func (s *Waitlists) storeAll(ctx context.Context, group []waitlist.Wish, templates []int64, sql string, args []any, refusal error) ([]joined, error) {
	places := make(map[claim.Holder]int, len(group))
	answers, left := make([]joined, len(group)), len(group)
	for i, w := range group {
		places[claim.Holder{TemplateID: w.TemplateID, UserID: w.UserID}] = i
		answers[i].Waiter = waitlist.Waiter{TemplateID: w.TemplateID, UserID: w.UserID}
	}
	b := &pgx.Batch{} // without begin and commit it is one transaction
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockWaitlists, templates)
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var w waitlist.Waiter
		_, err := pgx.ForEachRow(rows, waiterFields(&w), func() error {
			answers[places[claim.Holder{TemplateID: w.TemplateID, UserID: w.UserID}]] = joined{Waiter: w, stored: true}
			left--
			return nil
		})
		return err
	})
	if err := killpoint.Around("waitlist.change", func() error { return s.Pool.SendBatch(ctx, b).Close() }); err != nil || left == 0 {
		return answers, err
	}
	return answers, s.findOthers(ctx, group, answers, places, refusal)
}

// findOthers answers the users whom a statement left as they were.
func (s *Waitlists) findOthers(ctx context.Context, group []waitlist.Wish, answers []joined, places map[claim.Holder]int, refusal error) error {
	var templates, users []int64
	var most []int32
	for i, a := range answers {
		if !a.stored {
			templates, users, most = append(templates, a.TemplateID), append(users, int64(a.UserID)), append(most, int32(group[i].Limit))
		}
	}
	return s.PlannedForGroups(ctx, foundSQL, []any{templates, users, waitlist.MaxWaits, most}, func(rows pgx.Rows) error {
		var w waitlist.Waiter
		var full, busy bool
		_, err := pgx.ForEachRow(rows, append(waiterFields(&w), &full, &busy), func() error {
			a := &answers[places[claim.Holder{TemplateID: w.TemplateID, UserID: w.UserID}]]
			switch joining := refusal != waitlist.ErrNotWaiting; {
			case w.State != "" && !(joining && w.State == waitlist.Left):
				a.Waiter = w
			case joining && full:
				a.err = claim.ErrLimit
			case joining && busy:
				a.err = waitlist.ErrTooMany
			default:
				a.err = refusal
			}
			return nil
		})
		return err
	})
}

// distinct returns each of the ids once, in ascending order.
func distinct(ids []int64) []int64 {
	list := slices.Clone(ids)
	slices.Sort(list)
	return slices.Compact(list)
}
