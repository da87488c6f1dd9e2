package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/reminder"
)

// Openings stores the users who opened the link in a message about a drop.
type Openings struct{ *pg.DB }

// NewOpenings returns the openings of db.
func NewOpenings(db *pg.DB) Openings { return Openings{db} }

// openedSQL returns how many users opened a link of template $1.
const openedSQL = `select coalesce(sum(opened), 0)::bigint from drop_opening_counts where template_id = $1`

// openingsSQL stores opened links by template, user, slot and channel, and adds
// new rows to the counts. Rows are locked in one order, so that two statements
// cannot deadlock. A link that is opened after the end of the drop is not stored.
// So rows that retention has removed cannot be stored and counted again.
//
// openingsSQL returns the templates whose rows it left out because another
// session has locked the template; the stored rows refer to the template's row.
const openingsSQL = `
with live as materialized (
	select id from templates where id = any($1) and state in ('published', 'paused') and closes_at > clock_timestamp()
), free as materialized (
	select id from templates where id = any(array(select id from live)) for key share skip locked
), opened as (
	insert into drop_openings (template_id, user_id, slot, channel, opened_at)
	select distinct on (n.template_id, n.user_id) n.template_id, n.user_id, n.slot, n.channel, clock_timestamp()
	from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[]) with ordinality n (template_id, user_id, slot, channel, place)
	join free on free.id = n.template_id
	order by n.template_id, n.user_id, n.place
	on conflict do nothing returning template_id, channel
), counted as (
	insert into drop_opening_counts (template_id, channel, opened)
	select template_id, channel, count(*) from opened group by template_id, channel order by template_id, channel
	on conflict (template_id, channel) do update set opened = drop_opening_counts.opened + excluded.opened
)
select id from live where id not in (select id from free)`

// Open stores the readers; see [reminder.OpeningStore].
func (s Openings) Open(ctx context.Context, readers []reminder.Reader) error {
	n := len(readers)
	drops, users, slots, channels := make([]int64, n), make([]int64, n), make([]int16, n), make([]int16, n)
	for i, r := range readers {
		drops[i], users[i], slots[i], channels[i] = r.TemplateID, int64(r.UserID), int16(r.Slot), int16(r.Channel)
	}
	var locked []int64
	err := s.Briefly(ctx, openingsSQL, []any{drops, users, slots, channels}, func(rows pgx.Rows) (err error) {
		locked, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err == nil && len(locked) > 0 {
		return &reminder.LockedOpenings{Drops: locked}
	}
	return pg.Translate(err)
}
