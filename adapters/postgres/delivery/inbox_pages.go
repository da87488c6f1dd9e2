package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/user"
)

// pageRows are the rows that every page of a user's inbox needs, and what the pages of a group
// share.
type pageRows struct {
	readThrough time.Time
	reader      user.User
	notices     bool
	templates   []int64
	remembers   bool // the memory knows all changes up to this page
	campaigns   recentCampaigns
}

// pageReaders is how many groups of pages are read at a time. A group whose rows are not in memory
// delays no other group.
const pageReaders = 4

// pageGroups is the configuration of the groups of pages. A page that arrives while no other is
// read is a group of its own and does not wait.
func pageGroups(g pg.Grouping, db *pg.DB) pg.GroupConfig {
	cfg := pg.Grouping{Workers: pageReaders, Timeout: g.Timeout}.Config(db)
	cfg.Name = "inbox page"
	return cfg
}

// pageSQL returns, for each of the users $1, its place, up to when the user has read, the data
// that texts need, whether there are notices, and the templates of the $2 newest reservations
// of waits that ended with a coupon, and of entries in draws.
const pageSQL = `
select p.i, coalesce((select read_through from inbox_reads where user_id = p.id), '0001-01-01'),
	coalesce(u.name, ''), coalesce(u.locale, ''), coalesce(u.timezone, ''),
	(select true from notices where user_id = p.id and run_id is not null order by template_id limit 1) is not null,
	array(select template_id from reservations where user_id = p.id
		union select template_id from former_reservations f where user_id = p.id
			and exists (select from batches b where b.template_id = f.template_id)
		union select template_id from waiters where user_id = p.id and (state in ('filled', 'offered', 'lapsed', 'waiting') or offered_at is not null)
		union select template_id from draw_entries where user_id = p.id order by 1 desc limit $2::int)
from unnest($1::bigint[]) with ordinality as p (id, i) left join users u on u.id = p.id`

// readPages reads the rows of several pages in one round trip, with the changes of remembered
// batches and, if it is not remembered, the list of recent campaigns.
func (s Inbox) readPages(ctx context.Context, users []user.ID) ([]pageRows, error) {
	pages := make([]pageRows, len(users))
	reads := []pg.Read{{SQL: pageSQL, Args: []any{users, inboxWindow}, Rows: func(rows pgx.Rows) error { return scanPages(rows, users, pages) }}}
	changed, read := s.memory.changes()
	campaigns := s.memory.campaigns()
	known := time.Since(campaigns.at) < campaignsFor
	if reads = append(reads, read); !known {
		reads = append(reads, campaigns.read())
	}
	if err := s.PlannedTogether(ctx, reads...); err != nil {
		return nil, err
	}
	remembers, err := s.memory.apply(ctx, changed)
	if err != nil {
		return nil, err
	}
	if now := s.memory.campaigns(); known && (!remembers || !now.at.Equal(campaigns.at)) { // a change dropped the list
		known, campaigns = false, now
		if err := s.PlannedTogether(ctx, campaigns.read()); err != nil {
			return nil, err
		}
	}
	if !known {
		s.memory.keepCampaigns(campaigns)
	}
	for i := range pages {
		pages[i].remembers, pages[i].campaigns = remembers, campaigns
	}
	return pages, nil
}

// scanPages reads the rows of [pageSQL] into their places.
func scanPages(rows pgx.Rows, users []user.ID, into []pageRows) error {
	defer rows.Close()
	for rows.Next() {
		var place int
		var p pageRows
		if err := rows.Scan(&place, &p.readThrough, &p.reader.Name, &p.reader.Locale, &p.reader.Timezone, &p.notices, &p.templates); err != nil {
			return err
		}
		p.reader.ID = users[place-1]
		into[place-1] = p
	}
	return rows.Err()
}
