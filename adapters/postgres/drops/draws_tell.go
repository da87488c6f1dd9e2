package drops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// tellSQL stores an announcement of kind $2 about the draw of template $1. It returns the announcement. Draws and their
// messages can be repeated, so the announcement is superseded from its beginning. A message is worthless after the end of
// the offer or of the coupon, for users who did not win after a day.
const tellSQL = `
insert into announcements as a (template_id, kind, opens_at, created_by, worthless_after, superseded_at, created_at)
select t.id, $2, t.opens_at, 'system', case when $2 = 'lost' then clock_timestamp() + interval '1 day'
    when t.accept_hours > 0 then clock_timestamp() + t.accept_hours * interval '1 hour'
    else coalesce(t.valid_until, clock_timestamp() + t.valid_hours * interval '1 hour') end, clock_timestamp(),
    greatest(clock_timestamp(), (select max(created_at) + interval '1 second' from announcements o where o.template_id = t.id and o.kind = $2))
from templates t where t.id = $1
returning ` + announcementColumns

// untold are the winners of draw $1 who have the coupon or an offer, and were not told.
const untold = ` draw_entries where template_id = $1 and state = 'won' and told_by is null and (coupon_id is not null or offered_until is not null)`

// Tell is part of [draw.OperatorStore]. Its announcements are cut into batches as all announcements are.
func (s Draws) Tell(ctx context.Context, templateID int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var lost, won bool
		err := tx.QueryRow(ctx, `select not lost_told and drawn_at is not null, exists (select from`+untold+`) from draws
			where template_id = $1 and state in ('drawn', 'offered') for update skip locked`, templateID).Scan(&lost, &won)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another worker is at the draw
		}
		if err == nil && won {
			err = tell(ctx, tx, templateID, delivery.KindWon, `update draw_entries set told_by = $2 where (template_id, user_id) in (select template_id, user_id from`+untold+`)`)
		}
		if err == nil && lost {
			err = tell(ctx, tx, templateID, delivery.KindLost, `update draws set lost_told = true where template_id = $1 and $2::bigint > 0`)
		}
		return err
	})
}

// tell stores an announcement and notes with a statement that it does.
func tell(ctx context.Context, tx pgx.Tx, templateID int64, kind delivery.Kind, note string) error {
	var a reminder.Announcement
	if err := tx.QueryRow(ctx, tellSQL, templateID, kind).Scan(announcementFields(&a)...); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, note, templateID, a.ID); err != nil {
		return err
	}
	return pg.Announce(ctx, tx, event.AnnouncementCreated, event.Announcement{AnnouncementID: a.ID, TemplateID: a.TemplateID, Kind: string(a.Kind), OpensAt: a.OpensAt, At: a.CreatedAt})
}

// entrantParts divides the users who entered the draw.
func (s Announcements) entrantParts(ctx context.Context, templateID int64) ([]delivery.Range, error) {
	var first, last, expected int64
	err := s.Pool.QueryRow(ctx, `select coalesce((select user_id from draw_entries where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from draw_entries where template_id = $1 order by user_id desc limit 1), 0),
		coalesce((select sum(entered) from draw_counts where template_id = $1), 0)::bigint`, templateID).Scan(&first, &last, &expected)
	return pg.Divide(first, last, expected), pg.Translate(err)
}

// onChannelsSQL spreads the bits of an entry's channels to the first bit of each channel, as [anyOnChannelSQL] does.
var onChannelsSQL = func() string {
	var parts []string
	for _, c := range delivery.AllChannels() {
		parts = append(parts, fmt.Sprintf("((channels >> %d & 1)::bigint << %d)", int(c), template.Slots*int(c)))
	}
	return strings.Join(parts, " | ")
}()

// readEntrants reads the recipients of an announcement of a draw's result: the winners whom it tells, or the users who
// have not won. A user who moved up since is not told that the ticket lost.
func (s Announcements) readEntrants(ctx context.Context, cut reminder.AnnouncementCut, part delivery.Range) (reminder.Due, error) {
	which, args := `state = 'entered'`, []any{cut.TemplateID, part.From, part.To}
	if cut.Kind == delivery.KindWon {
		which, args = `state = 'won' and told_by = $4`, append(args, cut.ID)
	}
	return pg.ReadUsers(ctx, s.DB, `select user_id, `+onChannelsSQL+` from draw_entries where template_id = $1 and user_id between $2 and $3 and `+which, args...)
}
