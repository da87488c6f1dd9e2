package coupons

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
	"dropbell/killpoint"
)

// offer is a coupon that is kept for one user until an instant.
type offer struct {
	waitlist.Candidate
	until time.Time
}

// lapse is an offer that was not accepted in time. out is set if the user gets no further one.
type lapse struct {
	userID int64
	out    bool
}

// out is how many users the turn puts out of the waitlist.
func (u *turn) out() (n int64) {
	for _, l := range u.lapses {
		if l.out {
			n++
		}
	}
	return n
}

const (
	// allTold is told_to after all waiting users were told.
	allTold = math.MaxInt64
	// tellAtOnce is how many users one transaction tells that the first of them get coupons.
	tellAtOnce = 50_000
)

var told = strconv.Itoa(allTold)

// lapseSQL ends offers of template $1 that were not accepted in time, up to $2: their users wait behind
// all others, or after $3 such offers are out. It returns the users, and which of them are out.
var lapseSQL = fmt.Sprintf(`
with due as (
    select user_id from waiters where template_id = $1 and state = 'offered' and offer_until <= clock_timestamp() order by offer_until limit $2
)
update waiters w set state = case when w.lapses + 1 >= $3 then 'lapsed' else 'waiting' end, lapses = w.lapses + 1, lapsed_at = clock_timestamp(),
    changed_at = clock_timestamp(), rank = %d + (extract(epoch from clock_timestamp()) * 1000000)::bigint
from due where w.template_id = $1 and w.user_id = due.user_id returning w.user_id, w.state = 'lapsed'`, int64(waitlist.LastRank))

// offer ends offers that were not accepted in time, and makes new ones. In the last hour all waiting
// users are told at once instead.
func (u *turn) offer(ctx context.Context, conn *pgx.Conn, limit int) error {
	rows, err := conn.Query(ctx, lapseSQL, u.template.ID, limit, waitlist.MaxLapses)
	if err != nil {
		return err
	}
	var l lapse
	if _, err = pgx.ForEachRow(rows, []any{&l.userID, &l.out}, func() error { u.lapses = append(u.lapses, l); return nil }); err != nil {
		return err
	}
	out := u.out()
	u.offered, u.waiting = u.offered-int64(len(u.lapses)), u.waiting-out
	free, rush := u.held()-u.offered, waitlist.Rushes(u.template, u.decider.At)
	if !rush && u.toldTo > 0 { // staff moved the end
		u.toldTo, u.changed = 0, true
	}
	switch {
	case len(u.lapses) == limit:
		u.more = true
	case u.waiting-u.offered <= 0:
		u.release = max(0, free)
	case free <= 0:
	case rush && u.toldTo < allTold:
		return u.tellAll(ctx, conn)
	case !rush:
		return u.offerNext(ctx, conn, min(free, int64(limit)))
	}
	return nil
}

// offerNext offers free coupons to the next users.
func (u *turn) offerNext(ctx context.Context, conn *pgx.Conn, free int64) error {
	list, err := u.candidates(ctx, conn, free)
	if err != nil {
		return err
	}
	owners, err := u.owners(ctx, conn, list)
	if err != nil {
		return err
	}
	end := waitlist.GivesUntil(u.template)
	for _, c := range list {
		if why := c.Unfit(u.template); why != "" {
			u.skip(c.UserID, why)
			continue
		}
		u.offers = append(u.offers, offer{c, waitlist.OfferEnds(u.decider.At, u.template.AcceptMinutes, owners[c.UserID], end)})
	}
	u.offered += int64(len(u.offers))
	u.more = u.waiting > u.offered && u.held() > u.offered || u.waiting <= u.offered
	return nil
}

// ownersSQL returns the time zones and the quiet hours of users $2; users without a zone of their own
// have that of the shop of template $1.
const ownersSQL = `
select a.id, case when coalesce(u.timezone, '') <> '' then u.timezone else s.timezone end, coalesce(u.quiet_from, 0), coalesce(u.quiet_to, 0)
from unnest($2::bigint[]) as a (id) left join users u on u.id = a.id, templates t join shops s on s.number = t.shop_number where t.id = $1`

func (u *turn) owners(ctx context.Context, conn *pgx.Conn, list []waitlist.Candidate) (map[user.ID]user.User, error) {
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = int64(c.UserID)
	}
	rows, err := conn.Query(ctx, ownersSQL, u.template.ID, ids)
	if err != nil {
		return nil, err
	}
	owners, o := make(map[user.ID]user.User, len(list)), user.User{}
	_, err = pgx.ForEachRow(rows, []any{&o.ID, &o.Timezone, &o.Quiet.From, &o.Quiet.To}, func() error { owners[o.ID] = o; return nil })
	return owners, err
}

// tellAll tells the next users that the first of them get the coupons that are kept.
func (u *turn) tellAll(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `select user_id, channels from waiters where template_id = $1 and state = 'waiting' and user_id > $2 order by user_id limit $3`,
		u.template.ID, u.toldTo, tellAtOnce)
	if err != nil {
		return err
	}
	var c waitlist.Candidate
	_, err = pgx.ForEachRow(rows, []any{&c.UserID, &c.Channels}, func() error { u.told = append(u.told, c); return nil })
	u.toldTo, u.changed = allTold, true
	if len(u.told) == tellAtOnce {
		u.toldTo, u.more = int64(u.told[tellAtOnce-1].UserID), true
	}
	return err
}

// withdraw takes the offers of a paused drop back: they could not be accepted. The users keep their
// places, and are offered a coupon again when the drop goes on.
func (u *turn) withdraw(ctx context.Context, conn *pgx.Conn) error {
	u.offered, u.changed = 0, true
	_, err := conn.Exec(ctx, `update waiters set state = 'waiting', changed_at = clock_timestamp() where template_id = $1 and state = 'offered'`, u.template.ID)
	return err
}

const offersSQL = `
update waiters w set state = 'offered', offered_at = clock_timestamp(), offer_until = a.until, changed_at = clock_timestamp()
from unnest($2::bigint[], $3::timestamptz[]) as a (user_id, until) where w.template_id = $1 and w.user_id = a.user_id`

// queueOffers queues the offers, and the events about those that were not accepted.
func (u *turn) queueOffers(b *pgx.Batch) {
	users, until := make([]int64, len(u.offers)), make([]time.Time, len(u.offers))
	for i, o := range u.offers {
		users[i], until[i] = int64(o.UserID), o.until
	}
	if len(users) > 0 {
		b.Queue(offersSQL, u.template.ID, users, until)
	}
	users = nil
	for _, l := range u.lapses {
		users = append(users, l.userID)
	}
	if len(users) > 0 {
		b.Queue(listLapsed, u.template.ID, users)
	}
}

// listFilled and listLapsed write the event that names the users $2 of the waitlist of template $1, if a
// server of the shop wants to know them.
var listFilled, listLapsed = listWaiters(hook.WaitlistFilled), listWaiters(hook.WaitlistLapsed)

func listWaiters(t hook.Type) string {
	return `insert into outbox (topic, payload)
		select '` + event.WaitersListed + `', jsonb_build_object('template_id', $1::bigint::text, 'filled', ` + strconv.FormatBool(t == hook.WaitlistFilled) + `, 'at', clock_timestamp(),
			'sequence', nextval('hook_sequence')::text, 'items', (select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('user_id', user_id::text, 'coupon_id', coupon_id::text,
				'out', case when state = 'lapsed' then true end)) order by user_id) from waiters where template_id = $1::bigint and user_id = any($2)))
		from templates t where t.id = $1::bigint and exists (select from hook_wants w where w.shop_number = t.shop_number
			and (cardinality(w.types) = 0 or '` + string(t) + `' = any(w.types)))`
}

// Accept implements [waitlist.Store].
func (s *Waitlists) Accept(ctx context.Context, templateID int64, by user.ID) (waitlist.Waiter, error) {
	j, err := s.accepts.Do(ctx, waitlist.Wish{TemplateID: templateID, UserID: by})
	if err == nil {
		err = j.err
	}
	return j.Waiter, err
}

// acceptAll gives offered coupons, in one transaction for each template.
func (s *Waitlists) acceptAll(ctx context.Context, group []waitlist.Wish) ([]joined, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	places, answers := make(map[claim.Holder]int, len(group)), make([]joined, len(group))
	var templates []int64
	users := map[int64][]int64{}
	for i, w := range group {
		places[claim.Holder{TemplateID: w.TemplateID, UserID: w.UserID}] = i
		templates, users[w.TemplateID] = append(templates, w.TemplateID), append(users[w.TemplateID], int64(w.UserID))
	}
	for _, id := range distinct(templates) {
		err := s.acceptOf(ctx, conn.Conn(), id, users[id], func(by user.ID, j joined) { answers[places[claim.Holder{TemplateID: id, UserID: by}]] = j })
		if err != nil {
			return nil, errors.Join(err, rollback(conn.Conn()))
		}
	}
	return answers, nil
}

// acceptSQL returns the places of users $2 of template $1, in their order, with the facts that decide about a coupon.
const acceptSQL = `select ` + candidateFacts + `, ` + waiterColumns + ` from unnest($2::bigint[]) with ordinality as a (user_id, n)
join waiters w on w.template_id = $1 and w.user_id = a.user_id` + countOfUser + ` order by a.n`

func (s *Waitlists) acceptOf(ctx context.Context, conn *pgx.Conn, templateID int64, users []int64, answer func(user.ID, joined)) error {
	u := newTurn(len(users))
	if err := u.lock(ctx, conn, templateID); err != nil {
		return err
	}
	for _, id := range users {
		answer(user.ID(id), joined{err: waitlist.ErrNotWaiting})
	}
	if !u.known {
		return rollback(conn)
	}
	if err := u.readHouseholds(ctx, conn, users); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, acceptSQL, templateID, users)
	if err != nil {
		return err
	}
	accepted := map[user.ID]waitlist.Waiter{}
	var c waitlist.Candidate
	var w waitlist.Waiter
	fields := append([]any{&c.UserID, &c.Channels, &c.Coupons, &c.TakenBack, &c.Erased, &c.Door}, waiterFields(&w)...)
	if _, err = pgx.ForEachRow(rows, fields, func() error {
		j := joined{Waiter: w}
		if w.State != waitlist.Filled {
			if j.err = u.accept(w, c); j.err == nil {
				accepted[w.UserID] = w
			}
		}
		answer(w.UserID, j)
		return nil
	}); err != nil {
		return err
	}
	if len(accepted)+len(u.skipped) == 0 {
		return rollback(conn)
	}
	if err := killpoint.Around("waitlist.accept", func() error { _, err := u.store(ctx, conn); return err }); err != nil {
		return err
	}
	for _, n := range u.decider.Fresh() {
		w := accepted[n.Request.UserID]
		w.State, w.CouponID, w.ChangedAt, w.OfferUntil = waitlist.Filled, n.Claim.CouponID, n.Claim.At, time.Time{}
		answer(w.UserID, joined{Waiter: w, stored: true})
	}
	return nil
}

// accept decides about a user who accepts a coupon.
func (u *turn) accept(w waitlist.Waiter, c waitlist.Candidate) error {
	t, at := u.template, u.decider.At
	if err := claim.Admit(t, claim.ByWaitlist, at); err != nil {
		return err
	}
	if !at.Before(waitlist.GivesUntil(t)) {
		return claim.ErrEnded
	}
	own := w.State == waitlist.Offered && at.Before(w.OfferUntil)
	switch {
	case own:
	case w.State == waitlist.Offered:
		return waitlist.ErrLapsed
	case t.Waitlist != template.OfferNext || w.State != waitlist.Waiting || !waitlist.Rushes(t, at):
		return waitlist.ErrNoOffer
	case u.held() <= u.offered:
		return waitlist.ErrTaken
	}
	v, why := u.give(c)
	if own {
		u.offered--
	}
	if why == "" {
		return nil
	}
	u.skip(c.UserID, why)
	switch {
	case v.Err != nil:
		return v.Err
	case why == claim.ErrLimit.Code:
		return claim.ErrLimit
	}
	return waitlist.ErrNoOffer.Because("a rule of the drop gives you no coupon; look at the reason of your place on the waitlist")
}
