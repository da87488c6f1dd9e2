package drops

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// cuttable is the condition that announcement a may be cut now. A correction
// waits until batches about former openings have ended. Users whom these batches
// still reach have to be corrected too, and a second cut after a crash must find
// the same users.
const cuttable = `(a.state = 'waiting' or a.state = 'cutting' and a.cut_lease_until < clock_timestamp())
	and (a.kind <> 'correction' or a.stop_reason is not null
		or not exists (select from slots s where s.template_id = a.template_id and s.opens_at <> a.opens_at and s.state in ('firing', 'sending')
			and (s.doors = 0 or doors_at(s.template_id, s.opens_at) = 0))
		and not exists (select from announcements o where o.template_id = a.template_id and o.kind = 'correction'
			and o.opens_at <> a.opens_at and o.superseded_at is not null and o.state in ('cutting', 'sending')))`

// BeginAnnouncing claims the announcement; see [reminder.AnnouncingStore].
func (s Announcements) BeginAnnouncing(ctx context.Context, id int64, lasting time.Duration) (reminder.AnnouncementCut, error) {
	cut := reminder.AnnouncementCut{Token: uuid.NewString()}
	err := s.Pool.QueryRow(ctx, `update announcements a set state = 'cutting', cut_token = $2, cut_lease_until = clock_timestamp() + $3
		where a.id = $1 and `+cuttable+` returning `+announcementColumns, id, cut.Token, lasting).Scan(announcementFields(&cut.Announcement)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return cut, reminder.ErrNotFirable
	}
	if err != nil {
		return cut, pg.Translate(err)
	}
	if cut.Covered, err = pg.Covered(ctx, s.DB, cut.Kind, cut.ID); err != nil {
		return cut, err
	}
	cut.Parts, err = s.audienceParts(ctx, cut.Announcement)
	return cut, err
}

// misinformed selects the batches b whose recipients were told another opening of
// template $1 than $2, by a reminder or by an earlier correction.
const misinformed = ` from batches b where b.template_id = $1 and b.sent_count > 0 and (
	b.kind = 'reminder' and exists (select from slots s where s.id = b.owner_id and s.opens_at <> $2)
	or b.kind = 'correction' and exists (select from announcements a where a.id = b.owner_id and a.opens_at <> $2))`

func (s Announcements) audienceParts(ctx context.Context, a reminder.Announcement) ([]delivery.Range, error) {
	sql, args := `select coalesce(min(b.from_user), 1), coalesce(max(b.to_user), 0), coalesce(sum(b.sent_count), 0)`+misinformed,
		[]any{a.TemplateID, a.OpensAt}
	switch a.Kind {
	case delivery.KindWon, delivery.KindLost:
		return s.entrantParts(ctx, a.TemplateID)
	case delivery.KindCancelled:
		sql, args = `select
			coalesce((select user_id from reservations where template_id = $1 order by user_id limit 1), 1),
			coalesce((select user_id from reservations where template_id = $1 order by user_id desc limit 1), 0),
			coalesce((select sum(booked) from bookings where template_id = $1), 0)`, args[:1]
	}
	var first, last, expected int64
	err := s.Pool.QueryRow(ctx, sql, args...).Scan(&first, &last, &expected)
	return pg.Divide(first, last, expected), pg.Translate(err)
}

// ReadAudience reads the recipients of the announcement within the part.
func (s Announcements) ReadAudience(ctx context.Context, cut reminder.AnnouncementCut, part delivery.Range) (reminder.Due, error) {
	switch cut.Kind {
	case delivery.KindWon, delivery.KindLost:
		return s.readEntrants(ctx, cut, part)
	case delivery.KindCancelled:
		return pg.ReadUsers(ctx, s.DB, `select user_id, `+anyOnChannelSQL+` from reservations
			where template_id = $1 and user_id between $2 and $3`, cut.TemplateID, part.From, part.To)
	}
	told, err := s.readTold(ctx, cut.Announcement, part)
	if err != nil {
		return reminder.Due{}, err
	}
	return told.due(part), nil
}

// storeAnnouncementSQL returns the ids of the new batches in their order. It
// returns no rows if the lease for cutting was lost.
const storeAnnouncementSQL = `
with mine as (
    update announcements set cut_lease_until = clock_timestamp() + interval '10 seconds'
    where id = @owner and cut_token = @token and state = 'cutting'
    returning id, kind, template_id, created_at, worthless_after, stop_reason
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at,
    worthless_after, stop_reason, priority, next_run_at)
select m.kind, m.id, m.template_id, b.channel, b.from_user, b.to_user, b.n, b.due, m.created_at,
    m.worthless_after, m.stop_reason, @priority, clock_timestamp()
from mine m, unnest(@channels::smallint[], @from_users::bigint[], @to_users::bigint[], @due_counts::int[], @dues::bytea[])
    with ordinality as b (channel, from_user, to_user, n, due, i)
order by b.i
returning id`

// StoreAnnouncementBatches stores batches. If the announcement was stopped
// before, the batches are stored as stopped.
func (s Announcements) StoreAnnouncementBatches(ctx context.Context, cut reminder.AnnouncementCut, bs []reminder.NewBatch) ([]int64, error) {
	args, err := pg.BatchArgs(bs)
	if err != nil {
		return nil, err
	}
	args["owner"], args["token"], args["priority"] = cut.ID, cut.Token, pg.AnnouncementPriority
	return pg.StoreBatches(ctx, s.DB, storeAnnouncementSQL, args)
}

// KeepAnnouncing renews the lease for cutting; see [reminder.AnnouncingStore].
func (s Announcements) KeepAnnouncing(ctx context.Context, cut reminder.AnnouncementCut, lasting time.Duration) error {
	return pg.KeepCut(ctx, s.DB, `update announcements set cut_lease_until = clock_timestamp() + $3::interval
		where id = $1 and cut_token = $2 and state = 'cutting'`, cut.ID, cut.Token, lasting)
}

// EndAnnouncing records that every batch is stored.
func (s Announcements) EndAnnouncing(ctx context.Context, cut reminder.AnnouncementCut) error {
	_, err := s.Pool.Exec(ctx, `update announcements set state = 'sending', cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
		where id = $1 and cut_token = $2 and state = 'cutting'`, cut.ID, cut.Token)
	return pg.Translate(err)
}

// DueAnnouncements returns announcements that no task has taken, and
// announcements whose cutting was abandoned.
func (s Announcements) DueAnnouncements(ctx context.Context, grace time.Duration, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select a.id from announcements a where a.state in ('waiting', 'cutting')
		and a.created_at < clock_timestamp() - $1::interval and `+cuttable+` order by a.id limit $2`, grace, limit)
}

// AnnouncementsWait asks for announcements that have not ended.
const AnnouncementsWait pg.Question = `select from announcements where state <> 'finished' order by id limit 1`

// FinishAnnouncements finishes announcements whose batches are all done, as
// [Slots.FinishSlots] does for slots.
func (s Announcements) FinishAnnouncements(ctx context.Context) (int, error) {
	finished := 0
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		const settled = ` and not exists (select from batches b where b.kind = a.kind and b.owner_id = a.id and b.state <> 'done')`
		ids, err := pg.LockIDs(ctx, tx, `select id from announcements a where a.state = 'sending'`+settled+` order by id limit 100 for update skip locked`)
		if err != nil || len(ids) == 0 {
			return err
		}
		tag, err := tx.Exec(ctx, `update announcements a set state = 'finished', finished_at = clock_timestamp() where a.id = any($1)`+settled, ids)
		finished = int(tag.RowsAffected())
		return err
	})
	return finished, err
}
