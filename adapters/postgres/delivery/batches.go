// Package delivery stores batches with the outcomes of their recipients. It
// leases batches to workers and records checkpoints. It also stores dead letters,
// the settings of channels, and test messages of channels. The app's inbox is
// read from batches too.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Batches stores batches and the outcomes of their recipients.
type Batches struct {
	*pg.DB
	optOuts *optOuts
}

// NewBatches returns the batch store of db.
func NewBatches(db *pg.DB) Batches { return Batches{db, newOptOuts(db)} }

// A place is a batch's position in the order of urgency.
type place struct {
	priority int16
	deadline time.Time
	id       int64
}

// leaseSQL leases the $4 most urgent ready batches of channel $1 after the place
// $5, $6, $7: reminders before campaigns, nearest deadline first. Batches of
// paused campaigns are held. The first $8 batches are always leased, one for each
// caller. Further batches are leased only while all leased batches together have
// at most the parts of $8 full batches, see [delivery.Parts].
//
// Delivery in the app only records outcomes, so losing such a lease in a crash of
// the database cannot cause a second message. Leases of the app therefore commit
// asynchronously.
const leaseSQL = `
with found as (
    select id, priority, worthless_after, least(greatest(due_count * $9::int / $10::int, 1), $9::int) as parts
    from batches where channel = $1 and state = 'ready' and not held and next_run_at <= clock_timestamp()
        and (priority, worthless_after, id) > ($5::smallint, coalesce($6::timestamptz, '-infinity'), $7::bigint)
    order by priority, worthless_after, id limit $4 for update skip locked
), next as (
    select id from (select id, row_number() over urgency as n, sum(parts) over urgency as parts
        from found window urgency as (order by priority, worthless_after, id)) f
    where n <= $8::int or parts <= $8::int * $9::int
), b as (
    update batches b set state = 'running', lease_token = $2, lease_until = clock_timestamp() + $3,
        started_at = coalesce(started_at, clock_timestamp()), runs = runs + 1
    from next where b.id = next.id returning b.*
)
select b.id, b.kind, b.owner_id, b.template_id, b.due_at, greatest(b.due_at, b.planned_at), b.worthless_after, coalesce(b.stop_reason, ''), b.due, b.sent,
    b.due_count, b.runs, clock_timestamp(),
    coalesce(t.name, ''), coalesce(t.shop_number::text, ''), ` + pg.ClaimURL + `,
    -- a correction is worth sending until the opening that it names, which may be that of a door
    coalesce(s.slot, 0), case when b.kind in ('campaign', 'test') then coalesce(t.opens_at, '0001-01-01') when b.kind = 'correction' then b.worthless_after
        else coalesce(s.opens_at, t.opens_at, b.worthless_after) end,
    b.priority, coalesce(c.rate_per_second, 0), ` + pg.BatchContent + `, coalesce(h.name, ''), coalesce(c.ends_at, '0001-01-01'), coalesce(c.shop_number, 0),
    b.messages_upto, coalesce(t.hold_out_percent, 0), ` + pg.SubjectColumns + `,
    -- users of a dense batch who have opted out of the channel; null of a batch whose ids lie far apart, see optOuts
    case when b.to_user - b.from_user < 16 * b.due_count then
        array(select u.id from users u where u.opt_outs <> 0 and u.id between b.from_user and b.to_user and u.opt_outs & (1 << b.channel) <> 0) end,
    set_config('synchronous_commit', case b.channel when 0 then 'off' else current_setting('synchronous_commit') end, true)
from b left join templates t on t.id = b.template_id
-- With limit the slot is looked up by its id: a planner that takes the table for empty would read all slots for each batch.
left join lateral (select slot, opens_at from slots where b.kind = 'reminder' and id = b.owner_id limit 1) s on true
left join campaigns c on b.kind in ('campaign', 'test') and c.id = b.owner_id left join shops h on h.number = coalesce(c.shop_number, t.shop_number)`

// LeaseNext leases the most urgent ready batch, or returns [delivery.ErrNoWork].
func (s Batches) LeaseNext(ctx context.Context, c delivery.Channel, lasting time.Duration) (delivery.Lease, error) {
	leases, _, err := s.lease(ctx, c, 1, 1, lasting, place{priority: math.MinInt16})
	if err != nil {
		return nil, pg.Translate(err)
	}
	if len(leases) == 0 {
		return nil, delivery.ErrNoWork
	}
	leases[0].save, leases[0].accept = s.checkpointAlone, s.acceptAlone
	return ready(ctx, leases[0])
}

// LeaseSome leases one batch; without groups leasing several batches would be no
// cheaper.
func (s Batches) LeaseSome(ctx context.Context, c delivery.Channel, lasting time.Duration, _ int) ([]delivery.Lease, error) {
	l, err := s.LeaseNext(ctx, c, lasting)
	if err != nil {
		return nil, err
	}
	return []delivery.Lease{l}, nil
}

// lease leases up to n batches after a place, in the order of urgency; callers is the number of
// callers that share them. It also returns the place of the last leased batch.
func (s Batches) lease(ctx context.Context, c delivery.Channel, n, callers int, lasting time.Duration, behind place) ([]*lease, place, error) {
	token := uuid.NewString()
	var deadline *time.Time
	if !behind.deadline.IsZero() {
		deadline = &behind.deadline
	}
	var list []*lease
	last := behind
	read := func(rows pgx.Rows) error {
		for rows.Next() {
			l := &lease{db: s.DB, optOuts: s.optOuts, token: token, lasting: lasting, outcomes: map[user.ID]delivery.Outcome{}}
			if err := l.scan(rows, c); err != nil {
				return err
			}
			if l.place().after(last) {
				last = l.place()
			}
			list = append(list, l)
		}
		return rows.Err()
	}
	if err := killpoint.Around("batches.lease", func() error {
		return s.PlannedOnce(ctx, leaseSQL, []any{c, token, lasting, n, behind.priority, deadline, behind.id,
			callers, delivery.BatchParts, delivery.BatchSize}, read)
	}); err != nil {
		return nil, behind, err
	}
	slices.SortFunc(list, func(a, b *lease) int { return a.place().compare(b.place()) })
	return list, last, nil
}

func (l *lease) place() place {
	return place{int16(l.batch.Priority), l.batch.WorthlessAfter, l.batch.ID}
}

func (p place) after(other place) bool { return p.compare(other) > 0 }

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.priority, other.priority), p.deadline.Compare(other.deadline), cmp.Compare(p.id, other.id))
}

func (l *lease) scan(rows pgx.Rows, c delivery.Channel) error {
	b := &l.batch
	b.Channel, b.Exceptions, b.OptedOut = c, map[user.ID]delivery.Exception{}, map[user.ID]bool{}
	var due, sent []byte
	var optedOut []int64
	var campaignShop int64
	fields := []any{&b.ID, &b.Subject.Kind, &b.Owner, &b.Subject.TemplateID,
		&b.Subject.DueAt, &b.PlannedAt, &b.WorthlessAfter, &b.StopReason, &due, &sent, &l.dueCount, &l.runs, &b.Now,
		&b.Subject.TemplateName, &b.Subject.ShopNumber, &b.Subject.ClaimURL, &b.Subject.Slot, &b.Subject.OpensAt,
		&b.Priority, &b.RatePerSecond, &b.Subject.Copy, &b.Subject.ShopName, &b.Subject.EndsAt, &campaignShop, &b.Subject.TextsUpTo, &b.HoldOut}
	fields = append(append(fields, pg.SubjectFields(&b.Subject)...), &optedOut, nil)
	if err := rows.Scan(fields...); err != nil {
		return err
	}
	b.Subject.OwnerID = b.Owner
	if b.Subject.ShopNumber == "" && campaignShop != 0 {
		b.Subject.ShopNumber = pg.Itoa(campaignShop)
	}
	l.askOptOuts = optedOut == nil
	l.optedOut(optedOut)
	l.broken = l.decode(due, sent)
	return nil
}

// incomplete reports whether completing the lease takes statements.
func (l *lease) incomplete() bool {
	return l.runs > 1 || l.askOptOuts || l.batch.Subject.Kind == delivery.KindNotice
}

// ready completes a lease with the data that is not in its row.
func ready(ctx context.Context, l *lease) (delivery.Lease, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if err := l.noticeDays(ctx); err != nil {
		return nil, err
	}
	if err := l.optOuts.load(ctx, l.batch.Channel, []*lease{l}); err != nil {
		return nil, err
	}
	if l.runs > 1 { // before the first run there are no exceptions, and nothing was accepted
		if err := l.loadExceptions(ctx); err != nil {
			return nil, err
		}
		if err := l.loadProviders(ctx); err != nil {
			return nil, err
		}
		if err := l.loadAccepted(ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// noticeDays sets the number of remaining days in the subject of a notice.
func (l *lease) noticeDays(ctx context.Context) error {
	if l.batch.Subject.Kind != delivery.KindNotice {
		return nil
	}
	return pg.Translate(l.db.Pool.QueryRow(ctx, `select days from notice_runs where id = $1`, l.batch.Owner).Scan(&l.batch.Subject.Slot))
}

// lease is the exclusive right to a batch: every write is fenced by its token.
type lease struct {
	db       *pg.DB
	optOuts  *optOuts
	token    string
	lasting  time.Duration
	batch    delivery.Batch
	dueCount int
	runs     int
	broken   error // the error in its row
	// askOptOuts says that the opt-outs still have to be read.
	askOptOuts bool
	// save stores a checkpoint, alone or together with those of other leases.
	save     func(context.Context, checkpoint) (recorded checkpointAnswer, err error)
	sent     *roaring64.Bitmap
	outcomes map[user.ID]delivery.Outcome // of all exception rows
	via      map[int64]*roaring64.Bitmap  // the users of sent, by provider; without provider 0
	// accept records an accepted message, alone or together with other messages.
	accept func(context.Context, accepted) (held bool, err error)
	// journalled says that the batch has accepted messages, which must be removed
	// at the batch's end.
	journalled atomic.Bool
}

func (l *lease) decode(due, sent []byte) (err error) {
	left, err := pg.DecodeSet(due)
	if err != nil {
		return err
	}
	if l.sent, err = pg.DecodeSet(sent); err != nil {
		return err
	}
	left.AndNot(l.sent)
	l.batch.Left = pg.SetIDs(left)
	return nil
}

func (l *lease) optedOut(ids []int64) {
	for _, id := range ids {
		l.batch.OptedOut[user.ID(id)] = true
	}
}

func (l *lease) loadExceptions(ctx context.Context) error {
	rows := pg.Rows(ctx, l.db.Pool, `select user_id, outcome, reason, detail, fingerprint, attempts,
		coalesce(next_retry_at, '0001-01-01'), first_at, last_at, provider_id from exceptions where batch_id = $1`, l.batch.ID)
	var e delivery.Exception
	_, err := pgx.ForEachRow(rows, []any{&e.UserID, &e.Outcome, &e.Reason, &e.Detail, &e.Fingerprint, &e.Attempts,
		&e.NextRetryAt, &e.FirstAt, &e.LastAt, &e.Via}, func() error {
		l.batch.Exceptions[e.UserID], l.outcomes[e.UserID] = e, e.Outcome
		return nil
	})
	return pg.Translate(err)
}

// Batch returns the batch as it was leased; its worker owns the value.
func (l *lease) Batch() *delivery.Batch { return &l.batch }

// Extend extends the lease; see [delivery.Lease].
func (l *lease) Extend(ctx context.Context) (stop string, err error) {
	err = l.db.Pool.QueryRow(ctx, `update batches set lease_until = clock_timestamp() + $3
		where id = $1 and lease_token = $2 returning coalesce(stop_reason, case when held then 'held' end, '')`, l.batch.ID, l.token, l.lasting).Scan(&stop)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", delivery.ErrLeaseLost
	}
	return stop, pg.Translate(err)
}
