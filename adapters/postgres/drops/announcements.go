package drops

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
)

// Announcements stores corrections and notices and cuts their batches.
type Announcements struct {
	Templates
	// Doors finds the users of drops with doors.
	Doors reminder.DoorJudge
}

// NewAnnouncements returns the announcements of db. Drops with doors need [Announcements.Doors] too.
func NewAnnouncements(db *pg.DB) Announcements { return Announcements{Templates: NewTemplates(db)} }

const announcementColumns = `a.id, a.template_id, a.kind, a.opens_at, a.state, coalesce(a.stop_reason, ''), a.created_by,
	a.created_at, a.worthless_after, a.per_person, a.cut_at, a.finished_at`

func announcementFields(a *reminder.Announcement) []any {
	return []any{&a.ID, &a.TemplateID, &a.Kind, &a.OpensAt, &a.State, &a.StopReason, &a.CreatedBy,
		&a.CreatedAt, &a.WorthlessAfter, &a.PerPerson, &a.CutAt, &a.FinishedAt}
}

// Misled reports whether reminders were sent for another opening.
func (s Announcements) Misled(ctx context.Context, templateID int64, opensAt time.Time) (bool, error) {
	var misled bool
	err := s.Pool.QueryRow(ctx, `select exists (select from slots where template_id = $1 and opens_at <> $2 and fired_at is not null
		and (doors = 0 or doors_at($1, opens_at) = 0))`,
		templateID, opensAt).Scan(&misled)
	return misled, pg.Translate(err)
}

// createSQL stores an announcement if the template has not changed since the
// decision to announce. The template stays locked until the announcement is
// committed.
const createSQL = `
insert into announcements as a (template_id, kind, opens_at, created_by, worthless_after, per_person, created_at)
select t.id, $2, $3, $4, $5, $6, greatest(clock_timestamp(),
    (select max(created_at) + interval '1 second' from announcements o where o.template_id = t.id and o.kind = $2))
from templates t
where t.id = $1 and (t.opens_at = $3 or t.doors > 0 and $2 = 'correction' and doors_at(t.id, $3) <> 0) and case $2
    when 'correction' then t.state in ('published', 'paused') and $3 > clock_timestamp()
    else t.state = 'cancelled' end
for share of t
on conflict (template_id, kind, opens_at) where superseded_at is null do nothing
returning ` + announcementColumns

// CreateAnnouncement stores a, or returns the existing announcement; see
// [reminder.AnnouncementStore].
func (s Announcements) CreateAnnouncement(ctx context.Context, a reminder.Announcement, e staff.Entry) (reminder.Announcement, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, createSQL, a.TemplateID, a.Kind, a.OpensAt, a.CreatedBy, a.WorthlessAfter, a.PerPerson).Scan(announcementFields(&a)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return existingAnnouncement(ctx, tx, &a)
		}
		if err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, event.AnnouncementCreated, event.Announcement{AnnouncementID: a.ID, TemplateID: a.TemplateID,
			Kind: string(a.Kind), OpensAt: a.OpensAt, At: a.CreatedAt})
	})
	return a, err
}

func existingAnnouncement(ctx context.Context, tx pgx.Tx, a *reminder.Announcement) error {
	err := tx.QueryRow(ctx, `select `+announcementColumns+` from announcements a
		where a.template_id = $1 and a.kind = $2 and a.opens_at = $3 and a.superseded_at is null`, a.TemplateID, a.Kind, a.OpensAt).
		Scan(announcementFields(a)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.ErrStale
	}
	return err
}

// Announcements lists the announcements that staff made of the template with the sums over their
// batches, newest first.
func (s Announcements) Announcements(ctx context.Context, templateID int64) ([]reminder.AnnouncementStatus, error) {
	rows, err := s.Pool.Query(ctx, `select `+announcementColumns+` from announcements a where a.template_id = $1 and a.kind not in ('waitlist', 'offer', 'won', 'lost') order by a.id desc`, templateID)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st reminder.AnnouncementStatus, err error) {
		return st, row.Scan(announcementFields(&st.Announcement)...)
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	at := map[int64]int{}
	for i, st := range list {
		at[st.ID] = i
	}
	rows = pg.Rows(ctx, s.Pool, `select b.owner_id, b.channel, sum(b.due_count), sum(b.sent_count), sum(b.skipped_count),
			sum(b.expired_count), sum(b.dead_count), sum(b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count)
		from announcements a join batches b on b.kind = a.kind and b.owner_id = a.id where a.template_id = $1 group by 1, 2`, templateID)
	var id int64
	var channel delivery.Channel
	var c delivery.Counts
	_, err = pgx.ForEachRow(rows, []any{&id, &channel, &c.Reserved, &c.Sent, &c.Skipped, &c.Expired, &c.Dead, &c.InFlight}, func() error {
		if i, ok := at[id]; ok { // one may have been created in between
			list[i].Channels[channel] = c
		}
		return nil
	})
	return list, pg.Translate(err)
}

// endCorrections stops a template's corrections because its opening moves again
// or it is cancelled, so their text is no longer true. It returns the ids of the
// corrections whose batches must be stopped.
func endCorrections(ctx context.Context, tx pgx.Tx, templateID int64, reason string) ([]int64, error) {
	return pg.LockIDs(ctx, tx, `
		update announcements set superseded_at = now(),
			stop_reason = case when state = 'finished' then stop_reason else $2 end,
			finished_at = case when state = 'waiting' then now() else finished_at end,
			state = case when state = 'waiting' then 'finished' else state end
		where template_id = $1 and kind = 'correction' and superseded_at is null returning id`, templateID, reason)
}
